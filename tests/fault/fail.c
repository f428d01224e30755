/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fail
 *
 * Preloaded into one program under test: the N-th allocation, or the N-th system
 * call that can fail, does. Which N is told through a file that the test maps too
 * ($GPUQ_TEST_FAIL), so that it can be any moment of a program that runs. All
 * processes that map the same file count together. Where one of them crashes is
 * noted there too: whether that was our own code or a library's.
 *
 * Left out is what cannot fail for lack of anything (sigaction, getpid, close, …),
 * and libuv's own pipes, waking and polling, at whose failure it ends the process
 * by design.
 */

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define N_FRAMES 16
#define EXPORT   __attribute__((visibility("default")))

typedef struct Series {
        _Atomic uint64_t n;     /* so many so far */
        _Atomic uint64_t first; /* fails from this one on, 0: none */
        _Atomic uint64_t last;  /* to this one */
        _Atomic uint64_t n_failed;
} Series;

/* What the file holds; the test knows the layout. */
typedef struct Control {
        Series allocations;
        Series calls;
        char name[32];  /* of the call that failed last */
        char from[480]; /* who called it, as FILE+OFFSET, innermost first */
        char end[480];  /* where a process crashed or gave up, likewise */
} Control;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static Control *control;
static uintptr_t uv_start, uv_end; /* libuv's code */

static int note_uv(struct dl_phdr_info *info, size_t size, void *userdata) {
        if (!strstr(info->dlpi_name, "libuv.so"))
                return 0;
        for (int i = 0; i < info->dlpi_phnum; i++)
                if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
                        uv_start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
                        uv_end = uv_start + info->dlpi_phdr[i].p_memsz;
                }
        return 1;
}

/* For addr2line. */
static void note_frames(char *to, size_t n_to) {
        void *frames[N_FRAMES];
        int n = backtrace(frames, N_FRAMES);
        size_t at = 0;
        Dl_info info, ours;

        dladdr(&control, &ours);
        for (int i = 0; i < n && at < n_to - 1; i++)
                if (dladdr(frames[i], &info) && info.dli_fname && info.dli_fbase != ours.dli_fbase)
                        at += (size_t)snprintf(
                                to + at, n_to - at, "%s+0x%zx ", basename(info.dli_fname),
                                (size_t)((char *)frames[i] - (char *)info.dli_fbase));
}

/* Of a signal at a known place, not at any. What ended the process does so again, now for good. */
static void note_end(int number) {
        note_frames(control->end, sizeof(control->end));
        signal(number, SIG_DFL);
}

static void __attribute__((constructor)) fail_open(void) {
        struct sigaction action = {.sa_handler = note_end};
        const char *path = getenv("GPUQ_TEST_FAIL");
        void *map;
        int fd;

        dl_iterate_phdr(note_uv, NULL);
        (void)backtrace((void *[1]){}, 1); /* loads what it needs now */
        if (!path)
                return;
        fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
        if (fd < 0)
                return;
        map = (void *)syscall(SYS_mmap, NULL, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED,
                              fd, 0);
        syscall(SYS_close, fd);
        if (map == MAP_FAILED)
                return;
        control = map;
        sigaction(SIGABRT, &action, NULL);
        sigaction(SIGSEGV, &action, NULL);
}

static bool fails(Series *series, const char *name) {
        uint64_t n = atomic_fetch_add(&series->n, 1) + 1;
        uint64_t first = atomic_load(&series->first);

        if (!first || n < first || n > atomic_load(&series->last))
                return false;
        for (size_t i = 0; i < sizeof(control->name) - 1; i++) {
                control->name[i] = name[i];
                if (!name[i])
                        break;
        }
        if (atomic_fetch_add(&series->n_failed, 1) == 0)
                note_frames(control->from, sizeof(control->from));
        return true;
}

/* ---- allocations ------------------------------------------------------------- */

static bool no_memory(const char *name) {
        if (!control || !fails(&control->allocations, name))
                return false;
        errno = ENOMEM;
        return true;
}

EXPORT void *malloc(size_t size) {
        return no_memory("malloc") ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t n, size_t size) {
        return no_memory("calloc") ? NULL : __libc_calloc(n, size);
}

EXPORT void *realloc(void *old, size_t size) {
        return no_memory("realloc") ? NULL : __libc_realloc(old, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) {
        return no_memory("aligned_alloc") ? NULL : __libc_memalign(alignment, size);
}

EXPORT int posix_memalign(void **ret, size_t alignment, size_t size) {
        void *memory = no_memory("posix_memalign") ? NULL : __libc_memalign(alignment, size);

        if (!memory)
                return ENOMEM;
        *ret = memory;
        return 0;
}

/* ---- system calls -------------------------------------------------------------- */

static bool call_fails(const char *name, int error, const void *caller, bool not_of_uv) {
        uintptr_t from = (uintptr_t)caller;

        if (!control || (not_of_uv && from >= uv_start && from < uv_end))
                return false;
        if (!fails(&control->calls, name))
                return false;
        errno = error;
        return true;
}

/* @types are parameters with names, @names the names alone. */
#define CALL(result, failure, name, types, names, error, not_of_uv)                                \
        EXPORT result name types {                                                                 \
                static result(*next) types;                                                        \
                                                                                                   \
                if (!next)                                                                         \
                        next = (result(*) types)dlsym(RTLD_NEXT, #name);                           \
                if (call_fails(#name, error, __builtin_return_address(0), not_of_uv))              \
                        return failure;                                                            \
                return next names;                                                                 \
        }
#define INT(name, types, names, error) CALL(int, -1, name, types, names, error, false)

INT(socket, (int a, int b, int c), (a, b, c), EMFILE)
INT(socketpair, (int a, int b, int c, int d[2]), (a, b, c, d), EMFILE)
INT(connect, (int a, const struct sockaddr *b, socklen_t c), (a, b, c), ENOBUFS)
INT(bind, (int a, const struct sockaddr *b, socklen_t c), (a, b, c), EADDRINUSE)
INT(listen, (int a, int b), (a, b), EADDRINUSE)
INT(accept4, (int a, struct sockaddr *b, socklen_t *c, int d), (a, b, c, d), EMFILE)
INT(setsockopt, (int a, int b, int c, const void *d, socklen_t e), (a, b, c, d, e), ENOMEM)
INT(getsockopt, (int a, int b, int c, void *d, socklen_t *e), (a, b, c, d, e), ENOBUFS)
CALL(ssize_t, -1, sendmsg, (int a, const struct msghdr *b, int c), (a, b, c), ENOBUFS, true)
CALL(ssize_t, -1, recvmsg, (int a, struct msghdr *b, int c), (a, b, c), ENOMEM, true)
CALL(ssize_t, -1, send, (int a, const void *b, size_t c, int d), (a, b, c, d), ENOBUFS, true)
CALL(ssize_t, -1, recv, (int a, void *b, size_t c, int d), (a, b, c, d), ENOMEM, true)
CALL(ssize_t, -1, read, (int a, void *b, size_t c), (a, b, c), EIO, true)
CALL(ssize_t, -1, write, (int a, const void *b, size_t c), (a, b, c), ENOSPC, true)
CALL(ssize_t, -1, pread64, (int a, void *b, size_t c, off_t d), (a, b, c, d), EIO, true)
CALL(ssize_t, -1, pwrite64, (int a, const void *b, size_t c, off_t d), (a, b, c, d), ENOSPC, true)
INT(memfd_create, (const char *a, unsigned b), (a, b), EMFILE)
INT(ftruncate64, (int a, off_t b), (a, b), ENOSPC)
INT(eventfd, (unsigned a, int b), (a, b), EMFILE)
INT(epoll_create1, (int a), (a), EMFILE)
CALL(int, -1, pipe2, (int a[2], int b), (a, b), EMFILE, true)
INT(dup2, (int a, int b), (a, b), EMFILE)
INT(dup3, (int a, int b, int c), (a, b, c), EMFILE)
INT(close_range, (unsigned a, unsigned b, int c), (a, b, c), ENOMEM)
INT(fork, (void), (), EAGAIN)
INT(execve, (const char *a, char *const *b, char *const *c), (a, b, c), ENOMEM)
INT(chdir, (const char *a), (a), ENOMEM)
INT(mkdir, (const char *a, mode_t b), (a, b), ENOSPC)
INT(mkdirat, (int a, const char *b, mode_t c), (a, b, c), ENOSPC)
INT(unlink, (const char *a), (a), EIO)
INT(fstat64, (int a, struct stat64 *b), (a, b), EIO)
INT(stat64, (const char *a, struct stat64 *b), (a, b), EIO)
INT(lstat64, (const char *a, struct stat64 *b), (a, b), EIO)
INT(flock, (int a, int b), (a, b), ENOLCK)
INT(getrlimit64, (__rlimit_resource_t a, struct rlimit64 *b), (a, b), EPERM)
INT(setrlimit64, (__rlimit_resource_t a, const struct rlimit64 *b), (a, b), EPERM)
INT(setgroups, (size_t a, const gid_t *b), (a, b), ENOMEM)
INT(setresuid, (uid_t a, uid_t b, uid_t c), (a, b, c), EAGAIN)
INT(mprotect, (void *a, size_t b, int c), (a, b, c), ENOMEM)
INT(signalfd, (int a, const sigset_t *b, int c), (a, b, c), EMFILE)
CALL(ssize_t, -1, readlink, (const char *a, char *b, size_t c), (a, b, c), EIO, false)
CALL(void *, MAP_FAILED, mmap64, (void *a, size_t b, int c, int d, int e, off64_t f),
     (a, b, c, d, e, f), ENOMEM, false)

/* It returns its error. */
EXPORT int pthread_create(pthread_t *a, const pthread_attr_t *b, void *(*c)(void *), void *d) {
        static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

        if (!next)
                next = dlsym(RTLD_NEXT, "pthread_create");
        if (call_fails("pthread_create", EAGAIN, __builtin_return_address(0), false))
                return EAGAIN;
        return next(a, b, c, d);
}

/* With an argument that may not be there. */
EXPORT int open64(const char *path, int flags, ...) {
        va_list args;
        mode_t mode;

        va_start(args, flags);
        mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
        va_end(args);
        if (call_fails("open", EMFILE, __builtin_return_address(0), false))
                return -1;
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

EXPORT int openat64(int folder, const char *path, int flags, ...) {
        va_list args;
        mode_t mode;

        va_start(args, flags);
        mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
        va_end(args);
        if (call_fails("openat", EMFILE, __builtin_return_address(0), false))
                return -1;
        return (int)syscall(SYS_openat, folder, path, flags, mode);
}

EXPORT int fcntl64(int fd, int command, ...) {
        va_list args;
        long argument;

        va_start(args, command);
        argument = va_arg(args, long);
        va_end(args);
        if (call_fails("fcntl", EMFILE, __builtin_return_address(0), false))
                return -1;
        return (int)syscall(SYS_fcntl, fd, command, argument);
}
