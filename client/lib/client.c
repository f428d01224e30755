/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client
 *
 * Its life, the lock, and what goes out. Waiting and reading are wait.c's, what
 * comes in is dispatch.c's, the first words are connect.c's.
 */

#include "client.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "arena.h"
#include "call.h"
#include "error.h"
#include "generation.h"
#include "job.h"
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
        TAILQ_INIT(&client->calls);
        TAILQ_INIT(&client->callbacks);
        TAILQ_INIT(&client->arenas);
        TAILQ_INIT(&client->spares);

        client->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (client->wake_fd < 0) {
                r = error_system("eventfd");
                close(fd);
                free(client);
                return r;
        }

        if (client_init_threads(client) < 0 || wire_new(fd, true, &client->wire) < 0) {
                close(client->wake_fd);
                close(fd);
                free(client);
                return error_memory();
        }

        /* The limit for what waits is ours, see client_make_room(): a submission goes whole or not. */
        wire_set_output_max(client->wire, SIZE_MAX / 2);
        *ret_client = client;
        return 0;
}

gpuq_client *client_ref(gpuq_client *client) {
        __atomic_add_fetch(&client->refs, 1, __ATOMIC_RELAXED);
        return client;
}

static void client_close_epoll(gpuq_client *client) {
        closep(&client->epoll_fd);
        closep(&client->notify_fd);
        client->epoll_fd = client->notify_fd = -1;
}

static void client_close_fds(gpuq_client *client) {
        client_close_epoll(client);
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
                client_close_fds(client);
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

int client_send(gpuq_client *client, Gpuq__V1__Request__BodyCase body, void *message,
                uint32_t *ret_serial) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        int r;

        if (client->error != 0)
                return client_error(client);

        request.serial = client->serial + 1 ? client->serial + 1 : 1; /* 0 is no request's */
        request.body_case = body;
        request.hello = message; /* one union of pointers */

        r = wire_queue(client->wire, &request.base, -1);
        if (r == -EMSGSIZE)
                return error_set(GPUQ_E_INVALID,
                                 "the request is larger than a message may be, %u MiB",
                                 WIRE_FRAME_MAX >> 20);
        if (r != 0)
                return error_memory();

        client->serial = request.serial;
        if (ret_serial)
                *ret_serial = request.serial;
        return 0;
}

/* Whoever polls the user's descriptor learns of room to write only if asked for. */
static void client_update_epoll(gpuq_client *client) {
        bool out = !client->deaf && wire_pending(client->wire) > 0;
        struct epoll_event event = {.events = EPOLLIN | (out ? EPOLLOUT : 0)};

        if (client->epoll_fd < 0 || client->epolling_out == out)
                return;

        if (epoll_ctl(client->epoll_fd, EPOLL_CTL_MOD, wire_fd(client->wire), &event) == 0)
                client->epolling_out = out;
}

/* The daemon is there, but a part of what it was to be told is not: for it, too, this is the end. */
static void client_give_up_sending(gpuq_client *client, int error) {
        client->send_errno = error;
        shutdown(wire_fd(client->wire), SHUT_RDWR);
}

void client_flush(gpuq_client *client) {
        int r;

        if (client->deaf || !client->wire)
                return;

        r = wire_flush(client->wire);
        if (r != 0 && r != WIRE_E_AGAIN) {
                client->deaf = true; /* its last words may be there still: reading tells the end */
                if (r != WIRE_E_CLOSED)
                        client_give_up_sending(client, -r);
        }

        if (r == WIRE_E_AGAIN && client->leading && !client->leading_out)
                eventfd_write(client->wake_fd, 1);
        client_update_epoll(client);
}

/* ---- the user's loop ------------------------------------------------------------ */

static int client_make_epoll(gpuq_client *client) {
        struct epoll_event event = {.events = EPOLLIN};
        _cleanup_(closep) int epoll_fd = -1, notify_fd = -1;

        epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (epoll_fd < 0)
                return error_system("epoll_create1");

        notify_fd = eventfd(!TAILQ_EMPTY(&client->callbacks), EFD_CLOEXEC | EFD_NONBLOCK);
        if (notify_fd < 0)
                return error_system("eventfd");

        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, notify_fd, &event) < 0 ||
            epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wire_fd(client->wire), &event) < 0)
                return error_system("epoll_ctl");

        client->epoll_fd = TAKE_FD(epoll_fd);
        client->notify_fd = TAKE_FD(notify_fd);
        client->epolling_out = false;
        client_update_epoll(client);
        return 0;
}

int gpuq_client_fd(gpuq_client *client) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        r = client->epoll_fd >= 0 ? 0 : client_make_epoll(client);
        return client_leave(client, r < 0 ? r : client->epoll_fd);
}

int gpuq_client_events(gpuq_client *client) {
        int r, events;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        events = POLLIN | (wire_pending(client->wire) > 0 ? POLLOUT : 0);
        return client_leave(client, events);
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
        shutdown(wire_fd(client->wire), SHUT_RDWR);
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
        client_unref(client);
}

void gpuq_client_free(gpuq_client *client) {
        if (!client)
                return;
        if (client_forked(client)) {
                client_free_forked(client);
                return;
        }

        pthread_mutex_lock(&client->lock);
        client_fail(client, GPUQ_E_CLOSED, "the client was freed");
        client_run_callbacks(client);

        client->freed = true;
        client_close_epoll(client);
        if (client->leading)
                eventfd_write(client->wake_fd, 1); /* the leader closes it */
        else
                client->wire = wire_free(client->wire);
        pthread_mutex_unlock(&client->lock);

        client_unref(client);
}
