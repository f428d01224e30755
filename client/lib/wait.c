/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting: leader and followers, callbacks, and the public calls that wait.
 *
 * A leader keeps the lead from one turn to the next without waking anybody; it
 * hands over when it leaves or runs callbacks, which may take long or wait for
 * what another thread does. Followers are woken after every turn in which
 * something moved, and look for themselves. What changes without a message, such
 * as a callback's return, wakes the leader as well: client_wake().
 */

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>

#include "client.h"
#include "error.h"
#include "job.h"
#include "siblings.h"

#define WAIT_N_FDS    3 /* that a leader polls: socket, wake_fd, the timer of resume.h */
#define WAIT_VISIT_US INT64_C(30000000) /* the patience of resume.c */
#define WAIT_LOOKS    64                /* at a completion word between two at the socket */

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

/* How long poll() may take: rounded up, or the last millisecond would be spent spinning. */
static int client_poll_ms(int64_t deadline_us) {
        int64_t left_us;

        if (deadline_us == CLIENT_FOREVER)
                return -1;
        if (deadline_us == CLIENT_NOW)
                return 0;

        left_us = deadline_us - client_now_us();
        return left_us <= 0 ? 0 : (int)MIN((left_us + 999) / 1000, INT32_MAX);
}

static void client_follow(gpuq_client *client, int64_t deadline_us) {
        struct timespec until = {
                .tv_sec = deadline_us / 1000000,
                .tv_nsec = deadline_us % 1000000 * 1000,
        };

        client->n_followers++;
        if (deadline_us == CLIENT_FOREVER)
                pthread_cond_wait(&client->cond, &client->lock);
        else
                pthread_cond_timedwait(&client->cond, &client->lock, &until);
        client->n_followers--;
}

static void client_let_others(gpuq_client *client) {
        if (client->n_followers > 0)
                pthread_cond_broadcast(&client->cond);
}

void client_wake(gpuq_client *client) {
        client_let_others(client);
        if (client->leading)
                eventfd_write(client->wake_fd, 1);
}

/* What one turn of the leader found to do. */
static void client_turn(gpuq_client *client, const struct pollfd *fds) {
        eventfd_t n;

        if (fds[1].revents != 0)
                eventfd_read(client->wake_fd, &n);
        if (fds[2].revents != 0)
                resume_turn(client);
        if (fds[0].revents & POLLOUT) {
                client->n_turns++;
                client_flush(client);
        }
        if (fds[0].revents & ~POLLOUT)
                client_receive(client);
        else if (client->wire && wire_has_input(client->wire))
                client_look(client);
        if (client->wire && wire_is_ringed(client->wire) && wire_pending(client->wire) > 0)
                client_flush(client); /* a bell may tell of room in the ring */
        client_let_others(client);
}

/* What the leader looks for beside the socket. */
typedef struct ClientSight {
        const Wire *wire;     /* its ring, if it has one */
        const uint32_t *word; /* NULL: nothing */
        uint32_t value;
} ClientSight;

static void client_relax(void) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
}

static bool client_sees(const ClientSight *sight) {
        if (!sight->word && !wire_is_ringed(sight->wire))
                return false;

        for (unsigned i = 0; i < WAIT_LOOKS; i++) {
                if (sight->word && __atomic_load_n(sight->word, __ATOMIC_ACQUIRE) == sight->value)
                        return true;
                if (wire_has_input(sight->wire))
                        return true;
                client_relax();
        }
        return false;
}

/*
 * Looks for a while without sleeping, since being woken takes longer than most
 * small jobs. Whoever else is ready for this core, gpuqd above all, gets it after each look: where
 * 16 clients and gpuqd shared 16 cores, a third more jobs a second, and p99 was halved. Return: as
 * poll(), and in @ret_found whether word or ring have something.
 */
static int client_spin(Spin *spin, struct pollfd fds[static WAIT_N_FDS], const ClientSight *sight,
                       bool *ret_found) {
        uint64_t now_ns = client_now_ns();
        bool found;
        int n = 0;

        if (!spin_begin(spin, now_ns))
                return 0;

        do {
                found = client_sees(sight);
                if (!found)
                        n = poll(fds, WAIT_N_FDS, 0);
                if (!found && n == 0)
                        sched_yield();
                now_ns = client_now_ns();
        } while (spin_go_on(spin, found || n != 0, now_ns));
        *ret_found =
                found || (n == 0 && client_sees(sight)); /* the core was somebody else's for long */
        return n;
}

/* Sleeps, unless something came by the ring at the last moment. Return: as poll(). */
static int client_doze(Wire *wire, struct pollfd *fds, nfds_t n_fds, int timeout_ms) {
        bool may_sleep = wire_sleep(wire);
        int n;

        n = poll(fds, n_fds, may_sleep ? timeout_ms : 0);
        wire_wake(wire);
        return n;
}

/* Return: as poll(), and in @ret_found whether word or ring have something. Without the lock. */
static int client_watch(gpuq_client *client, struct pollfd fds[static WAIT_N_FDS],
                        const ClientSight *sight, int timeout_ms, bool *ret_found) {
        bool found = false;
        int n = 0;

        if (!sight->wire)
                return poll(fds, WAIT_N_FDS, timeout_ms);

        if (timeout_ms)
                n = client_spin(&client->spin, fds, sight, &found);
        if (n == 0 && !found)
                n = client_doze(client->wire, fds, WAIT_N_FDS, timeout_ms);
        *ret_found = found || wire_has_input(client->wire);
        return n;
}

/* While other clients of this process may be waited for. Return: @lost_us, or 0: they are back. */
static int64_t client_visit(gpuq_client *client, int64_t lost_us) {
        if (!siblings_visit(client, lost_us))
                return 0;
        return client_now_us() - lost_us < WAIT_VISIT_US ? lost_us : 0;
}

/* Return: 0, or -EINTR. */
static int client_lead(gpuq_client *client, int64_t deadline_us, const uint32_t *word,
                       uint32_t value) {
        const ClientSight sight = {client->wire, word, value};
        bool out = !client->deaf && wire_wants_socket(client->wire);
        struct pollfd fds[WAIT_N_FDS] = {
                {.fd = client->wire ? wire_fd(client->wire) : -1,
                 .events = (short)(POLLIN | (out ? POLLOUT : 0))},
                {.fd = client->wake_fd, .events = POLLIN},
                {.fd = client_is_connected(client) ? -1 : client->resume.timer_fd,
                 .events = POLLIN},
        };
        int timeout_ms = client_poll_ms(deadline_us), n, r = 0;
        int64_t lost_us = client->resume.lost_us;
        bool found = false;

        if (lost_us != 0 && (timeout_ms < 0 || timeout_ms > SIBLINGS_LOOK_MS))
                timeout_ms = SIBLINGS_LOOK_MS;

        client->leading = true;
        client->leading_out = out;
        pthread_mutex_unlock(&client->lock);
        n = client_watch(client, fds, &sight, timeout_ms, &found);
        if (n < 0)
                r = -errno;
        if (lost_us != 0)
                lost_us = client_visit(client, lost_us);
        if (client->spin.limit_ns > 0 && (n > 0 || found))
                spin_end(&client->spin, client_now_ns());
        pthread_mutex_lock(&client->lock);
        client->leading = false;
        if (lost_us == 0)
                client->resume.lost_us = 0;

        if (client->freed)
                client->wire = wire_free(client->wire); /* gpuq_client_free() left it to us */
        else if (n > 0 || found)
                client_turn(client, fds);
        return r;
}

int client_wait_word(gpuq_client *client, ClientDone done, void *userdata, int64_t deadline_us,
                     ClientFlags flags, const uint32_t *word, uint32_t value) {
        bool looked = false;
        int r = 0;

        for (;;) {
                if (flags & CLIENT_CALLBACKS)
                        client_run_callbacks(client);
                if (done(client, userdata)) {
                        r = 0;
                        break;
                }
                if (client->error != 0) {
                        r = client->error;
                        break;
                }
                if (r == -EINTR && (flags & CLIENT_INTERRUPTIBLE)) {
                        r = GPUQ_E_AGAIN;
                        break;
                }
                if (looked && deadline_us != CLIENT_FOREVER && client_now_us() >= deadline_us) {
                        r = GPUQ_E_AGAIN;
                        break;
                }

                looked = true;
                r = 0;
                if (!client->leading)
                        r = client_lead(client, deadline_us, word, value);
                else if (deadline_us != CLIENT_NOW)
                        client_follow(client, deadline_us);
        }

        if (!client->leading)
                client_let_others(client);
        return r;
}

/* What is in the ring already is left there: it is dispatched by whoever polls, or he would not learn of it. */
void client_arm(gpuq_client *client) {
        if (client->epoll_fd < 0 || client->leading || client->error != 0 || !client->wire ||
            client->prompted || wire_sleep(client->wire))
                return;

        client->prompted = true;
        eventfd_write(client->notify_fd, 1);
}

int client_wait(gpuq_client *client, ClientDone done, void *userdata, int64_t deadline_us,
                ClientFlags flags) {
        return client_wait_word(client, done, userdata, deadline_us, flags, NULL, 0);
}

void client_run_callbacks(gpuq_client *client) {
        eventfd_t n;
        gpuq_job *job;

        if (TAILQ_EMPTY(&client->callbacks) && !client->prompted)
                return;

        client_let_others(client); /* one of them may lead meanwhile */
        while ((job = TAILQ_FIRST(&client->callbacks))) {
                TAILQ_REMOVE(&client->callbacks, job, callbacks);
                job_run_callback(client, job);
        }

        client->prompted = false;
        if (client->notify_fd >= 0)
                eventfd_read(client->notify_fd, &n);
}

/* ---- room to write ---------------------------------------------------------------- */

static bool client_has_room(gpuq_client *client, void *userdata) {
        return client->error != 0 || client_pending(client) <= *(size_t *)userdata;
}

int client_make_room(gpuq_client *client, size_t n_bytes, int timeout_ms) {
        int r;

        if (!client_has_room(client, &n_bytes)) {
                do /* a daemon that is being started again has a patience of its own */
                        r = client_wait(client, client_has_room, &n_bytes,
                                        client_deadline_us(timeout_ms), 0);
                while (r == GPUQ_E_AGAIN && !client_is_connected(client));
                if (r == GPUQ_E_AGAIN)
                        return error_set(r, "gpuqd has not read for %d ms; nothing was sent",
                                         timeout_ms);
        }

        return client->error != 0 ? client_error(client) : 0;
}

/* ---- public ------------------------------------------------------------------------ */

static bool client_has_turned(gpuq_client *client, void *userdata) {
        return client->n_turns != *(uint64_t *)userdata;
}

int gpuq_dispatch(gpuq_client *client, int timeout_ms) {
        uint64_t n_turns, n_ended;
        bool had_callbacks;
        int r;

        r = client_enter(client);
        if (r < 0)
                return r;

        n_turns = client->n_turns;
        n_ended = client->n_ended;
        had_callbacks = !TAILQ_EMPTY(&client->callbacks);
        client_flush(client);
        r = client_wait(client, client_has_turned, &n_turns,
                        had_callbacks ? CLIENT_NOW : client_deadline_us(timeout_ms),
                        CLIENT_CALLBACKS | CLIENT_INTERRUPTIBLE);
        client_run_callbacks(client);

        n_ended = client->n_ended - n_ended;
        if (n_ended > 0 || r == GPUQ_E_AGAIN || r == 0)
                return client_leave(client, (int)MIN(n_ended, INT32_MAX));

        return client_leave(client, client_error(client));
}
