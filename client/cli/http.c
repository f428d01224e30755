/* SPDX-License-Identifier: Apache-2.0 */
#include "http.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "http-address.h"
#include "http-request.h"

#define HTTP_REQUEST_MAX 8192u
#define HTTP_TEXT_MAX    (4u << 20)
#define HTTP_DRAIN_MAX   65536u
#define HTTP_BACKLOG     16
#define HTTP_PAUSE_MS    100 /* after the machine had no descriptor or memory */

struct Http {
        int fd;
        int signal_fd;
        sigset_t saved;
        char *address;
        char *path;     /* of the Unix socket; NULL: none */
        struct stat st; /* of that path, when it was made */
        const char *target, *type;
        HttpAnswer answer;
        void *userdata;
};

typedef struct Text {
        char *data;
        size_t size;
} Text;

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
        return listen(http->fd, HTTP_BACKLOG) < 0 ? -errno : 0;
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

/* ---- waiting -------------------------------------------------------------------- */

static int64_t now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* @until_ms: -1: no limit. Return: 0, -ETIMEDOUT, or -EINTR: a signal asks to end. */
static int http_wait(const Http *http, int fd, short events, int64_t until_ms) {
        struct pollfd polls[] = {{.fd = http->signal_fd, .events = POLLIN},
                                 {.fd = fd, .events = events}};
        int64_t left_ms = until_ms < 0 ? -1 : MAX(until_ms - now_ms(), INT64_C(0));
        int r;

        do
                r = poll(polls, ARRAY_SIZE(polls), (int)left_ms);
        while (r < 0 && errno == EINTR);
        if (r < 0)
                return -errno;
        if (polls[0].revents)
                return -EINTR;
        return r == 0 ? -ETIMEDOUT : 0;
}

/* ---- the text ------------------------------------------------------------------- */

static _Noreturn void child_run(const Http *http, int fd) {
        FILE *stream = fdopen(fd, "w");
        int r;

        sigprocmask(SIG_SETMASK, &http->saved, NULL);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!stream)
                _exit(1);
        r = http->answer(stream, http->userdata);
        if (fclose(stream) != 0)
                _exit(1);
        _exit(r ? 1 : 0);
}

static int http_start_child(const Http *http, pid_t *ret_pid, int *ret_fd) {
        int fds[2];
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        pid = fork();
        if (pid == 0)
                child_run(http, fds[1]);
        close(fds[1]);
        if (pid < 0) {
                close(fds[0]);
                return -EAGAIN;
        }
        *ret_pid = pid;
        *ret_fd = fds[0];
        return 0;
}

static int text_read(const Http *http, int fd, int64_t until_ms, Text *text) {
        ssize_t n;
        int r;

        for (;;) {
                r = http_wait(http, fd, POLLIN, until_ms);
                if (r < 0)
                        return r;
                if (text->size == HTTP_TEXT_MAX)
                        return -EFBIG;
                n = read(fd, text->data + text->size, HTTP_TEXT_MAX - text->size);
                if (n == 0)
                        return 0;
                if (n < 0 && errno != EINTR)
                        return -errno;
                text->size += n < 0 ? 0 : (size_t)n;
        }
}

static void text_set(Text *text, const char *words) {
        text->size = (size_t)snprintf(text->data, HTTP_TEXT_MAX, "%s\n", words);
}

/* Return: the status of the answer, or -EINTR. */
static int http_make_text(const Http *http, Text *text) {
        int fd = -1, outcome = 0, r;
        pid_t pid = -1;

        r = http_start_child(http, &pid, &fd);
        if (r == 0) {
                r = text_read(http, fd, now_ms() + HTTP_ANSWER_MS, text);
                if (r < 0)
                        kill(pid, SIGKILL);
                while (waitpid(pid, &outcome, 0) < 0 && errno == EINTR)
                        ;
                close(fd);
        }
        if (r == -EINTR)
                return r;
        if (r == -ETIMEDOUT)
                text_set(text, "gpuqd did not answer in time");
        else if (r < 0)
                text_set(text, strerror(-r));
        else if (outcome && text->size == 0)
                text_set(text, "gpuq ended unexpectedly");
        return r < 0 || outcome ? 503 : 200;
}

/* ---- one connection --------------------------------------------------------------- */

static const char *status_words(int status) {
        switch (status) {
                case 200:
                        return "OK";
                case 404:
                        return "Not Found";
                case 405:
                        return "Method Not Allowed";
                case 408:
                        return "Request Timeout";
                case 431:
                        return "Request Header Fields Too Large";
                case 503:
                        return "Service Unavailable";
                default:
                        return "Bad Request";
        }
}

/* Return: 0 to answer the request, the status of a refusal, or a negative errno: no answer. */
static int request_read(const Http *http, int fd, char request[static HTTP_REQUEST_MAX + 1]) {
        int64_t until_ms = now_ms() + HTTP_PEER_MS;
        size_t size = 0;
        ssize_t n;
        int r;

        for (;;) {
                request[size] = '\0';
                if (strstr(request, "\r\n\r\n"))
                        return 0;
                if (size == HTTP_REQUEST_MAX)
                        return 431;
                r = http_wait(http, fd, POLLIN, until_ms);
                if (r < 0)
                        return r == -ETIMEDOUT ? 408 : r;
                n = recv(fd, request + size, HTTP_REQUEST_MAX - size, 0);
                if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
                        return -ECONNRESET;
                size += n < 0 ? 0 : (size_t)n;
        }
}

static int http_send(const Http *http, int fd, const char *data, size_t size, int64_t until_ms) {
        ssize_t n;
        int r;

        while (size > 0) {
                r = http_wait(http, fd, POLLOUT, until_ms);
                if (r < 0)
                        return r;
                n = send(fd, data, size, MSG_NOSIGNAL);
                if (n < 0 && errno != EINTR && errno != EAGAIN)
                        return -errno;
                data += MAX(n, (ssize_t)0);
                size -= (size_t)MAX(n, (ssize_t)0);
        }
        return 0;
}

/* Until the client closes: bytes that are left unread would make the kernel drop the answer. */
static int http_drain(const Http *http, int fd, int64_t until_ms) {
        char rest[4096];
        ssize_t n;
        int r;

        shutdown(fd, SHUT_WR);
        for (size_t size = 0; size < HTTP_DRAIN_MAX; size += (size_t)n) {
                r = http_wait(http, fd, POLLIN, until_ms);
                if (r < 0)
                        return r;
                n = recv(fd, rest, sizeof(rest), 0);
                if (n <= 0)
                        return 0;
        }
        return 0;
}

static int http_reply(const Http *http, int fd, int status, const Text *text) {
        int64_t until_ms = now_ms() + HTTP_PEER_MS;
        char head[256];
        int n, r;

        n = snprintf(head, sizeof(head),
                     "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
                     "Connection: close\r\n\r\n",
                     status, status_words(status),
                     status == 200 ? http->type : "text/plain; charset=utf-8", text->size,
                     status == 405 ? "Allow: GET\r\n" : "");
        r = http_send(http, fd, head, (size_t)n, until_ms);
        if (r == 0)
                r = http_send(http, fd, text->data, text->size, until_ms);
        return r < 0 ? r : http_drain(http, fd, until_ms);
}

static int http_talk(const Http *http, int fd, Text *text) {
        char request[HTTP_REQUEST_MAX + 1];
        int status;

        text->size = 0;
        status = request_read(http, fd, request);
        if (status == 0)
                status = http_request_check(http->target, request);
        if (status == 200)
                status = http_make_text(http, text);
        else if (status > 0)
                text_set(text,
                         status == 404 ? "the metrics are at /metrics" : status_words(status));
        return status < 0 ? status : http_reply(http, fd, status, text);
}

/* A client that has gone is no reason to end, nor is a machine that lacks something for a moment. */
static int http_skip(const Http *http, int error) {
        int r;

        switch (error) {
                case EAGAIN:
                case EINTR:
                case ECONNABORTED:
                        return 0;
                case EMFILE:
                case ENFILE:
                case ENOBUFS:
                case ENOMEM:
                        r = http_wait(http, -1, 0, now_ms() + HTTP_PAUSE_MS);
                        return r == -ETIMEDOUT ? 0 : r;
                default:
                        return -error;
        }
}

static int http_serve_one(const Http *http, Text *text) {
        _cleanup_(closep) int fd = -1;
        int r;

        r = http_wait(http, http->fd, POLLIN, -1);
        if (r < 0)
                return r;
        fd = accept4(http->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
                return http_skip(http, errno);
        r = http_talk(http, fd, text);
        return r == -EINTR ? r : 0;
}

int http_serve(Http *http, const char *path, const char *type, HttpAnswer answer, void *userdata) {
        Text text = {.data = malloc(HTTP_TEXT_MAX)};
        int r;

        if (!text.data)
                return -ENOMEM;
        http->target = path;
        http->type = type;
        http->answer = answer;
        http->userdata = userdata;
        do
                r = http_serve_one(http, &text);
        while (r == 0);
        free(text.data);
        return r == -EINTR ? 0 : r;
}
