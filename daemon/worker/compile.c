/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compile
 *
 * A Compile is freed when both its uv handles are closed: the child's and the
 * timer's.
 */
#include "worker/compile.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "compiler/compiler.h"
#include "util/write_all.h"

/* A compiler is killed this long after its own time limit. */
#define COMPILE_GRACE_MS 2000

/* A result: the largest image, as a cubin, with its log and names. */
#define COMPILE_RESULT_MAX (UINT64_C(1) << 30)

/* The end of its stderr, for the message if it died. */
#define COMPILE_COMPLAINT_MAX (1u << 20)

struct Compile {
        Compilers *compilers;
        TAILQ_ENTRY(Compile) link; /* compilers->running or ->waiting */
        CompileFunc func;          /* NULL: cancelled */
        void *userdata;

        Gpuq__V1__Format format;
        uint64_t length;
        char *name;
        char **texts; /* options, then kernels */
        size_t n_options, n_kernels;
        char headers[24];              /* bytes, or "" */
        int in, words, out, complaint; /* descriptors */

        uv_process_t process;
        uv_timer_t timer;
        bool running;
        bool timed_out;
        unsigned n_handles; /* not yet closed */
        int64_t exit_status;
        int exit_signal;
};

static Compile *compile_free(Compile *compile) {
        if (!compile)
                return NULL;

        for (size_t i = 0; i < compile->n_options + compile->n_kernels; ++i)
                free(compile->texts[i]);
        free(compile->texts);
        free(compile->name);
        if (compile->in >= 0)
                close(compile->in);
        if (compile->words >= 0)
                close(compile->words);
        if (compile->out >= 0)
                close(compile->out);
        if (compile->complaint >= 0)
                close(compile->complaint);
        free(compile);
        return NULL;
}
DEFINE_CLEANUP(Compile, compile_free)

void compilers_init(Compilers *compilers, uv_loop_t *loop, const CompilerSettings *settings) {
        long n_cores = sysconf(_SC_NPROCESSORS_ONLN);

        *compilers = (Compilers){
                .loop = loop,
                .settings = *settings,
                .n_max = n_cores > 2 ? (unsigned)(n_cores / 2) : 1,
        };
        TAILQ_INIT(&compilers->running);
        TAILQ_INIT(&compilers->waiting);
}

void compilers_kill(Compilers *compilers) {
        Compile *compile;

        TAILQ_FOREACH (compile, &compilers->running, link)
                kill(-compile->process.pid, SIGKILL);
}

/* ---- the end ---------------------------------------------------------------- */

static char *compile_read(int fd, uint64_t max, size_t *ret_n) {
        struct stat st;
        char *data;
        size_t n = 0;

        if (fstat(fd, &st) < 0 || st.st_size < 0 || (uint64_t)st.st_size > max)
                return NULL;
        data = malloc((size_t)st.st_size + 1);
        if (!data)
                return NULL;

        while (n < (size_t)st.st_size) {
                ssize_t k = pread(fd, data + n, (size_t)st.st_size - n, (off_t)n);

                if (k <= 0)
                        break;
                n += (size_t)k;
        }
        data[n] = '\0';
        *ret_n = n;
        return data;
}

/* It ended without a result of its own. */
static void compile_fail_ended(Compile *compile, Failure *failure) {
        _cleanup_(freep) char *complaint = NULL;
        size_t n = 0;

        if (compile->timed_out || compile->exit_signal == SIGXCPU ||
            compile->exit_signal == SIGALRM) {
                failure_set(failure, GPUQ__V1__CODE__E_COMPILE,
                            "the compiler of %s was stopped after its timeout of %u s",
                            compile->name, compile->compilers->settings.timeout_s);
                return;
        }

        complaint = compile_read(compile->complaint, COMPILE_COMPLAINT_MAX, &n);
        if (complaint)
                while (n > 0 && complaint[n - 1] == '\n')
                        complaint[--n] = '\0';
        if (compile->exit_signal)
                failure_set(failure, GPUQ__V1__CODE__E_COMPILE,
                            "the compiler of %s died: %s%s%.2000s", compile->name,
                            strsignal(compile->exit_signal), n ? ": " : "", n ? complaint : "");
        else
                failure_set(failure, GPUQ__V1__CODE__E_INTERNAL,
                            "gpuqd-compiler of %s failed with status %lld%s%.2000s", compile->name,
                            (long long)compile->exit_status, n ? ": " : "", n ? complaint : "");
}

static Gpuq__V1__Code compile_code(CompiledStatus status) {
        switch (status) {
                case COMPILED_FAILED:
                case COMPILED_NO_COMPILER:
                        return GPUQ__V1__CODE__E_COMPILE;
                case COMPILED_NOT_MODULE:
                case COMPILED_NO_BINARY:
                        return GPUQ__V1__CODE__E_IMAGE;
                case COMPILED_BAD_OPTION:
                        return GPUQ__V1__CODE__E_INVALID;
                case COMPILED_NO_KERNEL:
                        return GPUQ__V1__CODE__E_NOT_FOUND;
                default:
                        return GPUQ__V1__CODE__E_INTERNAL;
        }
}

static int compile_result(Compile *compile, Compiled **ret_compiled, void **ret_data,
                          Failure *failure) {
        _cleanup_(compiled_freep) Compiled *compiled = NULL;
        _cleanup_(freep) char *data = NULL;
        size_t n_data = 0;
        int r;

        if (compile->exit_status != 0 || compile->exit_signal != 0) {
                compile_fail_ended(compile, failure);
                return FAILURE_E_SET;
        }

        data = compile_read(compile->out, COMPILE_RESULT_MAX, &n_data);
        r = data ? compiled_parse(data, n_data, &compiled) : -ENOMEM;
        if (r)
                return failure_set(failure,
                                   r < 0 ? GPUQ__V1__CODE__E_MEMORY : GPUQ__V1__CODE__E_INTERNAL,
                                   "gpuqd-compiler of %s returned no valid result", compile->name);
        if (compiled->status != COMPILED_OK)
                return failure_set(failure, compile_code(compiled->status), "%s",
                                   compiled->log[0] ? compiled->log
                                                    : compiled_status_name(compiled->status));

        *ret_compiled = TAKE_PTR(compiled);
        *ret_data = TAKE_PTR(data);
        return 0;
}

static void compile_run(Compile *compile);

/* @compile has ended and is in no list. */
static void compile_finish(Compile *compile) {
        Compiled *compiled = NULL;
        Failure failure = {0};
        void *data = NULL;

        if (!compile->func)
                return;
        compile_result(compile, &compiled, &data, &failure);
        compile->func(compile->userdata, compiled, data, &failure);
        compile->func = NULL;
        failure_clear(&failure);
}

static void compile_never_ran(Compile *compile, const char *why) {
        Failure failure = {0};

        if (!compile->func)
                return;
        failure_set(&failure, GPUQ__V1__CODE__E_INTERNAL, "cannot start gpuqd-compiler: %s", why);
        compile->func(compile->userdata, NULL, NULL, &failure);
        compile->func = NULL;
        failure_clear(&failure);
}

static void compilers_next(Compilers *compilers) {
        while (compilers->n_running < compilers->n_max && !TAILQ_EMPTY(&compilers->waiting)) {
                Compile *compile = TAILQ_FIRST(&compilers->waiting);

                TAILQ_REMOVE(&compilers->waiting, compile, link);
                compile_run(compile);
        }
}

static void compile_on_close(uv_handle_t *handle) {
        Compile *compile = handle->data;

        if (--compile->n_handles == 0)
                compile_free(compile);
}

static void compile_on_exit(uv_process_t *process, int64_t status, int signal) {
        Compile *compile = process->data;
        Compilers *compilers = compile->compilers;

        /* Processes that the compiler started do not outlive it. */
        kill(-process->pid, SIGKILL);

        compile->exit_status = status;
        compile->exit_signal = signal;
        compile->running = false;
        TAILQ_REMOVE(&compilers->running, compile, link);
        --compilers->n_running;

        compile_finish(compile);
        uv_close((uv_handle_t *)&compile->process, compile_on_close);
        uv_close((uv_handle_t *)&compile->timer, compile_on_close);
        compilers_next(compilers);
}

static void compile_on_timeout(uv_timer_t *timer) {
        Compile *compile = timer->data;

        compile->timed_out = true;
        if (compile->running)
                kill(-compile->process.pid, SIGKILL);
}

/* ---- the start --------------------------------------------------------------- */

/* Space for the words of compile_words(). */
#define COMPILE_WORDS_MAX 40

typedef struct CompileWords {
        char length[24], timeout[16], device[16], cache_bytes[24];
} CompileWords;

static const char *format_word(Gpuq__V1__Format format) {
        static const char *const words[] = {"auto",   "source",  "ptx",   "cubin",
                                            "fatbin", "builtin", "opencl"};

        return (unsigned)format < ARRAY_SIZE(words) ? words[format] : "auto";
}

/* @args has space for COMPILE_WORDS_MAX, the options, and twice the kernels. Return: how many words there are. */
static size_t compile_words(const Compile *compile, CompileWords *words, const char **args) {
        const CompilerSettings *settings = &compile->compilers->settings;
        size_t n = 0;

        snprintf(words->length, sizeof(words->length), "%llu", (unsigned long long)compile->length);
        snprintf(words->timeout, sizeof(words->timeout), "%u", settings->timeout_s);
        snprintf(words->device, sizeof(words->device), "%u", settings->device);
        snprintf(words->cache_bytes, sizeof(words->cache_bytes), "%llu",
                 (unsigned long long)settings->cache_bytes);

#define COMPILE_WORD(word) args[n++] = (word)
        COMPILE_WORD("--target");
        COMPILE_WORD(settings->target);
        COMPILE_WORD("--format");
        COMPILE_WORD(format_word(compile->format));
        COMPILE_WORD("--out");
        COMPILE_WORD("4");
        COMPILE_WORD("--libexec");
        COMPILE_WORD(settings->libexec);
        COMPILE_WORD("--timeout");
        COMPILE_WORD(words->timeout);
        COMPILE_WORD("--name");
        COMPILE_WORD(compile->name);
        if (compile->in >= 0) {
                COMPILE_WORD("--in");
                COMPILE_WORD("3");
                COMPILE_WORD("--length");
                COMPILE_WORD(words->length);
        }
        if (compile->in >= 0 && *compile->headers) {
                COMPILE_WORD("--headers");
                COMPILE_WORD(compile->headers);
        }
        if (settings->cache) {
                COMPILE_WORD("--cache");
                COMPILE_WORD(settings->cache);
        }
        if (settings->builtin_cache) {
                COMPILE_WORD("--builtin-cache");
                COMPILE_WORD(settings->builtin_cache);
        }
        COMPILE_WORD("--cache-bytes");
        COMPILE_WORD(words->cache_bytes);
        if (settings->libraries) {
                COMPILE_WORD("--libraries");
                COMPILE_WORD(settings->libraries);
        }
        if (strcmp(settings->target, "cpu") != 0) {
                COMPILE_WORD("--cuda-driver");
                COMPILE_WORD("--device");
                COMPILE_WORD(words->device);
        }
        if (settings->fence && compile->format != GPUQ__V1__FORMAT__BUILTIN)
                COMPILE_WORD("--fence");
        for (size_t i = 0; i < compile->n_kernels; ++i) {
                COMPILE_WORD("--kernel");
                COMPILE_WORD(compile->texts[compile->n_options + i]);
        }
        COMPILE_WORD("--");
        for (size_t i = 0; i < compile->n_options; ++i)
                COMPILE_WORD(compile->texts[i]);
#undef COMPILE_WORD
        return n;
}

/*
 * Words are passed in a memfd: every user can read the command lines of all processes, and names
 * and macros are a user's own business.
 */
static int compile_write_words(Compile *compile) {
        _cleanup_(freep) const char **args = NULL;
        CompileWords words;
        size_t n;
        int r = 0;

        args = calloc(COMPILE_WORDS_MAX + compile->n_options + 2 * compile->n_kernels,
                      sizeof(*args));
        if (!args)
                return -ENOMEM;
        compile->words = memfd_create("gpuq-compiler-words", MFD_CLOEXEC);
        if (compile->words < 0)
                return -errno;

        n = compile_words(compile, &words, args);
        for (size_t i = 0; i < n && r == 0; ++i)
                r = write_all(compile->words, args[i], strlen(args[i]) + 1, WRITE_ALL_ON);
        return r;
}

/* The variables that the compiler reads. */
static const char *const compile_variables[] = {
        "PATH",
        "TMPDIR",
        "CUDA_VISIBLE_DEVICES",
        "CUDA_DEVICE_ORDER",
        "CUDA_MPS_PIPE_DIRECTORY",
        "CUDA_CACHE_DISABLE",
};

typedef char *CompileEnvironment[ARRAY_SIZE(compile_variables) + 1];

/* "NAME=VALUE", as getenv() would find it. */
static char *environment_find(const char *name) {
        size_t n_name = strlen(name);

        for (char **entry = environ; *entry; ++entry)
                if (strncmp(*entry, name, n_name) == 0 && (*entry)[n_name] == '=')
                        return *entry;
        return NULL;
}

static void compile_environment(CompileEnvironment environment) {
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_SIZE(compile_variables); ++i) {
                environment[n] = environment_find(compile_variables[i]);
                if (environment[n])
                        ++n;
        }
        environment[n] = NULL;
}

static int compile_spawn(Compile *compile) {
        char program[PATH_MAX], *args[] = {program, (char *)"--words", (char *)"5", NULL};
        uv_stdio_container_t stdio[6] = {
                {.flags = UV_IGNORE},
                {.flags = UV_INHERIT_FD, .data.fd = compile->complaint},
                {.flags = UV_INHERIT_FD, .data.fd = compile->complaint},
                {.flags = compile->in >= 0 ? UV_INHERIT_FD : UV_IGNORE, .data.fd = compile->in},
                {.flags = UV_INHERIT_FD, .data.fd = compile->out},
                {.flags = UV_INHERIT_FD, .data.fd = compile->words},
        };
        CompileEnvironment environment;
        uv_process_options_t options = {
                .file = program,
                .args = args,
                .env = environment,
                .stdio = stdio,
                .stdio_count = ARRAY_SIZE(stdio),
                .exit_cb = compile_on_exit,
                .flags = UV_PROCESS_DETACHED, /* a process group of its own */
        };

        snprintf(program, sizeof(program), "%s/%s", compile->compilers->settings.libexec,
                 COMPILER_PROGRAM);
        compile_environment(environment);
        return uv_spawn(compile->compilers->loop, &compile->process, &options);
}

static void compile_run(Compile *compile) {
        Compilers *compilers = compile->compilers;
        int r;

        r = compile_write_words(compile);
        if (r < 0) {
                compile_never_ran(compile, strerror(-r));
                compile_free(compile);
                return;
        }

        r = compile_spawn(compile);
        compile->process.data = compile;
        if (r < 0) {
                compile_never_ran(compile, uv_strerror(r));
                compile->n_handles = 1; /* uv_spawn() initialises its handle even on failure */
                uv_close((uv_handle_t *)&compile->process, compile_on_close);
                return;
        }

        compile->running = true;
        compile->n_handles = 2;
        TAILQ_INSERT_TAIL(&compilers->running, compile, link);
        ++compilers->n_running;

        uv_timer_init(compilers->loop, &compile->timer);
        compile->timer.data = compile;
        if (compilers->settings.timeout_s > 0)
                uv_timer_start(&compile->timer, compile_on_timeout,
                               compilers->settings.timeout_s * UINT64_C(1000) + COMPILE_GRACE_MS,
                               0);
}

/* Return: 0 or -ENOMEM. @n: how many were copied. */
static int compile_copy_list(char **to, char *const *list, size_t n_list, size_t *n) {
        for (; *n < n_list; ++*n) {
                to[*n] = strdup(list[*n]);
                if (!to[*n])
                        return -ENOMEM;
        }
        return 0;
}

static int compile_copy_texts(Compile *compile, const CompileRequest *request) {
        int r;

        compile->texts =
                calloc(request->n_options + request->n_kernels + 1, sizeof(*compile->texts));
        if (!compile->texts)
                return -ENOMEM;

        r = compile_copy_list(compile->texts, request->options, request->n_options,
                              &compile->n_options);
        if (r < 0)
                return r;
        return compile_copy_list(compile->texts + request->n_options, request->kernels,
                                 request->n_kernels, &compile->n_kernels);
}

static int compile_new(Compilers *compilers, const CompileRequest *request, Compile **ret_compile) {
        _cleanup_(compile_freep) Compile *compile = NULL;

        compile = calloc(1, sizeof(*compile));
        if (!compile)
                return -ENOMEM;

        compile->compilers = compilers;
        compile->format = request->format;
        compile->length = request->length;
        snprintf(compile->headers, sizeof(compile->headers), "%s",
                 request->headers ? request->headers : "");
        compile->in = compile->words = compile->out = compile->complaint = -1;
        compile->name = strdup(request->name && *request->name ? request->name : "kernel.cu");
        if (!compile->name || compile_copy_texts(compile, request) < 0)
                return -ENOMEM;

        compile->out = memfd_create("gpuq-compiled", MFD_CLOEXEC);
        compile->complaint = memfd_create("gpuq-compiler-stderr", MFD_CLOEXEC);
        if (compile->out < 0 || compile->complaint < 0)
                return -errno;
        fcntl(compile->complaint, F_SETFL, O_APPEND);

        *ret_compile = TAKE_PTR(compile);
        return 0;
}

int compile_start(Compilers *compilers, const CompileRequest *request, CompileFunc func,
                  void *userdata, Compile **ret_compile) {
        Compile *compile = NULL;
        int r;

        r = compile_new(compilers, request, &compile);
        if (r < 0)
                return r;

        compile->in = request->fd;
        compile->func = func;
        compile->userdata = userdata;
        *ret_compile = compile; /* set before the callback, which may run within this function */
        TAILQ_INSERT_TAIL(&compilers->waiting, compile, link);
        compilers_next(compilers);
        return 0;
}

Compile *compile_cancel(Compile *compile) {
        if (!compile)
                return NULL;

        compile->func = NULL;
        if (compile->running) {
                kill(-compile->process.pid, SIGKILL);
                return NULL;
        }
        TAILQ_REMOVE(&compile->compilers->waiting, compile, link);
        return compile_free(compile);
}
