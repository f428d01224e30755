/* SPDX-License-Identifier: Apache-2.0 */
#include "workers.h"

#include "spares.h"
#include "util/list.h"
#include "util/log.h"

#define WORKERS_SILENT_MS  5000u  /* a worker with jobs that sends nothing for so long hangs */
#define WORKERS_HUNG_TICKS 120u   /* half a minute, at SUPERVISOR_TICK_MS */
#define WORKERS_LIAR_MS    60000u /* a responsive worker may report a job's timeout this late */

int workers_init(Workers *workers, Engine *engine) {
        workers->engine = engine;
        engine->workers = workers;
        engine->executor_ops = &worker_executor_ops;
        return bump_new(&workers->bump);
}

void workers_configure(Workers *workers) {
        spares_restart(workers);
}

void workers_stop(Workers *workers) {
        Worker *worker, *next;

        HASH_ITER (hh, workers->table, worker, next)
                worker_stop(worker);
}

void workers_close(Workers *workers) {
        Worker *worker, *next;

        HASH_ITER (hh, workers->table, worker, next) {
                worker_lost(worker, FAULT_STOPPED, NULL, NULL);
                worker_close(worker);
        }
}

void workers_fini(Workers *workers) {
        bump_free(workers->bump);
}

static Worker *workers_find(const Workers *workers, uint32_t id) {
        Worker *worker;

        HASH_FIND(hh, workers->table, &id, sizeof(id), worker);
        return worker;
}

void workers_spawned(Workers *workers, uint32_t id, int32_t pid) {
        Worker *worker = workers_find(workers, id);

        if (worker)
                worker_spawned(worker, pid);
}

void workers_exited(Workers *workers, uint32_t id, int status, const char *text) {
        Worker *worker = workers_find(workers, id);

        if (worker)
                worker_exited(worker, status, text);
}

/* ---- turns ----------------------------------------------------------------- */

void workers_read(Workers *workers) {
        Worker *worker, *next;

        HASH_ITER (hh, workers->table, worker, next)
                if (worker->is_awake)
                        worker_read(worker);
}

bool workers_flush(Workers *workers, bool may_sleep) {
        bool all_sleep = may_sleep;
        Worker *worker, *next;

        HASH_ITER (hh, workers->table, worker, next) {
                worker_begin_turn(worker);
                worker_flush(worker);
                if (may_sleep)
                        all_sleep &= worker_sleep(worker);
                else if (worker->executor.n_inflight)
                        worker_wake(worker);
        }
        return all_sleep;
}

/* ---- now and then ---------------------------------------------------------- */

static bool workers_is_silent(const Worker *worker) {
        return uv_now(worker->executor.engine->loop) - worker->heard_ms > WORKERS_SILENT_MS;
}

/* Counted from the last end in its worker, because jobs beside it may have delayed it. */
static bool workers_is_overdue(const Job *job, uint64_t now_ns, uint64_t grace_ms) {
        uint64_t ran_ns = now_ns - MAX(job->clock.started_ns, job->executor->last_end_ns);

        return job->work.timeout_ms && ran_ns / 1000000 > job->work.timeout_ms * 2 + grace_ms;
}

/* Any job of a silent worker; of a responsive one the oldest job alone, since others may wait in
 * it. */
static Job *workers_find_overdue(const Worker *worker, uint64_t now_ns) {
        Job *first = TAILQ_FIRST(&worker->executor.inflight), *job;

        if (first && workers_is_overdue(first, now_ns, WORKERS_LIAR_MS))
                return first;
        if (!workers_is_silent(worker))
                return NULL;
        TAILQ_FOREACH (job, &worker->executor.inflight, link)
                if (workers_is_overdue(job, now_ns, WORKERS_SILENT_MS))
                        return job;
        return NULL;
}

static bool workers_keeps_lease(const Worker *worker, uint64_t now_ns) {
        uint64_t recalled_ns = leases_oldest_ns(&worker->executor);

        return worker->state == WORKER_READY && recalled_ns &&
               now_ns - recalled_ns > 2 * WORKERS_SILENT_MS * 1000000ull;
}

/* A lease that was recalled comes back at once. */
static void workers_check_leases(Worker *worker, uint64_t now_ns) {
        if (!workers_keeps_lease(worker, now_ns))
                return;
        worker_read(worker);
        if (!workers_keeps_lease(worker, now_ns))
                return;
        log_warning("worker %d killed: it keeps a direct ring", worker->executor.pid);
        worker_kill(worker);
}

static bool workers_has_read_drop(Worker *worker) {
        WorkerDrop *drop = &worker->drop;

        if (!drop->is_written && TAILQ_EMPTY(&worker->outbox.items)) {
                drop->is_written = true;
                drop->position = channel_written(worker->channel);
        }
        return drop->is_written && channel_is_dealt_with(worker->channel, drop->position);
}

/* A load that nobody waits for any more may hang in the driver, with all jobs of the worker behind it, none of
 * which runs meanwhile. Counted in ticks, which a pause of the machine or of the supervisor does not add. */
static void workers_check_load(Worker *worker) {
        if (!worker->drop.is_awaited || worker->state != WORKER_READY)
                return;
        worker_read(worker);
        if (worker_is_gone(worker))
                return;
        if (workers_has_read_drop(worker)) {
                worker->drop.is_awaited = false;
                return;
        }
        if (++worker->drop.n_ticks <= WORKERS_HUNG_TICKS || !workers_is_silent(worker))
                return;
        log_warning("worker %d killed: it hangs, and a client has given up a module that it loads",
                    worker->executor.pid);
        worker_kill(worker);
}

/*
 * The worker watches a job's timeout itself, and sends a message once a second while it has jobs. A
 * worker that does not is not waited for. After a pause of the supervisor, messages may be unread.
 */
static void workers_check_backstop(Worker *worker, uint64_t now_ns) {
        Job *job;

        if (!workers_find_overdue(worker, now_ns))
                return;
        worker_read(worker);
        job = workers_find_overdue(worker, now_ns);
        if (job)
                worker_overdue(worker, job);
}

static void workers_check_idle(Worker *worker, uint64_t now_ns) {
        Executor *executor = &worker->executor;
        uint64_t idle_ns = executor->engine->config->worker_idle_s * 1000000000ull;

        if (executor->is_express && executor->slot)
                idle_ns = MIN(idle_ns, express_idle_ns(executor->slot));

        /* A device is drained so that an administrator can work on it: end its idle workers at
         * once. */
        if (executor->device && !health_takes_jobs(&executor->device->health))
                idle_ns = 0;

        /* Its user has another share of the SMs now, which only a new context can have. */
        executor->is_outdated =
                executor->slot && !sms_are_equal(worker->sms, slot_sms(executor->slot));
        if (executor->is_outdated)
                idle_ns = 0;

        if (provision_is_idle(executor) && now_ns - executor->idle_ns > idle_ns)
                worker_stop(worker);
}

void workers_tick(Workers *workers, uint64_t now_ns) {
        Worker *worker, *next;

        HASH_ITER (hh, workers->table, worker, next) {
                ending_drop_orphans(&worker->executor, now_ns);
                workers_check_backstop(worker, now_ns);
                workers_check_leases(worker, now_ns);
                workers_check_load(worker);
                workers_check_idle(worker, now_ns);
                worker_tick(worker, now_ns);
                gate_tick(&worker->executor);
        }
        spares_tick(workers, now_ns);
}
