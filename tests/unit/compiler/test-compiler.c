/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuqd-compiler from outside: what is asked on its command line, and the result.
 * $GPUQ_COMPILER is the program, $GPUQ_LIBEXEC a folder made like libexec/gpuq.
 */

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
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
        const char *const *kernels; /* NULL-terminated, or NULL */
        const char *headers;        /* the image is text, and they are behind it */
        size_t n_headers;
        const char *timeout;
        const char *memory;  /* MiB */
        const char *libexec; /* of built-in kernels; NULL: $GPUQ_LIBEXEC */
        bool use_cache;
        const char *builtin_cache; /* or NULL */
        bool fake_linker;          /* fake-linker.c, wherever else one may be */
        bool fenced;
        const char *libraries; /* folders; NULL: none */
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
        char in[12], out[12], length[24], n_headers[24];
        const char *argv[ARGUMENTS_MAX] = {
                getenv("GPUQ_COMPILER"),
                "--target",
                run->target,
                "--out",
                out,
                "--name",
                "my.cu",
                "--libexec",
                run->libexec ? run->libexec : getenv("GPUQ_LIBEXEC"),
                "--format",
                run->format ? run->format : "auto",
        };
        size_t i = 11;

        run->in_fd = memfd_create("in", 0);
        run->out_fd = memfd_create("out", 0);
        assert_int_equal(pwrite(run->in_fd, run->image, n, 0), n);
        snprintf(in, sizeof(in), "%d", run->in_fd);
        if (!run->libexec) {
                argv[i++] = "--in";
                argv[i++] = in;
        }
        snprintf(out, sizeof(out), "%d", run->out_fd);
        if (run->n_headers) {
                assert_int_equal(pwrite(run->in_fd, run->headers, run->n_headers, n),
                                 run->n_headers);
                snprintf(length, sizeof(length), "%zu", n);
                snprintf(n_headers, sizeof(n_headers), "%zu", run->n_headers);
                argv[i++] = "--length";
                argv[i++] = length;
                argv[i++] = "--headers";
                argv[i++] = n_headers;
        }
        if (run->use_cache) {
                argv[i++] = "--cache";
                argv[i++] = cache;
        }
        if (run->builtin_cache) {
                argv[i++] = "--builtin-cache";
                argv[i++] = run->builtin_cache;
        }
        if (run->fenced)
                argv[i++] = "--fence";
        if (run->libraries) {
                argv[i++] = "--libraries";
                argv[i++] = run->libraries;
        }
        if (run->timeout) {
                argv[i++] = "--timeout";
                argv[i++] = run->timeout;
        }
        if (run->memory) {
                argv[i++] = "--memory";
                argv[i++] = run->memory;
        }
        for (const char *const *kernel = run->kernels; kernel && *kernel; kernel++) {
                argv[i++] = "--kernel";
                argv[i++] = *kernel;
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

#define PTX(words)                                                                                 \
        "//\n.version 6.0\n.target sm_60\n.address_size 64\n// " words                             \
        "\n.visible .entry k(.param .u32 p)\n{\nret;\n}\n"

/* ---- names of kernels ------------------------------------------------------------- */

static const char templates[] =
        "namespace ns {\n"
        "template <class T, unsigned N> __global__ void reduce(T *p) { p[0] = N; }\n"
        "typedef double real;\n"
        "}\n"
        "template <typename T> __global__ void __launch_bounds__(32) my_sqrt(T *p) { p[0] = p[1]; "
        "}\n"
        "extern \"C\" __global__ void plain(int *p) { p[0] = 1; }\n"
        "__global__ void add(int *p, int n) { p[0] = n; }\n";

static const char *const good_names[] = {
        "ns::reduce<float, 256>", "my_sqrt<ns::real>", "plain", "add", "_Z3addPii", NULL,
};
static const char *const good_symbols[] = {
        "_ZN2ns6reduceIfLj256EEEvPT_", "_Z7my_sqrtIdEvPT_", "plain", "_Z3addPii", "_Z3addPii",
};

/* The standard library's headers would add variables to the module. */
static void source_that_lacks_integers_alone_gets_no_more(void **state) {
        COMPILE(.target = "sm_90",
                .image = "extern \"C\" __global__ void k(int64_t *x) { *x = 1; }");

        if (c->status == COMPILED_NO_COMPILER)
                skip(); /* not on this machine */
        assert_int_equal(c->status, COMPILED_OK);
        assert_null(memmem(c->image, c->n_image, "numeric_limits", strlen("numeric_limits")));
}

static void assert_named(const Compiled *c) {
        assert_string_equal(c->log, "");
        assert_int_equal(c->status, COMPILED_OK);
        assert_int_equal(c->n_named, ARRAY_SIZE(good_symbols));
        for (size_t i = 0; i < ARRAY_SIZE(good_symbols); i++)
                assert_string_equal(c->named[i], good_symbols[i]);
        assert_int_equal(c->n_kernels, 4);
        assert_string_equal(find(c, "ns::reduce<float, 256u>")->symbol, good_symbols[0]);
        assert_int_equal(c->n_variables, 0);
}

static void templates_are_instantiated_by_name_for_the_cpu(void **state) {
        COMPILE(.target = "cpu", .image = templates, .kernels = good_names);

        assert_named(c);
}

static void so_they_are_for_a_gpu(void **state) {
        COMPILE(.target = "sm_90", .image = templates, .kernels = good_names);

        if (c->status == COMPILED_NO_COMPILER)
                return; /* not on this machine */
        assert_named(c);
        assert_null(memmem(c->image, c->n_image, "gpuq_instance", strlen("gpuq_instance")));
}

static void assert_unknown(const char *const *kernels, const char *told) {
        COMPILE(.target = "cpu", .image = templates, .kernels = kernels);

        assert_int_equal(c->status, COMPILED_NO_KERNEL);
        if (!strstr(c->log, told))
                fail_msg("%s is not in: %s", told, c->log);
        assert_non_null(strstr(c->log, "it has: "));
        assert_non_null(strstr(c->log, "my_sqrt"));
        assert_null(strstr(c->log, "\n"));
}

static void an_unknown_name_is_told_with_the_names_there_are(void **state) {
        assert_unknown((const char *const[]){"plain", "my_sqr<int>", NULL},
                       "did you mean \"my_sqrt<int>\"?");
        assert_unknown((const char *const[]){"my_sqr<int>", NULL},
                       "my.cu has no kernel \"my_sqr<int>\"");
        assert_unknown((const char *const[]){"my_sqrt<No>", NULL}, "No");
        assert_unknown((const char *const[]){"plan", NULL}, "did you mean \"plain\"?");
        assert_unknown((const char *const[]){"my_sqrt", NULL}, "no kernel \"my_sqrt\"");
        assert_unknown((const char *const[]){"_Z3addPi", NULL}, "no kernel \"_Z3addPi\"");
}

static void an_error_in_a_template_is_one_of_the_source(void **state) {
        COMPILE(.target = "cpu",
                .image = "\ntemplate <class T> __global__ void f(T t) { t.none(); }\n",
                .kernels = (const char *const[]){"f<int>", NULL});

        assert_int_equal(c->status, COMPILED_FAILED);
        assert_true(strstr(c->log, "my.cu:2:") || strstr(c->log, "my.cu(2)"));
}

static void ptx_has_the_names_of_its_kernels_only(void **state) {
        static const char ptx[] = ".version 6.0\n.target sm_60\n.address_size 64\n"
                                  ".entry _Z1fIiLi3EEvPT_(.param .u64 p) { ret; }\n";
        COMPILE(.target = "cpu", .image = ptx,
                .kernels = (const char *const[]){"f<int,0x3>", NULL});
        _cleanup_(run_finish) Run other = {
                .in_fd = -1,
                .out_fd = -1,
                .target = "cpu",
                .image = ptx,
                .kernels = (const char *const[]){"f<int, 4>", NULL},
        };

        assert_int_equal(c->status, COMPILED_OK);
        assert_string_equal(c->named[0], "_Z1fIiLi3EEvPT_");
        c = compile(&other);
        assert_int_equal(c->status, COMPILED_NO_KERNEL);
        assert_non_null(strstr(c->log, "it has: f<int, 3>"));
}

static void other_names_are_another_entry_of_the_cache(void **state) {
        const char *const first[] = {"my_sqrt<int>", NULL}, *const second[] = {"my_sqrt<char>",
                                                                               NULL};

        for (size_t i = 0; i < 3; i++) {
                COMPILE(.target = "cpu", .image = templates, .kernels = i < 2 ? first : second,
                        .use_cache = true);

                assert_int_equal(c->status, COMPILED_OK);
                assert_int_equal(!!(c->flags & COMPILED_FROM_CACHE), i == 1);
                assert_string_equal(c->named[0], i < 2 ? "_Z7my_sqrtIiEvPT_" : "_Z7my_sqrtIcEvPT_");
        }
        (void)count_files(cache, true);
}

/* ---- headers ----------------------------------------------------------------------- */

#define HEADERS(bytes) .headers = (bytes), .n_headers = sizeof(bytes)

static const char includer[] =
        "#include \"a.h\"\n#include <sub/b.h>\n__global__ void k(int *p) { p[0] = A + B; }\n";
static const char included[] = "@/x/a.h\0#define A 1\n\0"
                               "@/x/sub/b.h\0#include \"c.h\"\n\0"
                               "@/x/sub/c.h\0#define B 2\n";

static void headers_that_were_sent_are_included(void **state) {
        COMPILE(.target = "cpu", .image = includer, HEADERS(included), .option = "-I@/x");

        assert_string_equal(c->log, "");
        assert_int_equal(c->status, COMPILED_OK);
        assert_int_equal(c->n_kernels, 1);
}

static void so_they_are_from_their_root(void **state) {
        COMPILE(.target = "sm_90", .image = includer,
                HEADERS("a.h\0#define A 1\n\0sub/b.h\0#define B 2\n"));

        if (c->status == COMPILED_NO_COMPILER)
                return; /* not on this machine */
        assert_string_equal(c->log, "");
        assert_int_equal(c->status, COMPILED_OK);
}

static void a_result_depends_on_the_headers(void **state) {
        for (size_t i = 0; i < 3; i++) {
                static const char other[] = "@/x/a.h\0#define A 3\n\0@/x/sub/b.h\0#define B 2\n";
                COMPILE(.target = "cpu", .image = includer, .option = "-I@/x", .use_cache = true,
                        .headers = i < 2 ? included : other,
                        .n_headers = i < 2 ? sizeof(included) : sizeof(other));

                assert_int_equal(c->status, COMPILED_OK);
                assert_int_equal(!!(c->flags & COMPILED_FROM_CACHE), i == 1);
        }
        assert_int_equal(count_files(cache, true), 2); /* and no work folder */
}

static void an_error_in_a_header_has_the_clients_path(void **state) {
        COMPILE(.target = "cpu", .image = "#include <a.h>\n", HEADERS("@/x/a.h\0\nwrong;\n"),
                .option = "-I@/x");

        assert_int_equal(c->status, COMPILED_FAILED);
        assert_true(strstr(c->log, "/x/a.h:2:") || strstr(c->log, "/x/a.h(2)"));
        assert_null(strstr(c->log, "@"));
        assert_null(strstr(c->log, "headers/"));
}

static void assert_refused(const char *headers, size_t n_headers) {
        COMPILE(.target = "cpu", .image = includer, .headers = headers, .n_headers = n_headers);

        assert_int_equal(c->status, COMPILED_BAD_OPTION);
}

static void headers_elsewhere_are_refused(void **state) {
        static const char *const names[] = {"/a.h", "../a.h", "a/../../b.h", "",
                                            "a/",   "a//b",   ".",           "a\nb"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char bytes[64];
                int n = snprintf(bytes, sizeof(bytes), "%s%ctext%c", names[i], 0, 0);

                assert_refused(bytes, n);
        }
        assert_refused("a\0text", sizeof("a\0text") - 1); /* its end is missing */
        assert_refused("a", sizeof("a"));
        assert_refused("a\0\0a/b\0", sizeof("a\0\0a/b\0"));
}

static void options_for_gpus_compile_for_both(void **state) {
        static const char *const options[] = {"-maxrregcount=32", "-lineinfo", "-G"};

        for (size_t i = 0; i < 4 * ARRAY_SIZE(options); i++) {
                const bool is_ptx = i >= 2 * ARRAY_SIZE(options);
                COMPILE(.target = i % 2 ? "sm_90" : "cpu",
                        .image = is_ptx ? PTX("")
                                        : "__global__ void k(float *p) { p[threadIdx.x] *= 2; }\n",
                        .option = options[i / 2 % ARRAY_SIZE(options)]);

                if (c->status == COMPILED_NO_COMPILER)
                        continue; /* not on this machine */
                assert_string_equal(c->log, "");
                assert_int_equal(c->status, COMPILED_OK);
                if (i == 5)
                        assert_non_null(memmem(c->image, c->n_image, ".debug_info", 11));
        }
}

/* ---- twins ------------------------------------------------------------------------- */

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

#define ANY_SOURCE "__global__ void k(float *p) { p[0] = 1; }"

static void compiler_and_linker_come_from_given_folders_first(void **state) {
        _cleanup_(freep) char *folders = NULL;

        assert_true(asprintf(&folders, "/nonexistent::%s", getenv("GPUQ_FAKE_LINKER")) > 0);
        {
                COMPILE(.target = "sm_90", .image = ANY_SOURCE, .option = "--fmad=false",
                        .libraries = folders);

                assert_int_equal(c->status, COMPILED_OK);
                assert_non_null(find(c, "of_a_stand_in"));
                assert_non_null(memmem(c->image, c->n_image, "// --fmad=false\n", 16));
        }
        COMPILE(.target = "sm_90", .image = PTX("REFUSE_PTX"), .libraries = folders);
        assert_int_equal(c->status, COMPILED_FAILED);
        assert_string_equal(c->log, "Unsupported .version");
}

static void other_folders_are_another_entry_of_the_cache(void **state) {
        for (unsigned i = 0; i < 3; i++) {
                COMPILE(.target = "cpu", .image = PTX(""), .use_cache = true,
                        .libraries = i < 2 ? "/nonexistent" : "/nonexistent:/");

                assert_int_equal(c->status, COMPILED_OK);
                assert_int_equal(c->flags & COMPILED_FROM_CACHE, i == 1 ? COMPILED_FROM_CACHE : 0);
        }
        (void)count_files(cache, true);
}

static void write_kernels(const char *name, const char *text) {
        _cleanup_(freep) char *path = NULL;
        FILE *file;

        assert_true(asprintf(&path, "%s/kernels/%s", dir, name) > 0);
        file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

/* NULL: there is none. */
static void make_kernels(const char *of_nvcc, const char *of_clang) {
        _cleanup_(freep) char *folder = NULL;

        assert_true(asprintf(&folder, "%s/kernels", dir) > 0);
        assert_int_equal(mkdir(folder, 0700), 0);
        write_kernels("builtin.txt", "w\tk\tk\tdoes nothing\\n\\n\n");
        write_kernels("builtin.ptx", of_clang);
        if (of_nvcc)
                write_kernels("builtin.nvcc.ptx", of_nvcc);
}

static void remove_kernels(void) {
        _cleanup_(freep) char *folder = NULL;

        assert_true(asprintf(&folder, "%s/kernels", dir) > 0);
        (void)count_files(folder, true);
        assert_int_equal(rmdir(folder), 0);
}

static void assert_built_in(const char *of_nvcc, const char *of_clang, const char *linked,
                            bool twins) {
        make_kernels(of_nvcc, of_clang);
        {
                COMPILE(.target = "sm_90", .format = "builtin", .image = "", .fake_linker = true,
                        .libexec = dir);

                assert_int_equal(c->status, COMPILED_OK);
                assert_string_equal(c->log, "");
                assert_int_equal(has_twin(c, "k"), twins);
                assert_non_null(memmem(c->image, c->n_image, linked, strlen(linked)));
        }
        remove_kernels();
}

static void built_in_kernels_are_nvccs_where_they_link(void **state) {
        assert_built_in(PTX("BY_NVCC"), PTX("BY_CLANG"), "BY_NVCC", true);
}

static void elsewhere_they_are_clangs(void **state) {
        assert_built_in(PTX("BY_NVCC REFUSE_PTX"), PTX("BY_CLANG"), "BY_CLANG", true);
        assert_built_in(NULL, PTX("BY_CLANG"), "BY_CLANG", true);
        assert_built_in(PTX("BY_NVCC CRASH_TWINS"), PTX("BY_CLANG"), "BY_CLANG", false);
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

#define LAUNCHES                                                                                   \
        "//\n.version 8.0\n.target sm_60\n.address_size 64\n"                                      \
        ".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f, "             \
        ".param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);\n"                  \
        ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 s);\n"  \
        ".visible .entry child(.param .u64 p)\n{\n.reg .b64 %rd1;\nld.param.u64 %rd1, [p];\n"      \
        "ret;\n}\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd1;\n"                          \
        "ld.param.u64 %rd1, [p];\n{\n.param .b64 a; .param .b64 s; .param .b32 o;\n"               \
        "st.param.b64 [a], %rd1;\nst.param.b64 [s], 0;\n"                                          \
        "call (o), __cudaCDP2LaunchDeviceV2, (a, s);\n}\nret;\n}\n"
#define LAUNCHES_SOURCE                                                                            \
        "__global__ void child(int *x) { x[threadIdx.x] += 2; }\n"                                 \
        "extern \"C\" __global__ void k(int *x) { child<<<1, 32>>>(x); }\n"

/* Return: false, also where no NVRTC is here, whose errors a test can know. */
static bool has_nvrtc(const Compiled *c) {
        return !strstr(c->log, "compiled by clang") && c->status != COMPILED_NO_COMPILER;
}

static void ptx_that_launches_kernels_is_linked_with_the_device_runtime(void **state) {
        COMPILE(.target = "sm_90", .image = LAUNCHES, .fake_linker = true);

        assert_int_equal(c->status, COMPILED_OK);
        assert_int_equal(c->n_kernels, 2);
        assert_non_null(memmem(c->image, c->n_image, "// a library of the CUDA device", 31));
        assert_true(c->flags & COMPILED_HAS_LAUNCHES);
        assert_true(has_twin(c, "child"));
        assert_false(has_twin(c, "k"));
}

static void other_ptx_is_linked_without_it(void **state) {
        COMPILE(.target = "sm_90", .image = PTX("cudaLaunchDeviceV2"), .fake_linker = true);

        assert_int_equal(c->status, COMPILED_OK);
        assert_false(c->flags & COMPILED_HAS_LAUNCHES);
        assert_null(memmem(c->image, c->n_image, "// a library of the CUDA device", 31));
}

static void source_that_launches_kernels_becomes_a_cubin(void **state) {
        COMPILE(.target = "sm_90", .image = LAUNCHES_SOURCE);

        if (!has_nvrtc(c))
                skip();
        assert_int_equal(c->status, COMPILED_OK);
        assert_int_equal(c->n_kernels, 2);
        assert_int_equal(c->n_variables, 0);
        assert_string_equal(c->kernels[0].name, "child");
        assert_true(has_twin(c, "child"));
        assert_false(has_twin(c, "k"));
}

static void launches_in_kernels_are_refused(const char *target, bool fenced, const char *option,
                                            const char *why) {
        COMPILE(.target = target, .image = LAUNCHES, .fake_linker = true, .fenced = fenced,
                .option = option);

        assert_int_equal(c->status, COMPILED_FAILED);
        assert_string_equal(c->log, why);
}

static void the_cpu_launches_no_kernels_from_kernels(void **state) {
        static const char why[] = "my.cu: a kernel launches kernels (dynamic parallelism), which "
                                  "works on GPUs, but not on the CPU driver";

        launches_in_kernels_are_refused("cpu", false, NULL, why);
        launches_in_kernels_are_refused("cpu", true, NULL, why);
        launches_in_kernels_are_refused("cpu", false, "--check", why);
}

static void so_it_is_with_source(void **state) {
        COMPILE(.target = "cpu", .image = LAUNCHES_SOURCE);

        assert_int_equal(c->status, COMPILED_FAILED);
        assert_non_null(strstr(c->log, has_nvrtc(c) ? "launches kernels (dynamic parallelism)"
                                                    : "kernels that launch kernels need a GPU"));
}

static void checked_or_fenced_kernels_launch_none(void **state) {
        launches_in_kernels_are_refused(
                "sm_90", false, "--check",
                "my.cu cannot run checked: a kernel launches kernels (dynamic parallelism), and "
                "the accesses of kernels that no job launches cannot be checked");
        launches_in_kernels_are_refused(
                "sm_90", true, NULL,
                "my.cu cannot run with fence = yes, as gpuqd is configured: a kernel launches "
                "kernels (dynamic parallelism), and the fence keeps only the kernels of a job to "
                "its memory");
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

static char *make_ours(void) {
        char *ours;

        assert_true(asprintf(&ours, "%s/ours", dir) > 0);
        assert_int_equal(mkdir(ours, 0755), 0);
        return ours;
}

static void remove_ours(const char *ours) {
        (void)count_files(ours, true);
        assert_int_equal(rmdir(ours), 0);
        (void)count_files(cache, true);
}

static void compile_builtin(const char *builtin_cache, bool from_cache) {
        COMPILE(.target = "sm_90", .format = "builtin", .image = "", .fake_linker = true,
                .libexec = dir, .use_cache = true, .builtin_cache = builtin_cache);

        assert_int_equal(c->status, COMPILED_OK);
        assert_int_equal(!!(c->flags & COMPILED_FROM_CACHE), from_cache);
}

static void built_in_kernels_are_kept_for_all_by_who_may(void **state) {
        _cleanup_(freep) char *ours = make_ours();

        make_kernels(NULL, PTX("BY_CLANG"));
        compile_builtin("/proc/self/no-such-folder", false); /* where nobody may */
        compile_builtin("/proc/self/no-such-folder", true);
        assert_int_equal(count_files(cache, true), 1);

        compile_builtin(ours, false);
        compile_builtin(ours, true);
        assert_int_equal(count_files(ours, false), 1);
        assert_int_equal(count_files(cache, false), 0);
        remove_kernels();
        remove_ours(ours);
}

static void what_a_crash_led_to_is_not_kept_for_all(void **state) {
        _cleanup_(freep) char *ours = make_ours();

        make_kernels(PTX("CRASH_TWINS"), PTX("BY_CLANG"));
        compile_builtin(ours, false);
        compile_builtin(ours, true);
        assert_int_equal(count_files(ours, false), 0);
        assert_int_equal(count_files(cache, false), 1);
        remove_kernels();
        remove_ours(ours);
}

static void no_module_of_a_user_is_kept_for_all(void **state) {
        _cleanup_(freep) char *ours = make_ours();

        for (unsigned i = 0; i < 2; i++) {
                COMPILE(.target = "sm_90", .image = PTX(""), .fake_linker = true, .use_cache = true,
                        .builtin_cache = ours);

                assert_int_equal(c->status, COMPILED_OK);
                assert_int_equal(!!(c->flags & COMPILED_FROM_CACHE), i);
        }
        assert_int_equal(count_files(ours, false), 0);
        remove_ours(ours);
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

/* Until it has its child, and so expects signals. A writer would tell more, but also wake who opens the FIFO. */
static void await_child(pid_t pid) {
        char path[64], first;
        bool has_child = false;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
        while (!has_child) {
                _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

                assert_true(fd >= 0); /* else it has ended */
                has_child = read(fd, &first, 1) == 1;
                sched_yield();
        }
}

static void asked_to_end_it_cleans_up(void **state) {
        _cleanup_(freep) char *endless = endless_source();
        _cleanup_(run_finish) Run run = {
                .in_fd = -1, .out_fd = -1, .target = "cpu", .image = endless, .use_cache = true};

        start(&run);
        await_child(run.pid);
        assert_int_equal(kill(run.pid, SIGTERM), 0);
        assert_int_not_equal(finish(&run), 0);
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
        int told[2];
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
        await_child(run.pid);
        assert_int_equal(kill(asking, SIGKILL), 0);
        assert_int_equal(waitpid(asking, NULL, 0), asking);
        assert_int_not_equal(finish(&run), 0);
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
                cmocka_unit_test(source_that_lacks_integers_alone_gets_no_more),
                cmocka_unit_test(templates_are_instantiated_by_name_for_the_cpu),
                cmocka_unit_test(so_they_are_for_a_gpu),
                cmocka_unit_test(an_unknown_name_is_told_with_the_names_there_are),
                cmocka_unit_test(an_error_in_a_template_is_one_of_the_source),
                cmocka_unit_test(ptx_has_the_names_of_its_kernels_only),
                cmocka_unit_test(other_names_are_another_entry_of_the_cache),
                cmocka_unit_test(headers_that_were_sent_are_included),
                cmocka_unit_test(so_they_are_from_their_root),
                cmocka_unit_test(a_result_depends_on_the_headers),
                cmocka_unit_test(an_error_in_a_header_has_the_clients_path),
                cmocka_unit_test(headers_elsewhere_are_refused),
                cmocka_unit_test(options_for_gpus_compile_for_both),
                cmocka_unit_test(kernels_have_twins_that_are_not_told),
                cmocka_unit_test(a_kernel_that_is_called_like_a_twin_is_the_users),
                cmocka_unit_test(so_it_is_for_the_cpu),
                cmocka_unit_test(ptx_is_linked_with_twins),
                cmocka_unit_test(compiler_and_linker_come_from_given_folders_first),
                cmocka_unit_test(other_folders_are_another_entry_of_the_cache),
                cmocka_unit_test(built_in_kernels_are_nvccs_where_they_link),
                cmocka_unit_test(elsewhere_they_are_clangs),
                cmocka_unit_test(a_linker_that_takes_no_twins_gets_the_module_as_it_came),
                cmocka_unit_test(so_does_one_that_twins_crash),
                cmocka_unit_test(a_checked_module_has_checks_and_no_twins),
                cmocka_unit_test(so_has_one_for_the_cpu),
                cmocka_unit_test(what_has_no_ptx_cannot_be_checked),
                cmocka_unit_test(a_checked_module_that_calls_malloc_is_refused),
                cmocka_unit_test(ptx_that_launches_kernels_is_linked_with_the_device_runtime),
                cmocka_unit_test(other_ptx_is_linked_without_it),
                cmocka_unit_test(source_that_launches_kernels_becomes_a_cubin),
                cmocka_unit_test(the_cpu_launches_no_kernels_from_kernels),
                cmocka_unit_test(so_it_is_with_source),
                cmocka_unit_test(checked_or_fenced_kernels_launch_none),
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
                cmocka_unit_test(built_in_kernels_are_kept_for_all_by_who_may),
                cmocka_unit_test(what_a_crash_led_to_is_not_kept_for_all),
                cmocka_unit_test(no_module_of_a_user_is_kept_for_all),
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
