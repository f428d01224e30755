/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handle: gpuq_connect() and gpuq_client_free(). Here the rooms below become one client.
 */

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "call.h"
#include "connect.h"
#include "direct.h"
#include "dispatch.h"
#include "error.h"
#include "job.h"
#include "prepared.h"
#include "resume.h"
#include "retell.h"
#include "ringing.h"
#include "siblings.h"
#include "spare.h"
#include "util/socket-path.h"

#define CONNECT_TIMEOUT_MS                                                                         \
        60000 /* a daemon that systemd starts for this connection first looks for its devices */
#define CONNECT_N_TRIES                                                                            \
        3 /* a supervisor may die before it has answered a connection; the next one answers it */

/* A client and the state that each room keeps for it, in one block of memory. */
typedef struct Whole {
        gpuq_client client; /* first: client_unref() frees it */
        Memory memory;
        Modules modules;
        Prepareds prepareds;
        Jobs jobs;
} Whole;

/* ---- events of the rooms below ----------------------------------------------------- */

static void whole_failed(gpuq_client *client) {
        calls_end(client);
        jobs_end(client, client->error, client->error_text ? client->error_text : "");
        module_drop_builtin(client);
}

static void whole_leaving(gpuq_client *client) {
        if (client->memory->spares_due_us != 0)
                spare_expire(client);
}

static void whole_freed(gpuq_client *client) {
        (void)spare_release(client);
        arenas_free(client);
        calls_free(client);
        pool_trim(&client->jobs->kept);
        direct_fini(client);
        pthread_mutex_destroy(&client->memory->device_lock);
        pthread_mutex_destroy(&client->memory->lock);
}

static const ClientEvents whole_events = {
        .frame = dispatch_frame,
        .asking = direct_leave,
        .resumed = retell,
        .failed = whole_failed,
        .leaving = whole_leaving,
        .freed = whole_freed,
};

/* Return: 0, or GPUQ_E_SYSTEM; @fd is consumed always. */
static int whole_new(int fd, gpuq_client **ret_client) {
        Whole *whole = calloc(1, sizeof(*whole));
        gpuq_client *client;
        int r;

        if (!whole) {
                close(fd);
                return error_memory();
        }

        client = &whole->client;
        client->memory = &whole->memory;
        client->modules = &whole->modules;
        client->prepareds = &whole->prepareds;
        client->jobs = &whole->jobs;
        TAILQ_INIT(&whole->memory.arenas);
        TAILQ_INIT(&whole->memory.spares);
        TAILQ_INIT(&whole->modules.loaded);
        TAILQ_INIT(&whole->modules.uploads);
        TAILQ_INIT(&whole->prepareds.known);
        TAILQ_INIT(&whole->jobs.callbacks);
        whole->jobs.kept = (Pool)KEPT_POOL;

        r = client_init(client, fd, &whole_events);
        if (r < 0) {
                free(whole);
                return r;
        }
        pthread_mutex_init(&whole->memory.lock, NULL);
        pthread_mutex_init(&whole->memory.device_lock, NULL);
        *ret_client = client;
        return 0;
}

/* ---- connecting ----------------------------------------------------------------------- */

static int connect_error(const char *path, const char *why) {
        return error_set(GPUQ_E_CONNECT,
                         "cannot connect to gpuqd at %s: %s; check the service with 'systemctl "
                         "status gpuqd.socket', or start your own with %s",
                         path, why, socket_path_hint());
}

static int connect_socket(const char *path, int *ret_fd) {
        int r;

        r = connect_open(path, CONNECT_TIMEOUT_MS, ret_fd);
        if (r == -ENAMETOOLONG)
                return connect_error(path, "the path is too long for a Unix socket");
        if (r < 0)
                return connect_error(path, r == -EAGAIN ? "its queue of connections is full"
                                                        : strerror(-r));

        return 0;
}

/* The connection ended without an error message of the daemon: report that the daemon cannot be
 * reached. */
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
                                 "gpuqd at %s (version %s) speaks protocol version %u, but libgpuq "
                                 "%s speaks version %u: install the same version of both",
                                 path, reply->welcome->daemon, reply->welcome->version,
                                 gpuq_version(), CONNECT_VERSION);

        client->session = reply->welcome->session;
        client->n_devices = reply->welcome->n_devices;
        ringing_init(client, reply->welcome);
        direct_init(client, reply->welcome);
        client_set_spin(client, reply->welcome->poll_us);
        wire_set_frame_max(client->wire, WIRE_FRAME_MAX);
        r = resume_allow(client, path);
        if (r == 0)
                siblings_add(client);
        return r;
}

/* @ret_lost: the connection ended without an error message. */
static int connect_once(const char *path, gpuq_client **ret_client, bool *ret_lost) {
        gpuq_client *client;
        int fd, r;

        *ret_lost = false;
        r = connect_socket(path, &fd);
        if (r < 0)
                return r;

        r = whole_new(fd, &client);
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
                path = socket_path_default(memory);

        for (unsigned i = 0; lost && i < CONNECT_N_TRIES; i++)
                r = connect_once(path, ret_client, &lost);
        return r;
}

/* ---- the end ---------------------------------------------------------------------- */

/*
 * In a child: the socket is the parent's. It is closed here, not shut down, and
 * nothing is sent. If another thread of the parent held the lock at the fork,
 * what it guards may be half changed, and only the descriptors are safe to touch.
 */
static void client_free_forked(gpuq_client *client) {
        if (pthread_mutex_trylock(&client->lock) == 0) {
                client->wire = wire_free(client->wire);
                pthread_mutex_unlock(&client->lock);
        } else if (client->wire) {
                close(wire_fd(client->wire));
        }

        client_close_fds(client);
        client_unref(client);
}

void gpuq_client_free(gpuq_client *client) {
        if (!client)
                return;
        if (client_forked(client)) {
                client_free_forked(client);
                return;
        }

        siblings_remove(client);
        pthread_mutex_lock(&client->lock);
        client_fail(client, GPUQ_E_CLOSED, "the client was closed");
        jobs_run_callbacks(client);

        client->freed = true;
        loop_close(&client->loop);
        if (client->lead.is_taken)
                eventfd_write(client->lead.wake_fd, 1); /* the leader closes it */
        else
                client->wire = wire_free(client->wire);
        pthread_mutex_unlock(&client->lock);

        client_unref(client);
}
