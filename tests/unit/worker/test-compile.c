/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/compile.h"

#define N_TIMES 200 /* one variable in the environment */

typedef struct Outcome {
        bool is_done;
        char text[4096];
} Outcome;

/* A compiler that tells a file of its process and fails. */
static void write_compiler(const char *folder, const char *file_name) {
        char path[128];
        FILE *file;

        snprintf(path, sizeof(path), "%s/gpuqd-compiler", folder);
        file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "#!/bin/sh\ntr '\\0' '\\n' </proc/$$/%s >&2\nexit 3\n", file_name);
        fclose(file);
        assert_int_equal(chmod(path, 0755), 0);
}

static void on_compiled(void *userdata, Compiled *compiled, void *data, const Failure *failure) {
        Outcome *outcome = userdata;

        assert_null(compiled);
        snprintf(outcome->text, sizeof(outcome->text), "%s", failure->text);
        outcome->is_done = true;
}

static unsigned count(const char *text, const char *word) {
        unsigned n = 0;

        while ((text = strstr(text, word))) {
                text += strlen(word);
                ++n;
        }
        return n;
}

/* An environment may hold a variable any number of times, which getenv() hides. */
static void each_variable_reaches_the_compiler_once(void **state) {
        char folder[] = "/tmp/test-compile-XXXXXX", command[64];
        CompilerSettings settings = {.libexec = folder, .target = "cpu", .timeout_s = 60};
        char *variables[N_TIMES + 3], **before = environ;
        CompileRequest request = {.name = "k.cu"};
        Compilers compilers;
        Outcome outcome = {};
        Compile *compile;
        uv_loop_t loop;

        assert_non_null(mkdtemp(folder));
        write_compiler(folder, "environ");
        for (unsigned i = 0; i < N_TIMES; ++i)
                variables[i] = (char *)"CUDA_CACHE_DISABLE=1";
        variables[N_TIMES] = (char *)"PATH=/usr/bin:/bin";
        variables[N_TIMES + 1] = (char *)"SECRET=1";
        variables[N_TIMES + 2] = NULL;

        uv_loop_init(&loop);
        compilers_init(&compilers, &loop, &settings);
        request.fd = memfd_create("image", MFD_CLOEXEC);
        environ = variables;
        assert_int_equal(compile_start(&compilers, &request, on_compiled, &outcome, &compile), 0);
        environ = before;
        uv_run(&loop, UV_RUN_DEFAULT);

        assert_true(outcome.is_done);
        assert_int_equal(count(outcome.text, "CUDA_CACHE_DISABLE=1"), 1);
        assert_int_equal(count(outcome.text, "PATH=/usr/bin:/bin"), 1);
        assert_int_equal(count(outcome.text, "SECRET"), 0);
        uv_loop_close(&loop);
        snprintf(command, sizeof(command), "rm -r %s", folder);
        assert_int_equal(system(command), 0);
}

/* Command lines are for every user to read: there is nothing of a client's on this one. */
static void command_line_tells_nothing_of_a_client(void **state) {
        char folder[] = "/tmp/test-compile-XXXXXX", command[64];
        char *options[] = {(char *)"-DSECRET=1"}, *kernels[] = {(char *)"SECRET<int>"};
        CompilerSettings settings = {.libexec = folder, .target = "cpu", .timeout_s = 60};
        CompileRequest request = {
                .name = "secret.cu",
                .length = 4711,
                .options = options,
                .n_options = 1,
                .kernels = kernels,
                .n_kernels = 1,
        };
        Compilers compilers;
        Outcome outcome = {};
        Compile *compile;
        uv_loop_t loop;

        assert_non_null(mkdtemp(folder));
        write_compiler(folder, "cmdline");
        uv_loop_init(&loop);
        compilers_init(&compilers, &loop, &settings);
        request.fd = memfd_create("image", MFD_CLOEXEC);
        assert_int_equal(compile_start(&compilers, &request, on_compiled, &outcome, &compile), 0);
        uv_run(&loop, UV_RUN_DEFAULT);

        assert_true(outcome.is_done);
        assert_non_null(strstr(outcome.text, "--words"));
        assert_int_equal(count(outcome.text, "SECRET"), 0);
        assert_int_equal(count(outcome.text, "4711"), 0);
        uv_loop_close(&loop);
        snprintf(command, sizeof(command), "rm -r %s", folder);
        assert_int_equal(system(command), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_variable_reaches_the_compiler_once),
                cmocka_unit_test(command_line_tells_nothing_of_a_client),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
