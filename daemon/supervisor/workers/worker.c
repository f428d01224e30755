/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "jobs.h"
#include "util/log.h"

/* ---- start ----------------------------------------------------------------- */

static void worker_on_hangup(uv_poll_t *poll, int status, int events) {
        Worker *worker = poll->data;

        /* Its last messages are in the ring. The keeper sees its exit; if it only closed a socket, it
         * is killed. */
        uv_poll_stop(poll);
        worker_read(worker);
        keeper_link_kill(worker->executor.engine->keeper, worker->executor.id);
}

static void worker_on_bell(uv_poll_t *poll, int status, int events) {
        Worker *worker = poll->data;

        worker->is_awake = true;
        if (channel_wake(worker->channel) == CHANNEL_E_CLOSED)
                worker_on_hangup(poll, status, events);
        else
                worker_read(worker);
}

static int worker_init_handles(Worker *worker) {
        uv_loop_t *loop = worker->executor.engine->loop;
        int r;

        worker->bell.data = worker->hangup.data = worker->timer.data = worker;
        r = uv_timer_init(loop, &worker->timer);
        if (r < 0)
                return r;
        worker->n_handles++;
        r = uv_poll_init(loop, &worker->bell, channel_bell_fd(worker->channel));
        if (r < 0)
                return r;
        worker->n_handles++;
        r = uv_poll_init(loop, &worker->hangup, channel_socket_fd(worker->channel));
        if (r < 0)
                return r;
        worker->n_handles++;
        return 0;
}

static int worker_listen(Worker *worker) {
        int r;

        r = uv_poll_start(&worker->bell, UV_READABLE, worker_on_bell);
        if (r < 0)
                return r;
        return uv_poll_start(&worker->hangup, UV_DISCONNECT, worker_on_hangup);
}

static void worker_on_close(uv_handle_t *handle) {
        Worker *worker = handle->data;

        if (--worker->n_handles)
                return;
        channel_free(worker->channel);
        free(worker->last_output);
        failure_free(worker->verdict);
        free(worker);
}

static void worker_close_handles(Worker *worker) {
        uv_handle_t *handles[] = {
                (uv_handle_t *)&worker->timer,
                (uv_handle_t *)&worker->bell,
                (uv_handle_t *)&worker->hangup,
        };
        unsigned n_handles = worker->n_handles;

        if (!n_handles) {
                worker->n_handles = 1;
                worker_on_close(&(uv_handle_t){.data = worker});
                return;
        }
        for (unsigned i = 0; i < n_handles; ++i)
                uv_close(handles[i], worker_on_close);
}

static int worker_spawn(Worker *worker, const int fds[static CHANNEL_N_FDS]) {
        KeeperMessage message = {
                .kind = KEEPER_SPAWN,
                .id = worker->executor.id,
                .uid = worker->domain,
                .device = worker->executor.device ? worker->executor.device->index : 0,
                .probe = worker_is_probe(worker),
                .spare = worker->is_spare,
                .sms = worker->sms,
        };
        const Device *device = worker->check ? worker->check : worker->executor.device;

        if (device)
                snprintf(message.text, sizeof(message.text), "%s", device->uuid);
        return keeper_link_send(worker->executor.engine->keeper, &message, fds, CHANNEL_N_FDS);
}

static Worker *worker_alloc(Workers *workers, Slot *slot, Device *device) {
        Worker *worker;

        worker = calloc(1, sizeof(*worker));
        if (!worker)
                return NULL;

        executor_init(&worker->executor, workers->engine, ++workers->last_id, slot, device);
        worker->workers = workers;
        worker->domain = slot ? slot->key.domain : 0;
        worker->sms = slot ? slot_sms(slot) : (Sms){};
        worker->cause = FAULT_CRASH;
        worker->is_awake = true;
        worker->budget = WORKER_TURN_BYTES;
        worker->credit = WORKER_CREDIT_START;
        outbox_init(&worker->outbox);
        return worker;
}

/* Consumes the worker if that fails. */
static int worker_start(Workers *workers, Worker *worker) {
        int fds[CHANNEL_N_FDS], r;

        HASH_ADD(hh, workers->table, executor.id, sizeof(worker->executor.id), worker);
        if (!worker->hh.tbl) {
                free(worker);
                return -ENOMEM;
        }
        r = channel_new(&worker->channel, fds);
        if (r < 0) {
                HASH_DEL(workers->table, worker);
                free(worker);
                return r;
        }
        r = worker_init_handles(worker);
        if (r >= 0)
                r = worker_listen(worker);
        if (r >= 0)
                r = worker_spawn(worker, fds);
        for (size_t i = 0; i < CHANNEL_N_FDS; ++i)
                close(fds[i]); /* the worker's ends */
        if (r < 0) {
                HASH_DEL(workers->table, worker);
                worker_close_handles(worker);
        }
        return r;
}

int worker_new(Workers *workers, Slot *slot, Worker **ret_worker) {
        *ret_worker = worker_alloc(workers, slot, slot->device);
        return *ret_worker ? worker_start(workers, *ret_worker) : -ENOMEM;
}

int worker_new_probe(Workers *workers, Device *check, Worker **ret_worker) {
        *ret_worker = worker_alloc(workers, NULL, NULL);
        if (!*ret_worker)
                return -ENOMEM;
        (*ret_worker)->check = check;
        return worker_start(workers, *ret_worker);
}

int worker_new_spare(Workers *workers, Device *device, Worker **ret_worker) {
        *ret_worker = worker_alloc(workers, NULL, device);
        if (!*ret_worker)
                return -ENOMEM;
        (*ret_worker)->is_spare = true;
        return worker_start(workers, *ret_worker);
}

/* ---- it gets its user ------------------------------------------------------- */

static void worker_assign(Worker *worker) {
        const KeeperMessage message = {
                .kind = KEEPER_ASSIGN,
                .id = worker->executor.id,
                .uid = worker->domain,
        };

        worker->is_spare = false;
        worker->executor.idle_ns = engine_now(worker->executor.engine); /* the start begins anew */
        if (keeper_link_send(worker->executor.engine->keeper, &message, NULL, 0) < 0)
                worker_kill(worker);
}

void worker_adopt(Worker *worker, Slot *slot) {
        worker->executor.slot = slot;
        worker->domain = slot->key.domain;
        if (worker->state == WORKER_STARTING)
                return; /* worker_ready() goes on */
        worker_set_state(worker, WORKER_STARTING);
        worker_assign(worker);
}

static void worker_log_ready(const Worker *worker) {
        log_info("worker %d is ready on device %u for uid %u%s", worker->executor.pid,
                 worker->executor.device->index, worker->domain,
                 worker->executor.is_express ? ", for short jobs beside a long one" : "");
}

/* The keeper may report this after the worker itself: they use two sockets. */
void worker_spawned(Worker *worker, int32_t pid) {
        worker->executor.pid = pid;
        if (worker->state == WORKER_READY)
                worker_log_ready(worker);
}

void worker_proved(Worker *worker) {
        worker->is_proved = true;
        if (!worker->executor.is_express)
                worker->executor.slot->n_failures = 0;
}

void worker_ready(Worker *worker) {
        if (worker->is_spare) {
                worker_assign(worker);
                return;
        }

        worker_set_state(worker, WORKER_READY);
        worker->executor.idle_ns = engine_now(worker->executor.engine);
        if (worker->executor.pid)
                worker_log_ready(worker);
        if (worker->executor.is_express)
                provision_express_ready(worker->executor.slot);
        else
                provision_worker_ready(worker->executor.slot);
}

bool worker_may_move(WorkerState from, WorkerState to) {
        static const bool moves[_WORKER_STATE_N][_WORKER_STATE_N] = {
                [WORKER_STARTING] = {[WORKER_SPARE] = true,
                                     [WORKER_READY] = true,
                                     [WORKER_DYING] = true,
                                     [WORKER_LOST] = true},
                [WORKER_SPARE] = {[WORKER_STARTING] = true, [WORKER_LOST] = true},
                [WORKER_READY] =
                        {[WORKER_STOPPING] = true, [WORKER_DYING] = true, [WORKER_LOST] = true},
                [WORKER_STOPPING] = {[WORKER_DYING] = true, [WORKER_LOST] = true},
                [WORKER_DYING] = {[WORKER_LOST] = true},
        };

        return moves[from][to];
}

void worker_set_state(Worker *worker, WorkerState next) {
        assert(worker_may_move(worker->state, next));
        worker->state = next;
        worker->executor.is_ready = next == WORKER_READY;
}

/* ---- channel --------------------------------------------------------------- */

static bool worker_is_heard(const Worker *worker) {
        return !worker_is_gone(worker);
}

void worker_flush(Worker *worker) {
        int r;

        if (!worker_is_heard(worker) || TAILQ_EMPTY(&worker->outbox.items))
                return;

        /* If the ring is full the worker rings when it has freed space. If the kernel refuses a
         * descriptor, the next turn tries again, no later than at the tick. */
        r = outbox_flush(&worker->outbox, worker->channel);
        if (r == CHANNEL_E_CORRUPT)
                worker_break(worker, "its ring is corrupt");
        else if (r < 0)
                worker_break(worker, strerror(-r));
}

bool worker_sleep(Worker *worker) {
        if (!worker->is_awake || !worker_is_heard(worker))
                return true;

        worker->is_awake = !channel_sleep(worker->channel);
        return !worker->is_awake;
}

void worker_wake(Worker *worker) {
        if (worker->is_awake || !worker_is_heard(worker))
                return;
        (void)channel_wake(worker->channel); /* worker_on_bell() sees whether it is closed */
        worker->is_awake = true;
}

void worker_begin_turn(Worker *worker) {
        worker->budget = MIN(worker->budget + WORKER_TURN_BYTES, WORKER_TURN_BYTES);
}

static void worker_add_credit(Worker *worker, int n) {
        worker->credit = MIN(worker->credit + n, WORKER_CREDIT_MAX);
}

void worker_gave(Worker *worker) {
        worker_add_credit(worker, WORKER_CREDIT_GIVEN);
}

void worker_earn(Worker *worker) {
        worker_add_credit(worker, WORKER_CREDIT_TICK);
}

static const char *worker_read_one(Worker *worker, const uint8_t *data, size_t n_data) {
        if (--worker->credit < 0)
                return "it sent far more messages than its jobs need";
        return worker_message(worker, data, n_data);
}

/* Return: bytes of the message that was read; 0: there is none, or the worker is gone. */
static size_t worker_read_next(Worker *worker) {
        const char *problem;
        const uint8_t *data;
        size_t n_data;
        int r;

        if (!worker_is_heard(worker))
                return 0;
        r = channel_receive(worker->channel, &data, &n_data);
        if (r == CHANNEL_E_AGAIN)
                return 0;
        if (r) {
                worker_break(worker, "its ring is corrupt");
                return 0;
        }
        problem = worker_read_one(worker, data, n_data);
        if (problem)
                worker_break(worker, problem);
        return n_data + 1;
}

void worker_read(Worker *worker) {
        while (worker->budget > 0) {
                size_t n = worker_read_next(worker);

                if (!n)
                        return;
                worker->budget -= (int)MAX(n, (size_t)WORKER_TURN_LEAST);
        }
}

/* No more than the ring holds: a process that it left behind may still write to it. */
void worker_read_rest(Worker *worker) {
        size_t n, n_read = 0;

        do {
                n = worker_read_next(worker);
                n_read += n;
        } while (n && n_read <= CHANNEL_CAPACITY);
}

/* ---- end ------------------------------------------------------------------- */

void worker_close(Worker *worker) {
        assert(TAILQ_EMPTY(&worker->executor.inflight));
        HASH_DEL(worker->workers->table, worker);
        worker_close_handles(worker);
}

/* ---- for people ------------------------------------------------------------ */

const char *worker_state_name(const Worker *worker) {
        switch (worker->state) {
                case WORKER_STARTING:
                        return "starting";
                case WORKER_SPARE:
                        return "spare";
                case WORKER_READY:
                        if (worker->executor.wait != EXECUTOR_WAITS_NOT)
                                return "draining";
                        return worker->executor.n_inflight || !TAILQ_EMPTY(&worker->executor.leases)
                                       ? "busy"
                                       : "idle";
                default:
                        break;
        }
        return "stopping";
}
