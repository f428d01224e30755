/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuqd-compiler from outside: what is asked on its command line, and the result.
 * $GPUQ_COMPILER is the program, $GPUQ_LIBEXEC a folder made like libexec/gpuq.
 */

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "compiler/bound.h"
#include "compiler/backend.h"
#include "compiler/batch.h"
#include "compiler/compiled.h"

#define ARGUMENTS_MAX 32

static char dir[] = "/tmp/gpuq-test-compiler-XXXXXX";
static char *cache, *fifo;

static int set_up(void **state) {
        if (!mkdtemp(dir) || asprintf(&cache, "%s/cache", dir) < 0 ||
            asprintf(&fifo, "%s/fifo", dir) < 0)
                return -1;
        return mkfifo(fifo, 0600);
}

/* Return: how many entries there are, removed if asked for. */
static size_t count_files(const char *path, bool remove_it) {
        DIR *d = opendir(path);
        struct dirent *entry;
        size_t n = 0;

        while (d && (entry = readdir(d))) {
                if (entry->d_name[0] == '.' && strlen(entry->d_name) < 3)
                        continue;
                n++;
                if (remove_it)
                        (void)unlinkat(dirfd(d), entry->d_name, 0);
        }
        if (d)
                closedir(d);
        return n;
}

static int tear_down(void **state) {
        (void)count_files(cache, true);
        (void)rmdir(cache);
        (void)unlink(fifo);
        free(cache);
        free(fifo);
        return rmdir(dir);
}

typedef struct Run {
        const char *target;
        const char *format;
        const void *image;
        size_t n_image; /* 0: image is text */
        const char *option;
        const char *timeout;
        const char *memory; /* MiB */
        bool use_cache;
        bool fake_linker; /* fake-linker.c, wherever else one may be */
        pid_t pid;
        int in_fd, out_fd;
        void *data; /* of the result */
        Compiled *result;
} Run;

static void run_finish(Run *run) {
        compiled_free(run->result);
        free(run->data);
        closep(&run->in_fd);
        closep(&run->out_fd);
}

static void start(Run *run) {
        size_t n = run->n_image ? run->n_image : strlen(run->image);
        char in[12], out[12];
        const char *argv[ARGUMENTS_MAX] = {
                getenv("GPUQ_COMPILER"),
                "--target",
                run->target,
                "--in",
                in,
                "--out",
                out,
                "--name",
                "my.cu",
                "--libexec",
                getenv("GPUQ_LIBEXEC"),
                "--format",
                run->format ? run->format : "auto",
        };
        size_t i = 13;

        run->in_fd = memfd_create("in", 0);
        run->out_fd = memfd_create("out", 0);
        assert_int_equal(pwrite(run->in_fd, run->image, n, 0), n);
        snprintf(in, sizeof(in), "%d", run->in_fd);
        snprintf(out, sizeof(out), "%d", run->out_fd);
        if (run->use_cache) {
                argv[i++] = "--cache";
                argv[i++] = cache;
        }
        if (run->timeout) {
                argv[i++] = "--timeout";
                argv[i++] = run->timeout;
        }
        if (run->memory) {
                argv[i++] = "--memory";
                argv[i++] = run->memory;
        }
        if (run->option) {
                argv[i++] = "--";
                argv[i++] = run->option;
        }

        run->pid = fork();
        if (run->pid == 0) {
                if (run->fake_linker)
                        setenv("LD_LIBRARY_PATH", getenv("GPUQ_FAKE_LINKER"), 1);
                execv(argv[0], (char **)argv);
                _exit(127);
        }
}

static int finish(Run *run) {
        int status;

        assert_int_equal(waitpid(run->pid, &status, 0), run->pid);
        return status;
}

static const Compiled *compile(Run *run) {
        struct stat st;

        start(run);
        assert_int_equal(finish(run), 0);
        assert_int_equal(fstat(run->out_fd, &st), 0);
        run->data = malloc(st.st_size);
        assert_int_equal(pread(run->out_fd, run->data, st.st_size, 0), st.st_size);
        assert_int_equal(compiled_parse(run->data, st.st_size, &run->result), 0);
        return run->result;
}

#define COMPILE(...)                                                                               \
        _cleanup_(run_finish) Run run = {.in_fd = -1, .out_fd = -1, __VA_ARGS__};                  \
        const Compiled *c = compile(&run)

static const char source[] = "#include <stdio.h>\n#include <stdint.h>\n"
                             "#include <cuda_runtime.h>\n"
                             "__device__ int counter;\n"
                             "template <class T> __global__ void f(T *p, int n) {\n"
                             "    if (threadIdx.x < n) p[threadIdx.x] = N;\n"
                             "    printf(\"%d\\n\", n);\n"
                             "    counter++;\n"
                             "}\n"
                             "template __global__ void f<float>(float *, int);\n"
                             "__global__ void g(uint64_t *x, double y) { x[0] = y; }\n";

static const CompiledKernel *find(const Compiled *c, const char *name) {
        for (size_t i = 0; i < c->n_kernels; i++)
                if (strcmp(c->kernels[i].name, name) == 0)
                        return &c->kernels[i];

        fail_msg("no kernel %s", name);
        return NULL;
}

/* The same for both targets: the same program finds the same names. */
static void assert_is_module(const Compiled *c) {
        const CompiledKernel *f, *g;

        assert_string_equal(compiled_status_name(c->status), "ok");
        assert_true(c->n_image > 0);
        assert_int_equal(c->n_kernels, 2);
        f = find(c, "f<float>");
        g = find(c, "g");
        assert_int_equal(f->n_kinds, 2);
        assert_memory_equal(f->kinds, ((uint8_t[]){1, 2}), 2);
        assert_int_equal(g->n_kinds, 2);
        assert_memory_equal(g->kinds, ((uint8_t[]){1, 5}), 2);
        assert_int_equal(c->n_variables, 1);
        assert_string_equal(c->variables[0], "counter");
        assert_int_equal(c->flags & ~COMPILED_FROM_CACHE,
                         COMPILED_HAS_VARIABLES | COMPILED_HAS_PRINTF | COMPILED_HAS_TWINS);
}

static void source_becomes_an_image_for_the_cpu(void **state) {
        COMPILE(.target = "cpu", .image = source, .option = "-DN=3");

        assert_is_module(c);
        assert_memory_equal(c->image, "\177ELF", 4);
}

static void source_becomes_a_cubin(void **state) {
        COMPILE(.target = "sm_90", .image = source, .option = "-DN=3");

        if (c->status == COMPILED_NO_COMPILER)
                return; /* not on this machine */
        assert_is_module(c);
        assert_memory_equal(c->image, "\177ELF", 4);
}

static bool has_twin(const Compiled *c, const char *name) {
        char twin[128];

        snprintf(twin, sizeof(twin), "%s" BATCH_SUFFIX, find(c, name)->symbol);
        return memmem(c->image, c->n_image, twin, strlen(twin)) != NULL;
}

static void kernels_have_twins_that_are_not_told(void **state) {
        COMPILE(.target = "sm_90", .image = source, .option = "-DN=3");

        if (c->status == COMPILED_NO_COMPILER)
                return; /* not on this machine */
        assert_is_module(c);
        assert_true(has_twin(c, "g"));
        assert_false(has_twin(c, "f<float>")); /* it prints */
}

static void a_kernel_that_is_called_like_a_twin_is_the_users(void **state) {
        COMPILE(.target = "sm_90", .image = ".version 6.0\n.target sm_60\n.address_size 64\n"
                                            ".entry k(.param .u32 p) { ret; }\n"
                                            ".entry k" BATCH_SUFFIX "(.param .u32 p) { ret; }\n");

        if (c->status == COMPILED_NO_COMPILER)
                return; /* not on this machine */
        assert_int_equal(c->status, COMPILED_OK);
        assert_int_equal(c->n_kernels, 2);
        assert_non_null(find(c, "k"));
        assert_non_null(find(c, "k" BATCH_SUFFIX));
        assert_false(c->flags & COMPILED_HAS_TWINS);
}

static void so_it_is_for_the_cpu(void **state) {
        COMPILE(.target = "cpu", .image = ".version 6.0\n.target sm_60\n.address_size 64\n"
                                          ".entry k(.param .u32 p) { ret; }\n"
                                          ".entry k" BATCH_SUFFIX "(.param .u32 p) { ret; }\n");

        assert_int_equal(c->status, COMPILED_OK);
        assert_int_equal(c->n_kernels, 2);
        assert_false(c->flags & COMPILED_HAS_TWINS);
}

#define PTX(words)                                                                                 \
        "//\n.version 6.0\n.target sm_60\n.address_size 64\n// " words                             \
        "\n.visible .entry k(.param .u32 p)\n{\nret;\n}\n"

static void ptx_is_linked_with_twins(void **state) {
        COMPILE(.target = "sm_90", .image = PTX(""), .fake_linker = true);

        assert_int_equal(c->status, COMPILED_OK);
        assert_int_equal(c->n_kernels, 1);
        assert_true(has_twin(c, "k"));
}

static void a_linker_that_takes_no_twins_gets_the_module_as_it_came(void **state) {
        COMPILE(.target = "sm_90", .image = PTX("REFUSE_TWINS"), .fake_linker = true);

        assert_int_equal(c->status, COMPILED_OK);
        assert_string_equal(c->log, "");
        assert_int_equal(c->n_image, strlen(PTX("REFUSE_TWINS")));
        assert_memory_equal(c->image, PTX("REFUSE_TWINS"), c->n_image);
}

#define LOADS                                                                                      \
        "//\n.version 6.0\n.target sm_60\n.address_size 64\n"                                      \
        ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r1; .reg .b64 %rd1;\n"                    \
        "ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\nret;\n}\n"

static void a_checked_module_has_checks_and_no_twins(void **state) {
        COMPILE(.target = "sm_90", .image = LOADS, .option = "--check", .fake_linker = true);

        assert_int_equal(c->status, COMPILED_OK);
        assert_int_equal(c->flags, COMPILED_IS_CHECKED);
        assert_int_equal(c->n_kernels, 1);
        assert_string_equal(c->sites, "load\t-\tld.global.u32 %r1, [%rd1]\n");
        assert_non_null(memmem(c->image, c->n_image, "call gpuq_check_global", 22));
        assert_false(has_twin(c, "k"));
}

static void so_has_one_for_the_cpu(void **state) {
        for (unsigned i = 0; i < 2; i++) {
                COMPILE(.target = "cpu", .image = LOADS, .option = "--check", .use_cache = true);

                assert_int_equal(c->status, COMPILED_OK);
                assert_int_equal(c->flags, COMPILED_IS_CHECKED | (i ? COMPILED_FROM_CACHE : 0));
                assert_int_equal(c->n_variables, 0);
                assert_string_equal(c->sites, "load\t-\tld.global.u32 %r1, [%rd1]\n");
        }
        assert_int_equal(count_files(cache, true), 1);
}

static void what_has_no_ptx_cannot_be_checked(void **state) {
        COMPILE(.target = "sm_90", .image = "\x50\xed\x55\xba", .n_image = 4, .option = "--check");

        assert_int_equal(c->status, COMPILED_NO_BINARY);
        assert_non_null(strstr(c->log, "my.cu has no PTX for this device"));
}

static void a_checked_module_that_calls_malloc_is_refused(void **state) {
        COMPILE(.target = "cpu", .option = "--check",
                .image = "#include <stdlib.h>\nextern \"C\" __global__ void k(int *x) "
                         "{ int *p = (int *)malloc(4 + x[0]); *p = x[1]; x[0] = *p; free(p); }\n");

        assert_int_equal(c->status, COMPILED_FAILED);
        assert_non_null(strstr(c->log, "my.cu cannot run checked: in its PTX, a kernel calls "
                                       "malloc()"));
}

static void so_does_one_that_twins_crash(void **state) {
        COMPILE(.target = "sm_90", .image = PTX("CRASH_TWINS"), .fake_linker = true,
                .timeout = "100");

        assert_int_equal(c->status, COMPILED_OK);
        assert_int_equal(c->n_image, strlen(PTX("CRASH_TWINS")));
}

static void broken_ptx_is_told_as_it_is(void **state) {
        COMPILE(.target = "sm_90", .image = "//\n.version 6.0\n.target sm_60\n.address_size 64\n"
                                            ".entry k(.param .u32 p)\n{\nno.such.thing;\n}\n");

        if (c->status == COMPILED_NO_COMPILER)
                return; /* not on this machine */
        assert_int_equal(c->status, COMPILED_FAILED);
        assert_non_null(strstr(c->log, "line 7"));
        assert_null(strstr(c->log, "gpuq_batch"));
}

static void an_error_names_the_clients_file_and_line(void **state) {
        COMPILE(.target = "cpu", .image = "\n\n__global__ void f() { foo(); }\n");

        assert_int_equal(c->status, COMPILED_FAILED);
        assert_true(strstr(c->log, "my.cu:3:") ||
                    strstr(c->log, "my.cu(3)")); /* clang's, NVRTC's */
        assert_non_null(strstr(c->log, "foo"));
        assert_null(strstr(c->log, "/tmp"));
}

static void an_error_of_the_preprocessor_names_it_too(void **state) {
        COMPILE(.target = "cpu", .image = "\n#include <no_such_header.h>\n");

        assert_int_equal(c->status, COMPILED_FAILED);
        assert_true(strstr(c->log, "my.cu:2:") || strstr(c->log, "my.cu(2)"));
}

static void the_cpu_takes_ptx(void **state) {
        COMPILE(.target = "cpu", .image = ".version 6.0\n.target sm_60\n.address_size 64\n"
                                          ".entry k(.param .u32 n, .param .u64 .ptr p) { ret; }\n");

        assert_int_equal(c->status, COMPILED_OK);
        assert_int_equal(c->n_kernels, 1);
        assert_string_equal(c->kernels[0].symbol, "k");
        assert_int_equal(c->kernels[0].n_kinds, 2);
}

static void the_cpu_takes_no_code_of_gpus(void **state) {
        COMPILE(.target = "cpu", .image = "\x50\xed\x55\xba", .n_image = 4);

        assert_int_equal(c->status, COMPILED_NO_BINARY);
        assert_non_null(strstr(c->log, "my.cu is fatbin"));
}

static void what_is_no_module_is_told(void **state) {
        COMPILE(.target = "sm_90", .image = "PK\3\4", .n_image = 4);

        assert_int_equal(c->status, COMPILED_NOT_MODULE);
        assert_string_equal(c->log,
                            "my.cu is not a module: the file starts with 50 4b 03 04 \"PK..\"");
}

static void a_format_that_does_not_match_is_told(void **state) {
        COMPILE(.target = "sm_90", .format = "cubin", .image = "int a;");

        assert_int_equal(c->status, COMPILED_NOT_MODULE);
        assert_string_equal(c->log,
                            "my.cu was loaded as cubin, but it contains source: load it as that");
}

static void a_library_of_the_machine_is_refused(void **state) {
        _cleanup_(freep) char *self = NULL;
        size_t n;

        assert_int_equal(backend_read_file("/proc/self/exe", &self, &n), 0);
        COMPILE(.target = "cpu", .image = self, .n_image = n);

        assert_int_equal(c->status, COMPILED_NOT_MODULE);
}

static void an_option_that_is_not_allowed_is_told(void **state) {
        COMPILE(.target = "cpu", .image = source, .option = "-fplugin=x.so");

        assert_int_equal(c->status, COMPILED_BAD_OPTION);
        assert_non_null(strstr(c->log, "-fplugin=x.so"));
        assert_non_null(strstr(c->log, "-DNAME"));
}

static void the_second_time_comes_from_the_cache(void **state) {
        for (unsigned i = 0; i < 2; i++) {
                COMPILE(.target = "cpu", .image = source, .option = "-DN=4", .use_cache = true);

                assert_is_module(c);
                assert_int_equal(!!(c->flags & COMPILED_FROM_CACHE), i);
        }
        assert_int_equal(count_files(cache, true), 1); /* and nothing temporary stays */
}

static void errors_are_not_cached(void **state) {
        COMPILE(.target = "cpu", .image = "int a = b;", .use_cache = true);

        assert_int_equal(c->status, COMPILED_FAILED);
        assert_int_equal(count_files(cache, true), 0);
}

/* Opening a FIFO waits for a writer, so this never ends by itself. */
static char *endless_source(void) {
        char *text;

        assert_true(asprintf(&text, "#include \"%s\"\n", fifo) > 0);
        return text;
}

static void a_compile_that_takes_too_long_is_ended(void **state) {
        _cleanup_(freep) char *endless = endless_source();
        COMPILE(.target = "cpu", .image = endless, .timeout = "1", .use_cache = true);

        assert_int_equal(c->status, COMPILED_FAILED);
        assert_string_equal(c->log, "the compiler was stopped after its timeout of 1 s");
        assert_int_equal(count_files(cache, true), 0);
}

static void one_that_fills_its_memory_is_told_so(void **state) {
        const bool is_off = BOUND_IS_OFF; /* then it is compiled */
        COMPILE(.target = "sm_90", .memory = "160",
                .image = "#define A 1,2,3,4,5,6,7,8,9,10,\n"
                         "#define B A A A A A A A A A A\n#define C B B B B B B B B B B\n"
                         "#define D C C C C C C C C C C\n#define E D D D D D D D D D D\n"
                         "__device__ const int x[] = { E E E E E E E E E E E E E E E E E E 0 };\n"
                         "extern \"C\" __global__ void k(int *y) { y[0] = x[y[1]]; }\n");

        if (c->status == COMPILED_NO_COMPILER)
                return; /* not on this machine */
        if (is_off)
                return;
        assert_int_equal(c->status, COMPILED_FAILED);
        assert_non_null(strstr(c->log, "memory"));
}

static void asked_to_end_it_cleans_up(void **state) {
        _cleanup_(freep) char *endless = endless_source();
        _cleanup_(run_finish) Run run = {
                .in_fd = -1, .out_fd = -1, .target = "cpu", .image = endless, .use_cache = true};
        int fd;

        start(&run);
        fd = open(fifo, O_WRONLY | O_CLOEXEC); /* returns once the compiler reads it */
        assert_true(fd >= 0);
        assert_int_equal(kill(run.pid, SIGTERM), 0);
        assert_int_not_equal(finish(&run), 0);
        close(fd);
        assert_int_equal(count_files(cache, true), 0);
}

static void what_a_macro_includes_is_not_cached(void **state) {
        COMPILE(.target = "cpu", .image = "#define HEADER <stdint.h>\n# include HEADER\n",
                .use_cache = true);

        assert_int_equal(c->status, COMPILED_OK);
        assert_int_equal(count_files(cache, true), 0);
}

/* The worker that asked is killed: its compiler becomes ours, and ends with all that it started. */
static void it_ends_with_who_asked(void **state) {
        _cleanup_(freep) char *endless = endless_source();
        _cleanup_(run_finish) Run run = {
                .in_fd = -1, .out_fd = -1, .target = "cpu", .image = endless, .use_cache = true};
        int fd, told[2];
        pid_t asking;

        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        assert_int_equal(pipe2(told, O_CLOEXEC), 0);
        asking = fork();
        if (asking == 0) {
                start(&run);
                (void)!write(told[1], &run.pid, sizeof(run.pid));
                pause();
        }
        assert_int_equal(read(told[0], &run.pid, sizeof(run.pid)), sizeof(run.pid));
        fd = open(fifo, O_WRONLY | O_CLOEXEC); /* returns once the compiler reads it */
        assert_true(fd >= 0);
        assert_int_equal(kill(asking, SIGKILL), 0);
        assert_int_equal(waitpid(asking, NULL, 0), asking);
        assert_int_not_equal(finish(&run), 0);
        close(fd);
        close(told[0]);
        close(told[1]);
        assert_int_equal(count_files(cache, true), 0);
}

static void a_wrong_command_line_is_refused(void **state) {
        Run run = {.target = "sm_x", .image = source};

        start(&run);
        assert_int_equal(WEXITSTATUS(finish(&run)), 2);
        run_finish(&run);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(source_becomes_an_image_for_the_cpu),
                cmocka_unit_test(source_becomes_a_cubin),
                cmocka_unit_test(kernels_have_twins_that_are_not_told),
                cmocka_unit_test(a_kernel_that_is_called_like_a_twin_is_the_users),
                cmocka_unit_test(so_it_is_for_the_cpu),
                cmocka_unit_test(ptx_is_linked_with_twins),
                cmocka_unit_test(a_linker_that_takes_no_twins_gets_the_module_as_it_came),
                cmocka_unit_test(so_does_one_that_twins_crash),
                cmocka_unit_test(a_checked_module_has_checks_and_no_twins),
                cmocka_unit_test(so_has_one_for_the_cpu),
                cmocka_unit_test(what_has_no_ptx_cannot_be_checked),
                cmocka_unit_test(a_checked_module_that_calls_malloc_is_refused),
                cmocka_unit_test(broken_ptx_is_told_as_it_is),
                cmocka_unit_test(an_error_names_the_clients_file_and_line),
                cmocka_unit_test(an_error_of_the_preprocessor_names_it_too),
                cmocka_unit_test(the_cpu_takes_ptx),
                cmocka_unit_test(the_cpu_takes_no_code_of_gpus),
                cmocka_unit_test(what_is_no_module_is_told),
                cmocka_unit_test(a_format_that_does_not_match_is_told),
                cmocka_unit_test(a_library_of_the_machine_is_refused),
                cmocka_unit_test(an_option_that_is_not_allowed_is_told),
                cmocka_unit_test(the_second_time_comes_from_the_cache),
                cmocka_unit_test(errors_are_not_cached),
                cmocka_unit_test(a_compile_that_takes_too_long_is_ended),
                cmocka_unit_test(one_that_fills_its_memory_is_told_so),
                cmocka_unit_test(asked_to_end_it_cleans_up),
                cmocka_unit_test(what_a_macro_includes_is_not_cached),
                cmocka_unit_test(it_ends_with_who_asked),
                cmocka_unit_test(a_wrong_command_line_is_refused),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
