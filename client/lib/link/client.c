/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client
 *
 * Its life, the lock, and what goes out.
 */

#include "client.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

#include "error.h"
#include "generation.h"

static int client_init_threads(gpuq_client *client) {
        pthread_condattr_t attributes;
        int r;

        r = pthread_condattr_init(&attributes);
        if (r != 0)
                return -r;

        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        r = pthread_cond_init(&client->lead.cond, &attributes);
        pthread_condattr_destroy(&attributes);
        if (r != 0)
                return -r;

        pthread_mutex_init(&client->lock, NULL);
        return 0;
}

int client_new_wire(int fd, Wire **ret_wire) {
        int r;

        r = wire_new(fd, true, ret_wire);
        if (r < 0) {
                close(fd);
                return r;
        }

        /* The limit on pending output is checked in client_make_room(), so that a submission is
         * sent whole or not at all. */
        wire_set_output_max(*ret_wire, SIZE_MAX / 2);
        return 0;
}

int client_init(gpuq_client *client, int fd, const ClientEvents *events) {
        int r;

        client->refs = 1;
        client->generation = generation_get();
        client->events = events;
        loop_init(&client->loop);
        TAILQ_INIT(&client->calls);

        client->lead.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (client->lead.wake_fd < 0) {
                r = error_system("eventfd");
                close(fd);
                return r;
        }

        if (client_new_wire(fd, &client->wire) < 0 || bump_new(&client->bump) < 0 ||
            client_init_threads(client) < 0) {
                wire_free(client->wire);
                bump_free(client->bump);
                close(client->lead.wake_fd);
                return error_memory();
        }
        return 0;
}

gpuq_client *client_ref(gpuq_client *client) {
        __atomic_add_fetch(&client->refs, 1, __ATOMIC_RELAXED);
        return client;
}

void client_close_fds(gpuq_client *client) {
        loop_finish(&client->loop);
        closep(&client->lead.wake_fd);
        client->lead.wake_fd = -1;
        free(client->resume.path);
        client->resume.path = NULL;
}

void client_unref(gpuq_client *client) {
        if (__atomic_sub_fetch(&client->refs, 1, __ATOMIC_ACQ_REL) > 0)
                return;

        /* The child's copies of lock and condition may be in any state, so they are abandoned. */
        if (!client_forked(client)) {
                client->events->freed(client);
                wire_free(client->wire);
                bump_free(client->bump);
                client_close_fds(client);
                pthread_mutex_destroy(&client->lock);
                pthread_cond_destroy(&client->lead.cond);
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
                                 "this handle belongs to the parent process and cannot be used "
                                 "after fork(); call gpuq_connect() in the child");

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
        client->events->leaving(client);
        pthread_mutex_unlock(&client->lock);
        client_unref(client);
        return r;
}

int client_error(gpuq_client *client) {
        return error_set(client->error, "%s", client->error_text ? client->error_text : "");
}

/* ---- waiting threads ------------------------------------------------------------- */

uint64_t client_now_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int64_t client_now_us(void) {
        return (int64_t)(client_now_ns() / 1000);
}

int64_t client_deadline_us(int timeout_ms) {
        if (timeout_ms < 0)
                return CLIENT_FOREVER;
        if (timeout_ms == 0)
                return CLIENT_NOW;

        return client_now_us() + (int64_t)timeout_ms * 1000;
}

void client_let_others(gpuq_client *client) {
        if (client->lead.n_followers > 0)
                pthread_cond_broadcast(&client->lead.cond);
}

void client_wake(gpuq_client *client) {
        client_let_others(client);
        if (client->lead.is_taken)
                eventfd_write(client->lead.wake_fd, 1);
}

/* Input in the ring stays there. The thread that polls dispatches it, and would not notice if
 * another thread did. */
void client_arm(gpuq_client *client) {
        Loop *loop = &client->loop;

        if (loop->epoll_fd < 0 || client->lead.is_taken || client->error != 0 || !client->wire ||
            loop->is_notified || (wire_sleep(client->wire) && direct_doze(&client->direct)))
                return;

        loop->is_notified = true;
        loop_notify(loop);
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
        ret_request->serial =
                client->serial + 1 ? client->serial + 1 : 1; /* 0 is not used as a serial */
        ret_request->body_case = body;
        ret_request->hello = message; /* all bodies are pointers in one union */
}

int client_not_queued(int r) {
        if (r == -EMSGSIZE)
                return error_set(GPUQ_E_INVALID,
                                 "the request is larger than a message may be: the limit is %u MiB",
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

        client->events->asking(client);
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

        if (body != GPUQ__V1__REQUEST__BODY_DIRECT_BEGIN &&
            body != GPUQ__V1__REQUEST__BODY_DIRECT_END)
                client->events->asking(client);
        client_fill_request(client, body, message, &request);
        r = client_is_connected(client) ? wire_queue(client->wire, &request.base, -1) : 0;
        if (r != 0)
                return client_not_queued(r);

        client->serial = request.serial;
        if (ret_serial)
                *ret_serial = request.serial;
        return 0;
}

/* The daemon received only a part of the output, so it must see the end of the connection too. */
static void client_give_up_sending(gpuq_client *client, int error) {
        client->send_errno = error;
        shutdown(wire_fd(client->wire), SHUT_RDWR);
}

void client_set_spin(gpuq_client *client, uint32_t poll_us) {
        uint64_t limit_ns = poll_us * UINT64_C(1000);

        if (client->lead.spin.limit_ns != limit_ns)
                spin_init(&client->lead.spin, limit_ns);
}

bool client_wants_out(const gpuq_client *client) {
        return !client->deaf && client->wire && wire_wants_socket(client->wire);
}

void client_flush(gpuq_client *client) {
        int r;

        if (client->deaf || !client->wire)
                return;

        r = wire_flush(client->wire);
        if (r != 0 && r != WIRE_E_AGAIN) {
                client->deaf = true; /* its last messages may be unread: reading finds the end */
                if (r != WIRE_E_CLOSED)
                        client_give_up_sending(client, r < 0 ? -r : EPROTO);
        }

        if (r == WIRE_E_AGAIN && client->lead.is_taken && !client->lead.polls_out &&
            wire_wants_socket(client->wire))
                eventfd_write(client->lead.wake_fd, 1);
        loop_poll_out(&client->loop, client->wire, client_wants_out(client));
}

uint32_t gpuq_client_session(const gpuq_client *client) {
        return client ? client->session : 0;
}

unsigned gpuq_client_devices(const gpuq_client *client) {
        return client ? client->n_devices : 0;
}

/* ---- the end ---------------------------------------------------------------------- */

/*
 * The socket is shut down, not only closed, because a child may hold a copy of it, and the daemon
 * should free what nobody will read. The timer is set to expire and is not reset, so that a poll
 * of the loop's descriptor returns as at the end of a socket.
 */
void client_fail(gpuq_client *client, int error, const char *text) {
        if (client->error != 0)
                return;

        client->error = error;
        client->error_text = strdup(text);
        client->deaf = true;
        client->events->failed(client);
        if (client->wire)
                shutdown(wire_fd(client->wire), SHUT_RDWR);
        loop_set_timer(&client->loop, 1);
        client_wake(client);
}
