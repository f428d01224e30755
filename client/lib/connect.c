/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting: the path, the socket, the first words.
 */

#include "connect.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "call.h"
#include "error.h"

#define CONNECT_TIMEOUT_MS                                                                         \
        60000 /* a daemon that systemd starts for us first looks for its devices */
#define CONNECT_N_TRIES                                                                            \
        3 /* a supervisor may die with a connection that it has not welcomed; the next one does it */
#define CONNECT_SYSTEM "/run/gpuq/gpuqd.sock"

/* Return: the path, in @memory or elsewhere. */
static const char *connect_default_path(char memory[static PATH_MAX]) {
        const char *path = secure_getenv("GPUQ_SOCKET");
        const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
        int n;

        if (path && path[0] != '\0')
                return path;
        if (!runtime || runtime[0] == '\0')
                return CONNECT_SYSTEM;

        n = snprintf(memory, PATH_MAX, "%s/gpuq.sock", runtime);
        return n < PATH_MAX && access(memory, F_OK) == 0 ? memory : CONNECT_SYSTEM;
}

static int connect_error(const char *path, const char *why) {
        return error_set(GPUQ_E_CONNECT,
                         "cannot connect to gpuqd at %s: %s (is gpuqd running? systemctl status "
                         "gpuqd.socket; or start your own: gpuqd --private)",
                         path, why);
}

/* Return: 0, or a negative errno. */
static int connect_bind(int fd, const char *path) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, path);

        do
                r = connect(fd, (struct sockaddr *)&address, sizeof(address));
        while (r < 0 && errno == EINTR);
        return r < 0 ? -errno : 0;
}

/*
 * Blocking while it connects, if it may: a non-blocking connect fails at once when many
 * processes start together and the listener's backlog is full for a moment.
 */
int connect_open(const char *path, unsigned wait_ms, int *ret_fd) {
        struct timeval timeout = {.tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000};
        _cleanup_(closep) int fd = -1;
        int r;

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (wait_ms ? 0 : SOCK_NONBLOCK), 0);
        if (fd < 0)
                return -errno;
        if (wait_ms)
                setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));

        r = connect_bind(fd, path);
        if (r < 0)
                return r;
        if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                return -errno;

        *ret_fd = TAKE_FD(fd);
        return 0;
}

static int connect_socket(const char *path, int *ret_fd) {
        int r;

        r = connect_open(path, CONNECT_TIMEOUT_MS, ret_fd);
        if (r == -ENAMETOOLONG)
                return connect_error(path, "the path is too long for a socket");
        if (r < 0)
                return connect_error(path, r == -EAGAIN ? "it accepts nobody" : strerror(-r));

        return 0;
}

/* An end that is not the daemon's own word is told as what it is here: no daemon that one can use. */
static int connect_refused(gpuq_client *client, const char *path, int error) {
        char why[64];

        if (error == GPUQ_E_AGAIN) {
                snprintf(why, sizeof(why), "no answer within %d s", CONNECT_TIMEOUT_MS / 1000);
                return connect_error(path, why);
        }
        if (error == GPUQ_E_CLOSED)
                return connect_error(path, client->error_text ? client->error_text : "closed");

        return error;
}

/* Of the program, for `gpuq status`: short, and nothing that would upset a terminal. */
static void connect_name(char name[static CONNECT_NAME_MAX + 1]) {
        snprintf(name, CONNECT_NAME_MAX + 1, "%s", program_invocation_short_name);
        for (char *p = name; *p; p++)
                if (*p < ' ' || *p > '~')
                        *p = '?';
}

void connect_fill_hello(Gpuq__V1__Hello *hello, char name[static CONNECT_NAME_MAX + 1]) {
        connect_name(name);
        hello->version_min = hello->version_max = CONNECT_VERSION;
        hello->client = name;
}

static int connect_hello(gpuq_client *client, const char *path) {
        Gpuq__V1__Hello hello = GPUQ__V1__HELLO__INIT;
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        char name[CONNECT_NAME_MAX + 1];
        int r;

        connect_fill_hello(&hello, name);
        r = call_run(client, GPUQ__V1__REQUEST__BODY_HELLO, &hello, GPUQ__V1__REPLY__BODY_WELCOME,
                     client_deadline_us(CONNECT_TIMEOUT_MS), &reply, NULL);
        if (r < 0)
                return connect_refused(client, path, r);

        if (reply->welcome->version != CONNECT_VERSION)
                return error_set(GPUQ_E_VERSION,
                                 "gpuqd at %s (%s) speaks version %u of the protocol, libgpuq %s "
                                 "speaks %u",
                                 path, reply->welcome->daemon, reply->welcome->version,
                                 gpuq_version(), CONNECT_VERSION);

        client->session = reply->welcome->session;
        client->n_devices = reply->welcome->n_devices;
        ringing_init(&client->ringing, reply->welcome);
        client_set_spin(client, reply->welcome->poll_us);
        wire_set_frame_max(client->wire, WIRE_FRAME_MAX);
        return resume_allow(client, path);
}

/* @ret_lost: it ended without a word. */
static int connect_once(const char *path, gpuq_client **ret_client, bool *ret_lost) {
        gpuq_client *client;
        int fd, r;

        *ret_lost = false;
        r = connect_socket(path, &fd);
        if (r < 0)
                return r;

        r = client_new(fd, &client);
        if (r < 0)
                return r;

        pthread_mutex_lock(&client->lock);
        r = connect_hello(client, path);
        *ret_lost = client->error == GPUQ_E_CLOSED;
        pthread_mutex_unlock(&client->lock);
        if (r < 0) {
                gpuq_client_free(client);
                return r;
        }

        *ret_client = client;
        return 0;
}

int gpuq_connect(const char *path, gpuq_client **ret_client) {
        char memory[PATH_MAX];
        bool lost = true;
        int r = 0;

        if (!path)
                path = connect_default_path(memory);

        for (unsigned i = 0; lost && i < CONNECT_N_TRIES; i++)
                r = connect_once(path, ret_client, &lost);
        return r;
}
