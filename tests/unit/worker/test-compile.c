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

/* A compiler that tells its environment and fails. */
static void write_compiler(const char *folder) {
        char path[128];
        FILE *file;

        snprintf(path, sizeof(path), "%s/gpuqd-compiler", folder);
        file = fopen(path, "w");
        assert_non_null(file);
        fputs("#!/bin/sh\ntr '\\0' '\\n' </proc/$$/environ >&2\nexit 3\n", file);
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
        write_compiler(folder);
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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_variable_reaches_the_compiler_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
