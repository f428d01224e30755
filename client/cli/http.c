/* SPDX-License-Identifier: Apache-2.0 */
#include "http.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http-address.h"
#include "http-state.h"

/* ---- listening ------------------------------------------------------------------ */

/* A process that was killed left its socket behind. */
static bool address_is_stale(const HttpAddress *address) {
        _cleanup_(closep) int fd = -1;
        struct stat st;

        if (address->any.sa_family != AF_UNIX || lstat(address->un.sun_path, &st) < 0 ||
            !S_ISSOCK(st.st_mode))
                return false;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        return fd >= 0 && connect(fd, &address->any, http_address_size(address)) < 0 &&
               errno == ECONNREFUSED;
}

static int http_bind(const Http *http, const HttpAddress *address) {
        socklen_t size = http_address_size(address);
        int on = 1;

        (void)setsockopt(http->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (bind(http->fd, &address->any, size) == 0)
                return 0;
        if (errno != EADDRINUSE || !address_is_stale(address))
                return -errno;
        if (unlink(address->un.sun_path) < 0 || bind(http->fd, &address->any, size) < 0)
                return -errno;
        return 0;
}

/* The port may be one that the kernel chose. */
static int http_set_address(Http *http, const char *text) {
        HttpAddress address = {};
        socklen_t size = sizeof(address);
        int r;

        if (getsockname(http->fd, &address.any, &size) < 0)
                return -errno;
        if (address.any.sa_family == AF_UNIX)
                r = asprintf(&http->address, "%s", text);
        else
                r = asprintf(&http->address, "%.*s:%u", (int)(strrchr(text, ':') - text), text,
                             ntohs(address.any.sa_family == AF_INET ? address.in.sin_port
                                                                    : address.in6.sin6_port));
        if (r >= 0)
                return 0;
        http->address = NULL;
        return -ENOMEM;
}

static int http_open(Http *http, const HttpAddress *address) {
        int r;

        http->fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (http->fd < 0)
                return -errno;
        r = http_bind(http, address);
        if (r < 0)
                return r;
        if (address->any.sa_family == AF_UNIX) {
                http->path = strdup(address->un.sun_path);
                if (!http->path || lstat(http->path, &http->st) < 0) {
                        unlink(address->un.sun_path);
                        return -ENOMEM;
                }
        }
        return listen(http->fd, SOMAXCONN) < 0 ? -errno : 0;
}

/* They end the program after it has removed its socket. */
static int http_take_signals(Http *http) {
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
        sigset_t set;

        sigemptyset(&set);
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                sigaddset(&set, signals[i]);
        sigprocmask(SIG_BLOCK, &set, &http->saved);
        http->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (http->signal_fd >= 0)
                return 0;
        sigprocmask(SIG_SETMASK, &http->saved, NULL);
        return -errno;
}

int http_new(const char *address, Http **ret_http) {
        _cleanup_(http_freep) Http *http = NULL;
        HttpAddress where;
        int r;

        r = http_address_read(address, &where);
        if (r)
                return r;
        http = calloc(1, sizeof(*http));
        if (!http)
                return -ENOMEM;

        http->fd = http->signal_fd = -1;
        r = http_take_signals(http);
        if (r < 0)
                return r;
        r = http_open(http, &where);
        if (r < 0)
                return r;
        r = http_set_address(http, address);
        if (r < 0)
                return r;

        *ret_http = TAKE_PTR(http);
        return 0;
}

/* The signals that ended the serving are not for the program any more. */
static void http_release_signals(Http *http) {
        struct signalfd_siginfo info;

        while (read(http->signal_fd, &info, sizeof(info)) > 0)
                ;
        close(http->signal_fd);
        sigprocmask(SIG_SETMASK, &http->saved, NULL);
}

/* Another program may have its own socket there by now. */
static bool http_owns_path(const Http *http) {
        struct stat st;

        return http->path && lstat(http->path, &st) == 0 && st.st_dev == http->st.st_dev &&
               st.st_ino == http->st.st_ino;
}

Http *http_free(Http *http) {
        if (!http)
                return NULL;

        if (http_owns_path(http))
                unlink(http->path);
        if (http->fd >= 0)
                close(http->fd);
        if (http->signal_fd >= 0)
                http_release_signals(http);
        free(http->path);
        free(http->address);
        free(http);
        return NULL;
}

const char *http_address(const Http *http) {
        return http->address;
}
