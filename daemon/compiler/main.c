/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuqd-compiler
 *
 * One request, one result (compiler.h). The work is done in a child with its own limits. If a
 * compiler crashes or takes too long, that is a result, too, and its temporary files are removed
 * in every case.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "compiler/backend.h"
#include "compiler/cache.h"
#include "compiler/compiled.h"
#include "compiler/compiler.h"
#include "compiler/headers.h"
#include "compiler/named.h"
#include "compiler/options.h"
#include "util/write_all.h"

#define OPTIONS_MAX    256u
#define FILE_BYTES_MAX (1ull << 30) /* of a temporary file */
#define COMPILE_NICE   10           /* those who wait for a job come first */

enum {
        _CHILD_E_SUCCESS,
        _CHILD_E_FAILURE,
        CHILD_UNCACHEABLE, /* there is a result, but it must not be cached */
};

/* ---- the result ------------------------------------------------------------- */

static int write_out(int fd, const void *data, size_t n_data) {
        if (ftruncate(fd, 0) < 0)
                return -errno;

        return write_all(fd, data, n_data, 0);
}

static int write_result(const Request *request, const Result *result) {
        _cleanup_(freep) void *data = NULL;
        size_t n_data;
        int r;

        r = result_pack(result, &data, &n_data);
        if (r < 0)
                return r;
        return write_out(request->out_fd, data, n_data);
}

static int write_failure(const Request *request, CompiledStatus status, const char *text) {
        _cleanup_(result_freep) Result *result = NULL;
        int r;

        r = result_new(&result);
        if (r == 0)
                r = result_fail(result, status, "%s", text);
        if (r < 0)
                return r;
        return write_result(request, result);
}

/* ---- the request ------------------------------------------------------------- */

static bool is_text(Format format) {
        return format_is_source(format) || format == FORMAT_PTX;
}

/* Detects the format if it was not given. Return: 0, or 1 with a result that says why not. */
static int check_format(Request *request, Result *result) {
        char start[80];
        Format found;

        if (request->format == FORMAT_BUILTIN)
                return 0;

        found = format_detect(request->image, request->n_image);
        if (found == FORMAT_UNKNOWN) {
                format_describe(request->image, request->n_image, start, sizeof(start));
                return result_fail(result, COMPILED_NOT_MODULE, "%s is not a module: the file %s",
                                   request->name, start)
                               ?: 1;
        }
        if (found == FORMAT_HOST_ELF)
                return result_fail(result, COMPILED_NOT_MODULE,
                                   "%s is a program or library for the CPU, not a module: pass its "
                                   "CUDA C++ source",
                                   request->name)
                               ?: 1;
        if (request->format == FORMAT_AUTO)
                request->format = found;
        if (is_text(request->format) != is_text(found) ||
            (!is_text(request->format) && request->format != found))
                return result_fail(result, COMPILED_NOT_MODULE,
                                   "%s was loaded as %s, but it contains %s: load it as that",
                                   request->name, format_name(request->format), format_name(found))
                               ?: 1;
        return 0;
}

static int check_options(const Request *request, Result *result) {
        size_t bad = options_find_bad(request->options, request->n_options);
        const char *nearest;

        if (request->n_options > OPTIONS_MAX)
                return result_fail(result, COMPILED_BAD_OPTION,
                                   "too many compiler options: the limit is %u", OPTIONS_MAX)
                               ?: 1;
        if (bad == request->n_options)
                return 0;

        nearest = options_nearest(request->options[bad]);
        return result_fail(result, COMPILED_BAD_OPTION,
                           "compiler option \"%s\" is not allowed%s%s%s; allowed: %s",
                           request->options[bad], nearest ? "; did you mean " : "",
                           nearest ? nearest : "", nearest ? "?" : "", OPTIONS_ALLOWED)
                       ?: 1;
}

/* The CPU driver runs what the host's compiler made, of source or PTX. */
static int check_target(const Request *request, Result *result) {
        if (request->sm || is_text(request->format) || request->format == FORMAT_BUILTIN)
                return 0;

        return result_fail(result, COMPILED_NO_BINARY,
                           "%s is %s, which runs on NVIDIA GPUs only; this device is the CPU: pass "
                           "source or PTX",
                           request->name, format_name(request->format))
                       ?: 1;
}

/* Return: 0, 1 if the request was answered, or a negative errno. */
static int check(Request *request) {
        _cleanup_(result_freep) Result *result = NULL;
        int r;

        r = result_new(&result);
        if (r == 0)
                r = check_format(request, result);
        if (r == 0)
                r = check_options(request, result);
        if (r == 0)
                r = check_target(request, result);
        if (r > 0)
                r = write_result(request, result) ?: 1;
        return r;
}

/* ---- the cache --------------------------------------------------------------- */

static bool follows_hash(const char *start, const char *s) {
        while (s > start && (s[-1] == ' ' || s[-1] == '\t'))
                s--;
        return s > start && s[-1] == '#';
}

/* A file that is included by path, or by a macro that may be a path, may change while the image
 * stays the same, unless the client sent it. */
static bool includes_known_files(const Request *request, const char *text, size_t n_text) {
        const char *s = text, *end = s + n_text;

        while ((s = memmem(s, end - s, "include", strlen("include")))) {
                bool is_directive = follows_hash(text, s);

                s += strlen("include");
                s += strspn(s, " \t");
                if (*s == '"' && !headers_has(request, s + 1, strcspn(s + 1, "\"\n")))
                        return false;
                if ((*s == '<' && (s[1] == '/' || s[1] == '.')) ||
                    (is_directive && *s != '<' && *s != '"'))
                        return false;
        }
        return true;
}

static bool is_cacheable(const Request *request) {
        if ((!request->cache && !request->builtin_cache) || request->format == FORMAT_CUBIN ||
            (request->format == FORMAT_BUILTIN && !request->sm && !request->checked))
                return false;
        if (!format_is_source(request->format))
                return true;
        return includes_known_files(request, request->image, request->n_image) &&
               includes_known_files(request, request->headers, request->n_headers);
}

/* Return: true if the cache had a result. Errors of the cache are ignored. */
static bool answer_from_cache(const Request *request, const char *cache, const CacheKey *key) {
        _cleanup_(freep) void *data = NULL;
        _cleanup_(compiled_freep) Compiled *compiled = NULL;
        uint32_t flags;
        size_t n_data;

        if (!cache || cache_get(cache, key, &data, &n_data) < 0 ||
            compiled_parse(data, n_data, &compiled) != 0)
                return false;

        flags = compiled->flags | COMPILED_FROM_CACHE;
        memcpy((char *)data + COMPILED_FLAGS_OFFSET, &flags, sizeof(flags));
        return write_out(request->out_fd, data, n_data) >= 0;
}

static bool keep_in(const Request *request, const char *cache, const CacheKey *key,
                    const void *data, size_t n_data) {
        return cache && cache_put(cache, key, data, n_data, request->cache_bytes) == 0;
}

static void keep(const Request *request, const CacheKey *key) {
        _cleanup_(freep) void *data = NULL;
        _cleanup_(compiled_freep) Compiled *compiled = NULL;
        struct stat st;

        if (fstat(request->out_fd, &st) < 0)
                return;

        data = malloc(st.st_size + 1);
        if (!data || pread(request->out_fd, data, st.st_size, 0) != st.st_size)
                return;
        if (compiled_parse(data, st.st_size, &compiled) != 0 || compiled->status != COMPILED_OK)
                return;
        /* What a crash led to, perhaps for lack of memory, is no result for all users. */
        if (request->plain || !keep_in(request, request->builtin_cache, key, data, st.st_size))
                (void)keep_in(request, request->cache, key, data, st.st_size);
}

/* ---- the child ----------------------------------------------------------------- */

static void limit(int resource, rlim_t soft, rlim_t hard) {
        struct rlimit old, new = {soft, hard};

        if (getrlimit(resource, &old) < 0)
                return;
        new.rlim_max = MIN(new.rlim_max, old.rlim_max);
        new.rlim_cur = MIN(new.rlim_cur, new.rlim_max);
        (void)setrlimit(resource, &new);
}

/* Not RLIMIT_AS: NVRTC and the driver reserve far more addresses than they use. Memory: see bound.h. */
static void set_limits(const Request *request) {
        (void)setpriority(PRIO_PROCESS, 0, COMPILE_NICE);
        limit(RLIMIT_NICE, 0, 0); /* a worker's loop may raise its priority, not this */
        limit(RLIMIT_CORE, 0, 0);
        limit(RLIMIT_FSIZE, FILE_BYTES_MAX, FILE_BYTES_MAX);
        if (request->timeout_s)
                limit(RLIMIT_CPU, request->timeout_s, request->timeout_s + 1);
}

static int compile(const Request *request, Result *result) {
        if (request->format == FORMAT_BUILTIN)
                return builtin_find(request, result);
        if (request->sm)
                return gpu_compile(request, result);
        return cpu_compile(request, result);
}

/* Return: 0, CHILD_UNCACHEABLE, or a negative errno. */
static int work(const Request *request) {
        _cleanup_(result_freep) Result *result = NULL;
        int r;

        r = result_new(&result);
        if (r == 0)
                r = compile(request, result);
        if (r == 0 && result->status == COMPILED_OK)
                r = named_resolve(request, result);
        if (r < 0)
                return r;
        r = write_result(request, result);
        if (r < 0)
                return r;
        return result->uncacheable ? CHILD_UNCACHEABLE : 0;
}

/* For example a full disk. The source is not the cause, and only this process knows. */
static int write_error(const Request *request, int error) {
        char text[160];

        snprintf(text, sizeof(text), "the compiler failed: %s", strerror(error));
        return write_failure(request, COMPILED_INTERNAL, text);
}

static void __attribute__((noreturn)) child(const Request *request, pid_t parent) {
        sigset_t none;
        int r;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(1);
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        set_limits(request);

        r = work(request);
        if (r < 0)
                r = write_error(request, -r);
        fflush(NULL);
        _exit(r < 0 ? 1 : r);
}

/* ---- the parent ---------------------------------------------------------------- */

/* Signals that end the wait: the child's end, a request to end, or the timeout. */
static void make_signals(sigset_t *signals) {
        sigemptyset(signals);
        sigaddset(signals, SIGCHLD);
        sigaddset(signals, SIGTERM);
        sigaddset(signals, SIGINT);
        sigaddset(signals, SIGHUP);
        (void)sigprocmask(SIG_BLOCK, signals, NULL);
}

/*
 * Ignores the SIGTERM that reap() sent to all of our group.
 *
 * Return: SIGCHLD, the signal that asked us to end, or 0 when the time is up.
 */
static int await(const sigset_t *signals, unsigned timeout_s) {
        struct timespec left = {.tv_sec = timeout_s};
        siginfo_t info;
        int r;

        do
                r = timeout_s ? sigtimedwait(signals, &info, &left) : sigwaitinfo(signals, &info);
        while ((r < 0 && errno == EINTR) || (r == SIGTERM && info.si_pid == getpid()));

        return r < 0 ? 0 : r;
}

/* Ends the child and what it started. All are in our group; SIGTERM is blocked for this process
 * only. */
static int reap(pid_t pid, bool kill_first) {
        int status = 0;

        if (kill_first) {
                (void)kill(0, SIGTERM);
                (void)kill(pid, SIGKILL);
        }
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        (void)kill(0, SIGTERM);
        return status;
}

static int explain(const Request *request, int status, int why) {
        char text[160];

        if (why == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)) {
                snprintf(text, sizeof(text), "the compiler was stopped after its timeout of %u s",
                         request->timeout_s);
                return write_failure(request, COMPILED_FAILED, text);
        }
        if (WIFSIGNALED(status)) {
                snprintf(text, sizeof(text), "the compiler was killed by signal %d (%s)%s",
                         WTERMSIG(status), strsignal(WTERMSIG(status)),
                         WTERMSIG(status) == SIGABRT ? ", probably because it ran out of memory"
                                                     : "");
                return write_failure(request, COMPILED_FAILED, text);
        }
        return write_failure(request, COMPILED_INTERNAL, "the compiler failed");
}

/* The twins may have caused the crash, so the module is compiled again without them. */
static bool may_be_twins(const Request *request, int status, int why) {
        return why == SIGCHLD && WIFSIGNALED(status) && WTERMSIG(status) != SIGXCPU &&
               request->sm && !request->plain;
}

/* Return: 0 if there is a result, CHILD_UNCACHEABLE if it is not to be kept, or a negative errno. */
static int run_child(Request *request) {
        pid_t parent = getpid(), pid;
        sigset_t signals;
        int why, status;

        make_signals(&signals);
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                child(request, parent);

        why = await(&signals, request->timeout_s);
        status = reap(pid, why != SIGCHLD);
        if (why != 0 && why != SIGCHLD)
                return -EINTR;
        if (WIFEXITED(status) &&
            (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == CHILD_UNCACHEABLE))
                return WEXITSTATUS(status);
        if (may_be_twins(request, status, why)) {
                request->plain = true;
                return run_child(request);
        }
        return explain(request, status, why);
}

static int answer(Request *request) {
        CacheKey key;
        bool cacheable;
        int r;

        cacheable = is_cacheable(request) && cache_key(request, &key) == 0;
        if (cacheable && (answer_from_cache(request, request->builtin_cache, &key) ||
                          answer_from_cache(request, request->cache, &key)))
                return 0;

        r = request_make_work(request);
        if (r < 0)
                return r;

        r = run_child(request);
        request_clean(request);
        if (r == 0 && cacheable)
                keep(request, &key);
        return MIN(r, 0);
}

static int run(Request *request) {
        int r;

        (void)umask(077);
        if (request->cache && mkdir(request->cache, 0700) < 0 && errno != EEXIST)
                request->cache = NULL;
        if (request->format != FORMAT_BUILTIN)
                request->builtin_cache = NULL;

        r = request_read(request);
        if (r == -EFBIG)
                return write_failure(request, COMPILED_NOT_MODULE,
                                     "the module image is too large: the limit is 256 MiB");
        if (r < 0)
                return r;

        r = check(request);
        if (r)
                return MIN(r, 0);
        /* A debugger shows the client's kernels, not code made of them. */
        request->plain = options_debug(request->options, request->n_options);
        return answer(request);
}

int main(int argc, char **argv) {
        _cleanup_(request_freep) Request *request = NULL;
        int r;

        r = request_new(argc, argv, &request);
        if (r < 0)
                return 2;

        /* A kill of our group ends every compiler that we started. A worker that is killed
         * makes the kernel send us SIGTERM. */
        (void)setpgid(0, 0);
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        (void)fcntl(request->in_fd, F_SETFD, FD_CLOEXEC);
        (void)fcntl(request->out_fd, F_SETFD, FD_CLOEXEC);

        r = run(request);
        if (r < 0)
                fprintf(stderr, "%s: %s\n", COMPILER_PROGRAM, strerror(-r));
        return r < 0;
}
