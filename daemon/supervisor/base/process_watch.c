/* SPDX-License-Identifier: Apache-2.0 */
#include "process_watch.h"

#include <errno.h>
#include <poll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>

#include "process_age.h"
#include "util/macro.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

struct ProcessWatch {
        uv_poll_t poll; /* libuv releases it after process_watch_free() */
        int fd;
        ProcessWatchFunc func;
        void *userdata;
};

static void process_watch_on_close(uv_handle_t *handle) {
        ProcessWatch *watch = handle->data;

        close(watch->fd);
        free(watch);
}

ProcessWatch *process_watch_free(ProcessWatch *watch) {
        if (watch)
                uv_close((uv_handle_t *)&watch->poll, process_watch_on_close);
        return NULL;
}

bool process_watch_has_exited(const ProcessWatch *watch) {
        struct pollfd fd = {.fd = watch->fd, .events = POLLIN};

        return poll(&fd, 1, 0) > 0;
}

static void process_watch_on_exit(uv_poll_t *poll, int status, int events) {
        ProcessWatch *watch = poll->data;

        uv_poll_stop(poll); /* the descriptor stays readable for ever */
        watch->func(watch->userdata);
}

/* @fd is consumed always. */
static int process_watch_new(uv_loop_t *loop, int fd, ProcessWatchFunc func, void *userdata,
                             ProcessWatch **ret_watch) {
        ProcessWatch *watch = calloc(1, sizeof(*watch));
        int r;

        r = watch ? uv_poll_init(loop, &watch->poll, fd) : -ENOMEM;
        if (r < 0) {
                close(fd);
                free(watch);
                return r;
        }

        watch->poll.data = watch;
        watch->fd = fd;
        watch->func = func;
        watch->userdata = userdata;
        r = uv_poll_start(&watch->poll, UV_READABLE, process_watch_on_exit);
        if (r < 0) {
                process_watch_free(watch);
                return r;
        }

        *ret_watch = watch;
        return 0;
}

static int process_open(pid_t pid) {
        int fd = pid > 0 ? pidfd_open(pid, 0) : -1;

        if (pid <= 0) /* of a process namespace that is not below the supervisor's */
                return -ENODATA;
        return fd < 0 ? -errno : fd;
}

static int process_open_peer(int socket, pid_t pid) {
        socklen_t n_bytes = sizeof(int);
        int fd;

        if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &n_bytes) == 0)
                return fd;
        if (errno == ENOPROTOOPT) /* before Linux 6.5 */
                return process_open(pid);
        return errno == EINVAL
                       ? -ESRCH
                       : -errno; /* EINVAL: Linux before 6.15, of a process that has ended */
}

int process_watch_peer(uv_loop_t *loop, int socket, pid_t pid, ProcessWatchFunc func,
                       void *userdata, ProcessWatch **ret_watch) {
        int fd = process_open_peer(socket, pid);

        return fd < 0 ? fd : process_watch_new(loop, fd, func, userdata, ret_watch);
}

int process_watch_pid(uv_loop_t *loop, pid_t pid, uint64_t start, ProcessWatchFunc func,
                      void *userdata, ProcessWatch **ret_watch) {
        int fd = process_open(pid);

        if (fd < 0)
                return fd;
        if (!process_age_is_alive(pid, start)) {
                close(fd);
                return -ESRCH;
        }
        return process_watch_new(loop, fd, func, userdata, ret_watch);
}
