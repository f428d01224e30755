/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wait: leader and followers
 *
 * A leader keeps the lead from one turn to the next without waking other threads. It hands over
 * when it leaves, or when its caller runs callbacks, which may take long or wait for another
 * thread. Followers are woken after every turn in which something arrived or was sent, and check
 * their own conditions. Changes without a message, such as a callback's return, wake the leader as
 * well: client_wake().
 */

#include "wait.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>

#include "direct.h"
#include "error.h"
#include "receive.h"
#include "resume.h"
#include "siblings.h"
#include "util/runnable.h"

#define WAIT_N_FDS                                                                                 \
        4 /* that a leader polls: the socket, wake_fd, the timer of resume.h, the bell of direct.h */
#define WAIT_VISIT_US INT64_C(30000000) /* resume.c limits how long it waits */
#define WAIT_LOOKS    64 /* polls of a completion word between two polls of the socket */

/* The timeout for poll(), rounded up; otherwise the thread would spin for the last millisecond. */
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

        client->lead.n_followers++;
        if (deadline_us == CLIENT_FOREVER)
                pthread_cond_wait(&client->lead.cond, &client->lock);
        else
                pthread_cond_timedwait(&client->lead.cond, &client->lock, &until);
        client->lead.n_followers--;
}

/* What one turn of the leader found. */
static void client_turn(gpuq_client *client, const struct pollfd *fds) {
        eventfd_t n;

        if (fds[1].revents != 0)
                eventfd_read(client->lead.wake_fd, &n);
        if (fds[2].revents != 0)
                resume_turn(client);
        if (fds[3].revents != 0)
                (void)direct_bell_hear(client->loop.bell_fd);
        if (fds[0].revents & POLLOUT) {
                client->lead.n_turns++;
                client_flush(client);
        }
        if (fds[0].revents & ~POLLOUT)
                client_receive(client);
        else if (client->wire && wire_has_input(client->wire))
                client_look(client);
        if (client->wire && wire_is_ringed(client->wire) && wire_pending(client->wire) > 0)
                client_flush(client); /* a bell may mean that the ring has space */
        client_let_others(client);
}

/* What the leader polls beside the socket. */
typedef struct ClientSight {
        const Wire *wire;     /* its ring, if it has one */
        const uint32_t *word; /* NULL: nothing */
        uint32_t value;
        const Direct *direct; /* NULL: nothing; else whose jobs may end */
} ClientSight;

static void client_relax(void) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
}

static bool client_sees_end(const Direct *direct) {
        return direct && direct_ring_has_end(&direct->ring,
                                             __atomic_load_n(&direct->first, __ATOMIC_RELAXED));
}

static bool client_sees(const ClientSight *sight) {
        if (!sight->word && !sight->direct && !wire_is_ringed(sight->wire))
                return false;

        for (unsigned i = 0; i < WAIT_LOOKS; i++) {
                if (sight->word && __atomic_load_n(sight->word, __ATOMIC_ACQUIRE) == sight->value)
                        return true;
                if (wire_has_input(sight->wire) || client_sees_end(sight->direct))
                        return true;
                client_relax();
        }
        return false;
}

/*
 * Polls for a while without sleeping, because a wake-up takes longer than most small jobs. After
 * each poll it yields the core to other processes, above all to gpuqd. With 16 clients and gpuqd
 * on 16 cores this gave a third more jobs a second, and half the p99.
 *
 * Return: as poll(), and in @ret_found whether word or ring have something.
 */
static int client_spin(Spin *spin, struct pollfd fds[static WAIT_N_FDS], const ClientSight *sight,
                       bool *ret_found) {
        uint64_t now_ns = client_now_ns();
        bool found;
        int n = 0;

        runnable_count(&spin->contention, now_ns);
        if (!spin_begin(spin, now_ns))
                return 0;

        do {
                found = client_sees(sight);
                if (!found)
                        n = poll(fds, WAIT_N_FDS, 0);
                if (!found && n == 0 && spin_may_yield(spin))
                        sched_yield();
                now_ns = client_now_ns();
        } while (spin_go_on(spin, found || n != 0, now_ns));
        *ret_found = found ||
                     (n == 0 && client_sees(sight)); /* another process kept the core for long */
        return n;
}

/* Sleeps, unless a ring received something at the last moment. Return: as poll(). */
static int client_doze(gpuq_client *client, struct pollfd *fds, nfds_t n_fds, int timeout_ms) {
        bool may_sleep = wire_sleep(client->wire) && direct_doze(&client->direct);
        int n;

        n = poll(fds, n_fds, may_sleep ? timeout_ms : 0);
        wire_wake(client->wire);
        direct_rouse(&client->direct);
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
                n = client_spin(&client->lead.spin, fds, sight, &found);
        if (n == 0 && !found)
                n = client_doze(client, fds, WAIT_N_FDS, timeout_ms);
        *ret_found = found || wire_has_input(client->wire);
        return n;
}

/* While other clients of this process have not reconnected. Return: @lost_us; 0: all have. */
static int64_t client_visit(gpuq_client *client, int64_t lost_us) {
        if (!siblings_visit(client, lost_us))
                return 0;
        return client_now_us() - lost_us < WAIT_VISIT_US ? lost_us : 0;
}

/* Return: 0, or -EINTR. */
static int client_lead(gpuq_client *client, int64_t deadline_us, const uint32_t *word,
                       uint32_t value) {
        /* A thread that waits for one job looks for the end of that job alone. */
        const ClientSight sight = {client->wire, word, value,
                                   word || !direct_has_jobs(client) ? NULL : &client->direct};
        bool out = client_wants_out(client);
        struct pollfd fds[WAIT_N_FDS] = {
                {.fd = client->wire ? wire_fd(client->wire) : -1,
                 .events = (short)(POLLIN | (out ? POLLOUT : 0))},
                {.fd = client->lead.wake_fd, .events = POLLIN},
                {.fd = client_is_connected(client) ? -1 : client->loop.timer_fd, .events = POLLIN},
                {.fd = client->loop.bell_fd, .events = POLLIN},
        };
        int timeout_ms = client_poll_ms(deadline_us), n, r = 0;
        int64_t lost_us = client->resume.lost_us;
        bool found = false;

        if (lost_us != 0 && (timeout_ms < 0 || timeout_ms > SIBLINGS_LOOK_MS))
                timeout_ms = SIBLINGS_LOOK_MS;

        client->lead.is_taken = true;
        client->lead.polls_out = out;
        pthread_mutex_unlock(&client->lock);
        n = client_watch(client, fds, &sight, timeout_ms, &found);
        if (n < 0)
                r = -errno;
        if (lost_us != 0)
                lost_us = client_visit(client, lost_us);
        if (client->lead.spin.limit_ns > 0 && (n > 0 || found))
                spin_end(&client->lead.spin, client_now_ns());
        pthread_mutex_lock(&client->lock);
        client->lead.is_taken = false;
        if (lost_us == 0)
                client->resume.lost_us = 0;

        if (client->freed)
                client->wire = wire_free(client->wire); /* left here by gpuq_client_free() */
        else if (n > 0 || found)
                client_turn(client, fds);
        return r;
}

int client_wait_word(gpuq_client *client, ClientDone done, void *userdata, int64_t deadline_us,
                     bool interruptible, const uint32_t *word, uint32_t value) {
        bool looked = false;
        int r = 0;

        for (;;) {
                if (done(client, userdata)) {
                        r = 0;
                        break;
                }
                if (client->error != 0) {
                        r = client->error;
                        break;
                }
                if (r == -EINTR && interruptible) {
                        r = GPUQ_E_AGAIN;
                        break;
                }
                if (looked && deadline_us != CLIENT_FOREVER && client_now_us() >= deadline_us) {
                        r = GPUQ_E_AGAIN;
                        break;
                }

                looked = true;
                r = 0;
                if (!client->lead.is_taken)
                        r = client_lead(client, deadline_us, word, value);
                else if (deadline_us != CLIENT_NOW)
                        client_follow(client, deadline_us);
        }

        if (!client->lead.is_taken)
                client_let_others(client);
        return r;
}

int client_wait(gpuq_client *client, ClientDone done, void *userdata, int64_t deadline_us,
                bool interruptible) {
        return client_wait_word(client, done, userdata, deadline_us, interruptible, NULL, 0);
}

/* ---- room to write ---------------------------------------------------------------- */

static bool client_has_room(gpuq_client *client, void *userdata) {
        return client->error != 0 || client_pending(client) <= *(size_t *)userdata;
}

int client_make_room(gpuq_client *client, size_t n_bytes, int timeout_ms) {
        int r;

        if (!client_has_room(client, &n_bytes)) {
                do /* resume.c limits the wait for a daemon that is being restarted */
                        r = client_wait(client, client_has_room, &n_bytes,
                                        client_deadline_us(timeout_ms), false);
                while (r == GPUQ_E_AGAIN && !client_is_connected(client));
                if (r == GPUQ_E_AGAIN)
                        return error_set(
                                r, "gpuqd has not read this connection for %d ms; nothing was sent",
                                timeout_ms);
        }

        return client->error != 0 ? client_error(client) : 0;
}
