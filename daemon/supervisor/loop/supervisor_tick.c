/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Now and then: jobs, workers and sessions for which time is up, and a word to the keeper.
 */

#include <stdio.h>

#include "detached.h"
#include "devices.h"
#include "jobs.h"
#include "clients.h"
#include "supervisor.h"
#include "restart.h"
#include "workers.h"

static void supervisor_check_orphan(Job *job, uint64_t now_ns) {
        if (job->orphan_ns && now_ns - job->orphan_ns > SUPERVISOR_ORPHAN_MS * 1000000ull)
                ending_doom(job, JOB_CANCELLED,
                            failure_new(FAILURE_CANCELLED, "its client is gone"));
}

/* Since nothing of its worker has ended: those beside it may have held it up. */
static bool supervisor_is_overdue(const Job *job, uint64_t now_ns, uint64_t grace_ms) {
        uint64_t ran_ns = now_ns - MAX(job->started_ns, job->worker->last_end_ns);

        return job->timeout_ms && ran_ns / 1000000 > job->timeout_ms * 2 + grace_ms;
}

/* Of a worker that is silent, any; of one that speaks, the oldest alone, since others may wait in it. */
static Job *supervisor_find_overdue(const Worker *worker, uint64_t now_ns) {
        uint64_t silent_ms = uv_now(&worker->supervisor->loop) - worker->heard_ms;
        Job *first = TAILQ_FIRST(&worker->inflight), *job;

        if (first && supervisor_is_overdue(first, now_ns, SUPERVISOR_LIAR_MS))
                return first;
        if (silent_ms <= SUPERVISOR_SILENT_MS)
                return NULL;
        TAILQ_FOREACH (job, &worker->inflight, link)
                if (supervisor_is_overdue(job, now_ns, SUPERVISOR_SILENT_MS))
                        return job;
        return NULL;
}

/*
 * The worker counts a job's timeout itself, and speaks once a second while it has jobs; one
 * that does not is not waited for. After a pause of our own its words may be unread.
 */
static void supervisor_check_backstop(Worker *worker, uint64_t now_ns) {
        Job *job;

        if (!supervisor_find_overdue(worker, now_ns))
                return;
        worker_read(worker);
        job = supervisor_find_overdue(worker, now_ns);
        if (job)
                worker_overdue(worker, job);
}

static void supervisor_check_idle(Worker *worker, uint64_t now_ns) {
        uint64_t idle_ns = worker->supervisor->config->worker_idle_s * 1000000000ull;

        /* Whoever drained it wants it free. */
        if (worker->device && !health_takes_jobs(&worker->device->health))
                idle_ns = 0;

        if (worker_is_spare(worker) && now_ns - worker->idle_ns > idle_ns)
                worker_stop(worker);
}

static void supervisor_check_start(Worker *worker, uint64_t now_ns) {
        _cleanup_(failure_freep) Failure *late = NULL;

        if (worker->state != WORKER_STARTING ||
            now_ns - worker->idle_ns <= WORKER_START_MS * 1000000ull)
                return;

        worker->idle_ns = now_ns; /* once is enough */
        late = failure_new(FAILURE_NO_DEVICE, "the driver did not answer within %u s",
                           WORKER_START_MS / 1000);
        worker_kill(worker);
        if (worker->device)
                drain_sign(worker->device, HEALTH_NO_START, worker->domain, late->text);
        else /* a driver that hangs may not let it end either */
                worker_lost(worker, FAULT_CRASH, late, NULL);
}

static void supervisor_check_worker(Worker *worker, uint64_t now_ns) {
        Job *job;

        TAILQ_FOREACH (job, &worker->inflight, link)
                supervisor_check_orphan(job, now_ns);
        supervisor_check_backstop(worker, now_ns);
        supervisor_check_idle(worker, now_ns);
        supervisor_check_start(worker, now_ns);
        worker_tick(worker, now_ns);
}

static void supervisor_tell_keeper(Supervisor *supervisor, uint64_t now_ns) {
        KeeperMessage message = {.kind = KEEPER_STATUS};

        if (now_ns - supervisor->status_ns < (KEEPER_STATUS_S * 1000000000ull) * 4 / 5)
                return;
        supervisor->status_ns = now_ns;
        if (supervisor->engine.n_devices)
                snprintf(message.text, sizeof(message.text), "%zu devices, %u workers, %u jobs",
                         supervisor->engine.n_devices, HASH_COUNT(supervisor->workers),
                         HASH_COUNT(supervisor->engine.jobs));
        else
                snprintf(message.text, sizeof(message.text), "%s",
                         engine_state(&supervisor->engine));
        keeper_link_send(supervisor->engine.keeper, &message, NULL, 0);
}

void supervisor_on_tick(uv_timer_t *timer) {
        Supervisor *supervisor = timer->data;
        Worker *worker, *next_worker;
        uint64_t now_ns;

        supervisor->engine.now_ns = 0;
        now_ns = engine_now(&supervisor->engine);

        clients_tick(&supervisor->clients, now_ns);
        HASH_ITER (hh, supervisor->workers, worker, next_worker)
                supervisor_check_worker(worker, now_ns);
        scheduler_tick(&supervisor->engine, now_ns);
        xid_log_read(supervisor);
        drain_tick(supervisor, now_ns);
        detached_tick(supervisor, now_ns);
        supervisor_tell_keeper(supervisor, now_ns);
}
