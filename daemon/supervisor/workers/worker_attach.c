/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker that the supervisor before us had: from its record and the descriptors
 * that the keeper held to one like any other. The jobs that clients name are put
 * back in flight before anything of its ring is read; then what is left there is
 * read, and with State it tells the rest. What of all that nobody wants any more
 * it is told to drop; jobs that nobody claimed may end by themselves for a while.
 *
 * Its ring may begin with a message that was dealt with before, and with answers
 * to the supervisor that died: all of that is harmless here.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "jobs.h"
#include "base.h"
#include "util/list.h"
#include "loop.h"
#include "restart.h"
#include "worker.h"
#include "util/log.h"

/* ---- start ----------------------------------------------------------------- */

static Device *worker_find_device(Supervisor *supervisor, const char *uuid) {
        for (size_t i = 0; i < supervisor->engine.n_devices; ++i)
                if (strcmp(supervisor->engine.devices[i].uuid, uuid) == 0)
                        return &supervisor->engine.devices[i];
        return NULL;
}

/* Does it live? Its answer comes like that to SPAWN, or to its end. */
static int worker_ask_keeper(const Worker *worker) {
        const KeeperMessage message = {.kind = KEEPER_ATTACH, .id = worker->id};

        return keeper_link_send(worker->supervisor->engine.keeper, &message, NULL, 0);
}

/* Of two, the younger: the other was given up, and has not ended yet. */
static void worker_take_slot(Worker *worker) {
        Slot *slot = worker->slot;

        if (!slot->worker || slot->worker->id < worker->id)
                slot->worker = worker;
}

int worker_attach(Supervisor *supervisor, const LedgerWorker *record,
                  const int fds[static CHANNEL_N_FDS], Worker **ret_worker) {
        Device *device = worker_find_device(supervisor, record->device);
        Worker *worker;
        Slot *slot;
        int r;

        if (!device)
                return -ENODEV;
        slot = slot_get_domain(&supervisor->engine, record->domain, record->gid, device);
        if (!slot)
                return -ENOMEM;
        worker = worker_alloc(supervisor, record->id, slot, NULL);
        if (!worker)
                return -ENOMEM;
        HASH_ADD(hh, supervisor->workers, id, sizeof(worker->id), worker);
        if (!worker->hh.tbl) {
                free(worker);
                return -ENOMEM;
        }

        worker->state = WORKER_HELD;
        worker->is_awake = false;
        worker->is_proved = worker->is_inherited = worker->is_strange = true;
        r = worker_init_handles(worker, fds);
        if (r >= 0)
                r = worker_ask_keeper(worker);
        if (r >= 0)
                r = channel_attach(fds, &worker->channel);
        if (r < 0) {
                HASH_DEL(supervisor->workers, worker);
                worker_close_handles(worker);
                return r;
        }

        worker_take_slot(worker);
        *ret_worker = worker;
        return 0;
}

int worker_adopt(Worker *worker, Job *job) {
        int r;

        assert(worker->state != WORKER_LOST);
        assert(job->state == JOB_WAITING && job->place == JOB_NOWHERE);

        r = scheduler_adopt(job, worker);
        if (r < 0 || worker->is_strange)
                return r;
        /* It had told of it as nobody's. */
        job->phase = FAULT_UNKNOWN;
        if (worker->n_orphans)
                worker->n_orphans--;
        worker_stop_soon(worker); /* if it is doomed since */
        return 0;
}

void worker_resume(Worker *worker) {
        int r;

        assert(worker->state == WORKER_HELD);

        worker->state = WORKER_ATTACHING;
        worker->is_awake = true;
        worker->idle_ns = engine_now(&worker->supervisor->engine);
        if (worker->has_exited) {
                worker_exited(worker, worker->exit_status,
                              worker->exit_text ? worker->exit_text : "");
                return;
        }
        if (worker->slot->worker != worker) {
                worker_kill(worker);
                return;
        }

        r = outbox_push_id(&worker->outbox, OUTBOX_ATTACH, worker->supervisor->engine.started_ns);
        if (r >= 0)
                r = worker_listen(worker);
        if (r < 0)
                worker_kill(worker);
}

/* ---- what it has ----------------------------------------------------------- */

/* What it says of another domain's things is a mistake, or a lie. */
static bool worker_serves(const Worker *worker, const User *user) {
        return worker->slot &&
               slot_find(&worker->supervisor->engine, user, worker->device) == worker->slot;
}

static bool worker_has_arena(const Worker *worker, uint64_t id) {
        const Mapping *mapping;

        HASH_FIND(hh, worker->mappings, &id, sizeof(id), mapping);
        return mapping != NULL;
}

static void worker_refuse(Worker *worker, OutboxKind drop, uint64_t id) {
        if (outbox_push_id(&worker->outbox, drop, id) < 0)
                worker_kill(worker);
}

void worker_inherit_arena(Worker *worker, uint64_t id, Arena *arena) {
        if (worker_has_arena(worker, id))
                return;
        if (!arena || arena->fd < 0 || !worker_serves(worker, arena->user))
                worker_refuse(worker, OUTBOX_ARENA_DROP, id);
        else if (worker_add_mapping(worker, arena) < 0)
                worker_kill(worker);
}

Instance *worker_inherit_module(Worker *worker, uint64_t id, bool has_failed) {
        Module *module = engine_find_module(&worker->supervisor->engine, id);
        Instance *instance;

        if (!module && takeover_knows_module(worker->supervisor, id))
                return NULL; /* its session is dormant, and loads it again when it is back */
        if (!module || !worker_serves(worker, module->user)) {
                if (!has_failed) /* else it has dropped it itself */
                        worker_refuse(worker, OUTBOX_MODULE_DROP, id);
                return NULL;
        }

        instance = worker_know_instance(worker, module);
        if (!instance) {
                worker_kill(worker);
                return NULL;
        }
        if (instance->is_used)
                module->home = worker->device;
        return instance;
}

/* ---- its jobs -------------------------------------------------------------- */

/* It was recorded as handed over, and the one before us died before it was: it did not run. */
static void worker_give_back(Job *job) {
        _cleanup_(failure_freep) Failure *doom = TAKE_PTR(job->doom);
        unsigned retries = job->retries;

        scheduler_return(job, job->is_alone);
        job_note_retries(job, retries);
        if (doom)
                ending_doom(job, job->doom_state, TAKE_PTR(doom));
}

static void worker_compare_jobs(Worker *worker, const Gpuq__Worker__State *state) {
        Job *job, *next;

        TAILQ_FOREACH (job, &worker->inflight, link)
                job->phase = FAULT_QUEUED;
        for (size_t i = 0; i < state->n_jobs; ++i) {
                job = engine_find_job(&worker->supervisor->engine, state->jobs[i]);
                if (job && job->worker == worker)
                        job->phase = FAULT_UNKNOWN;
                else
                        worker->n_orphans++;
        }
        TAILQ_FOREACH_SAFE (job, &worker->inflight, link, next)
                if (job->phase == FAULT_QUEUED)
                        worker_give_back(job);
        takeover_compare_jobs(worker, state);
}

bool worker_take_orphan(Worker *worker) {
        if (worker->is_strange)
                return true;
        if (!worker->n_orphans)
                return false;
        worker->n_orphans--;
        return true;
}

const char *worker_on_state(Worker *worker, const Gpuq__Worker__State *state) {
        if (!worker->is_inherited)
                return "a state that was not asked for";
        /* It may answer one who died before he read it. */
        if (worker->state != WORKER_ATTACHING || state->to != worker->supervisor->engine.started_ns)
                return NULL;

        worker->is_strange = false;
        for (size_t i = 0; i < state->n_arenas; ++i)
                worker_inherit_arena(
                        worker, state->arenas[i],
                        engine_find_arena(&worker->supervisor->engine, state->arenas[i]));
        worker_compare_jobs(worker, state);
        worker->orphans_ns = engine_now(&worker->supervisor->engine);
        log_info("worker %d goes on: %u jobs are in it, and %u that nobody claims", worker->pid,
                 worker->n_inflight, worker->n_orphans);
        worker->state = WORKER_READY;
        slot_worker_ready(worker->slot);
        worker_stop_soon(worker); /* some of them may be doomed since */
        return NULL;
}

/* ---- now and then ---------------------------------------------------------- */

void worker_tick(Worker *worker, uint64_t now_ns) {
        if (worker->state == WORKER_ATTACHING &&
            now_ns - worker->idle_ns > WORKER_START_MS * 1000000ull) {
                log_warning("worker %d does not answer, killed", worker->pid);
                worker_kill(worker);
        }
        if (worker->state == WORKER_READY && worker->n_orphans > takeover_n_jobs(worker) &&
            now_ns - worker->orphans_ns > SUPERVISOR_ORPHAN_MS * 1000000ull) {
                log_info("worker %d is stopped: it runs jobs whose clients are gone", worker->pid);
                worker_stop(worker);
        }
        if (worker->state == WORKER_DYING &&
            now_ns - worker->idle_ns > WORKER_DYING_MS * 1000000ull) {
                log_warning("worker %d was killed and does not end: the driver holds it",
                            worker->pid);
                worker_lost(worker, worker->cause, worker->verdict, worker->last_output);
        }
}
