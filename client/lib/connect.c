/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting: the path, the socket, the first words.
 */

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "call.h"
#include "client.h"
#include "error.h"

#define CONNECT_VERSION 1 /* of the protocol, the only one so far */
#define CONNECT_TIMEOUT_MS                                                                         \
        60000               /* a daemon that systemd starts for us first looks for its devices */
#define CONNECT_NAME_MAX 64 /* bytes of the program's name, of the protocol */
#define CONNECT_SYSTEM   "/run/gpuq/gpuqd.sock"

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

/*
 * Blocking while it connects: a non-blocking connect fails at once when many
 * processes start together and the listener's backlog is full for a moment.
 */
static int connect_socket(const char *path, int *ret_fd) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        struct timeval timeout = {.tv_sec = CONNECT_TIMEOUT_MS / 1000};
        _cleanup_(closep) int fd = -1;
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return connect_error(path, "the path is too long for a socket");
        strcpy(address.sun_path, path);

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return error_system("socket");
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));

        do
                r = connect(fd, (struct sockaddr *)&address, sizeof(address));
        while (r < 0 && errno == EINTR);
        if (r < 0)
                return connect_error(path, errno == EAGAIN ? "it accepts nobody" : strerror(errno));

        if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                return error_system("fcntl");

        *ret_fd = TAKE_FD(fd);
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

static int connect_hello(gpuq_client *client, const char *path) {
        Gpuq__V1__Hello hello = GPUQ__V1__HELLO__INIT;
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        char name[CONNECT_NAME_MAX + 1];
        int r;

        connect_name(name);
        hello.version_min = hello.version_max = CONNECT_VERSION;
        hello.client = name;
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
        spin_init(&client->spin, reply->welcome->poll_us * 1000ull);
        wire_set_frame_max(client->wire, WIRE_FRAME_MAX);
        return 0;
}

int gpuq_connect(const char *path, gpuq_client **ret_client) {
        char memory[PATH_MAX];
        gpuq_client *client;
        int fd, r;

        if (!path)
                path = connect_default_path(memory);

        r = connect_socket(path, &fd);
        if (r < 0)
                return r;

        r = client_new(fd, &client);
        if (r < 0)
                return r;

        pthread_mutex_lock(&client->lock);
        r = connect_hello(client, path);
        pthread_mutex_unlock(&client->lock);
        if (r < 0) {
                gpuq_client_free(client);
                return r;
        }

        *ret_client = client;
        return 0;
}
