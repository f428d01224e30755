/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client
 *
 * Its life, the lock, and what goes out. Waiting and reading are wait.c's, what
 * comes in is dispatch.c's, the first words are connect.c's.
 */

#include "client.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "arena.h"
#include "call.h"
#include "error.h"
#include "generation.h"
#include "job.h"
#include "kept.h"
#include "loop.h"
#include "siblings.h"
#include "spare.h"

static int client_init_threads(gpuq_client *client) {
        pthread_condattr_t attributes;
        int r;

        r = pthread_condattr_init(&attributes);
        if (r != 0)
                return -r;

        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        r = pthread_cond_init(&client->cond, &attributes);
        pthread_condattr_destroy(&attributes);
        if (r != 0)
                return -r;

        pthread_mutex_init(&client->lock, NULL);
        pthread_mutex_init(&client->arena_lock, NULL);
        return 0;
}

int client_new_wire(int fd, Wire **ret_wire) {
        int r;

        r = wire_new(fd, true, ret_wire);
        if (r < 0) {
                close(fd);
                return r;
        }

        /* The limit for what waits is ours, see client_make_room(): a submission goes whole or not. */
        wire_set_output_max(*ret_wire, SIZE_MAX / 2);
        return 0;
}

static void client_init_lists(gpuq_client *client) {
        TAILQ_INIT(&client->calls);
        TAILQ_INIT(&client->callbacks);
        TAILQ_INIT(&client->prepared);
        TAILQ_INIT(&client->modules);
        TAILQ_INIT(&client->uploads);
        TAILQ_INIT(&client->arenas);
        TAILQ_INIT(&client->spares);
}

int client_new(int fd, gpuq_client **ret_client) {
        gpuq_client *client;
        int r;

        client = calloc(1, sizeof(*client));
        if (!client) {
                close(fd);
                return error_memory();
        }

        client->refs = 1;
        client->generation = generation_get();
        client->epoll_fd = client->notify_fd = -1;
        client_init_lists(client);
        resume_init(&client->resume);
        client->kept = (Pool)POOL(KEPT_BLOCK_BYTES, KEPT_N_SPARE);

        client->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (client->wake_fd < 0) {
                r = error_system("eventfd");
                close(fd);
                free(client);
                return r;
        }

        if (client_new_wire(fd, &client->wire) < 0 || bump_new(&client->bump) < 0 ||
            client_init_threads(client) < 0) {
                wire_free(client->wire);
                bump_free(client->bump);
                close(client->wake_fd);
                free(client);
                return error_memory();
        }

        *ret_client = client;
        return 0;
}

gpuq_client *client_ref(gpuq_client *client) {
        __atomic_add_fetch(&client->refs, 1, __ATOMIC_RELAXED);
        return client;
}

static void client_close_fds(gpuq_client *client) {
        loop_close(client);
        closep(&client->wake_fd);
        client->wake_fd = -1;
}

void client_unref(gpuq_client *client) {
        if (__atomic_sub_fetch(&client->refs, 1, __ATOMIC_ACQ_REL) > 0)
                return;

        /* The child's copies of lock and condition may be in any state: just let them go. */
        if (!client_forked(client)) {
                arenas_free(client);
                free(client->words);
                calls_free(client);
                client->wire = wire_free(client->wire);
                client->bump = bump_free(client->bump);
                client_close_fds(client);
                resume_finish(&client->resume);
                pool_trim(&client->kept);
                pthread_mutex_destroy(&client->lock);
                pthread_mutex_destroy(&client->arena_lock);
                pthread_cond_destroy(&client->cond);
        }
        free(client->error_text);
        free(client);
}

bool client_forked(const gpuq_client *client) {
        return client->generation != generation_get();
}

int client_enter(gpuq_client *client) {
        if (!client)
                return error_set(GPUQ_E_INVALID, "a handle is NULL");
        if (client_forked(client))
                return error_set(GPUQ_E_FORKED,
                                 "this handle was inherited through fork() and is the "
                                 "parent's; call gpuq_connect() in the child");

        client_ref(client);
        pthread_mutex_lock(&client->lock);
        return 0;
}

int client_enter_open(gpuq_client *client) {
        int r;

        r = client_enter(client);
        if (r < 0)
                return r;
        if (client->error != 0)
                return client_leave(client, client_error(client));

        return 0;
}

int client_leave(gpuq_client *client, int r) {
        client_arm(client);
        if (client->spares_due_us != 0)
                spare_expire(client);
        pthread_mutex_unlock(&client->lock);
        client_unref(client);
        return r;
}

int client_error(gpuq_client *client) {
        return error_set(client->error, "%s", client->error_text ? client->error_text : "");
}

/* ---- what goes out ----------------------------------------------------------- */

size_t client_pending(const gpuq_client *client) {
        if (!client_is_connected(client))
                return client->resume.n_pending;

        return client->wire ? wire_pending(client->wire) : 0;
}

void client_fill_request(const gpuq_client *client, Gpuq__V1__Request__BodyCase body, void *message,
                         Gpuq__V1__Request *ret_request) {
        *ret_request = (Gpuq__V1__Request)GPUQ__V1__REQUEST__INIT;
        ret_request->serial = client->serial + 1 ? client->serial + 1 : 1; /* 0 is no request's */
        ret_request->body_case = body;
        ret_request->hello = message; /* one union of pointers */
}

int client_not_queued(int r) {
        if (r == -EMSGSIZE)
                return error_set(GPUQ_E_INVALID,
                                 "the request is larger than a message may be, %u MiB",
                                 WIRE_FRAME_MAX >> 20);

        return error_memory();
}

int client_say(gpuq_client *client, const void *request, size_t n_bytes) {
        uint8_t *payload;
        int r;

        if (client->error != 0)
                return client_error(client);
        if (n_bytes > WIRE_FRAME_MAX)
                return client_not_queued(-EMSGSIZE);
        if (!client_is_connected(client))
                return 0;

        r = wire_begin(client->wire, n_bytes, &payload);
        if (r != 0)
                return client_not_queued(r);

        memcpy(payload, request, n_bytes);
        wire_end(client->wire, n_bytes);
        return 0;
}

int client_send(gpuq_client *client, Gpuq__V1__Request__BodyCase body, void *message,
                uint32_t *ret_serial) {
        Gpuq__V1__Request request;
        int r;

        if (client->error != 0)
                return client_error(client);

        client_fill_request(client, body, message, &request);
        r = client_is_connected(client) ? wire_queue(client->wire, &request.base, -1) : 0;
        if (r != 0)
                return client_not_queued(r);

        client->serial = request.serial;
        if (ret_serial)
                *ret_serial = request.serial;
        return 0;
}

/* The daemon is there, but a part of what it was to be told is not: for it, too, this is the end. */
static void client_give_up_sending(gpuq_client *client, int error) {
        client->send_errno = error;
        shutdown(wire_fd(client->wire), SHUT_RDWR);
}

void client_set_spin(gpuq_client *client, uint32_t poll_us) {
        uint64_t limit_ns = poll_us * UINT64_C(1000);

        if (client->spin.limit_ns != limit_ns)
                spin_init(&client->spin, limit_ns);
}

void client_flush(gpuq_client *client) {
        int r;

        if (client->deaf || !client->wire)
                return;

        r = wire_flush(client->wire);
        if (r != 0 && r != WIRE_E_AGAIN) {
                client->deaf = true; /* its last words may be there still: reading tells the end */
                if (r != WIRE_E_CLOSED)
                        client_give_up_sending(client, r < 0 ? -r : EPROTO);
        }

        if (r == WIRE_E_AGAIN && client->leading && !client->leading_out &&
            wire_wants_socket(client->wire))
                eventfd_write(client->wake_fd, 1);
        loop_update(client);
}

uint32_t gpuq_client_session(const gpuq_client *client) {
        return client->session;
}

unsigned gpuq_client_devices(const gpuq_client *client) {
        return client->n_devices;
}

/* ---- the end ---------------------------------------------------------------------- */

/*
 * The socket is shut down, not only closed in the end: a child may hold a copy of
 * it, and the daemon need not keep what nobody will read.
 */
void client_fail(gpuq_client *client, int error, const char *text) {
        if (client->error != 0)
                return;

        client->error = error;
        client->error_text = strdup(text);
        client->deaf = true;
        calls_end(client);
        jobs_end(client, error, text);
        if (client->wire)
                shutdown(wire_fd(client->wire), SHUT_RDWR);
        resume_stop(client);
        client_wake(client);
}

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
        resume_finish(&client->resume);
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
        client_fail(client, GPUQ_E_CLOSED, "the client was freed");
        client_run_callbacks(client);

        client->freed = true;
        loop_close(client);
        if (client->leading)
                eventfd_write(client->wake_fd, 1); /* the leader closes it */
        else
                client->wire = wire_free(client->wire);
        pthread_mutex_unlock(&client->lock);

        client_unref(client);
}
