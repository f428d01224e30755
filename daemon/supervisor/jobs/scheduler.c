/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler.h"

#include "ending.h"
#include "dependency.h"
#include "executor.h"
#include "follow.h"
#include "gate.h"
#include "module.h"
#include "place.h"
#include "provision.h"
#include "retire.h"
#include "slot.h"
#include "util/list.h"

#define SCHEDULER_PICKS_MAX 4096u /* jobs looked at on one device before other work goes on */

/* Long jobs one at a time, short ones up to the quantum, side by side. */
static bool scheduler_fits(QueueEntry *entry, void *userdata) {
        const Job *job = container_of(entry, Job, entry);
        const Executor *executor = userdata;

        if (job->cost.is_long)
                return executor->n_long == 0;
        return executor->short_ns < engine_inflight_ns(executor->engine);
}

static bool scheduler_runs_alone(const Executor *executor) {
        const Job *job = TAILQ_FIRST(&executor->inflight);

        return job && job->is_alone;
}

/* scheduler_tick() wakes the user again. */
static bool scheduler_is_held(Engine *engine, User *user) {
        user->is_held = user_over_seconds(user, engine_now(engine)) > 0;
        return user->is_held;
}

/* One of its kernels has faulted and not run well since. */
static bool scheduler_is_suspect(const Job *job) {
        const Suspects *suspects = &job->user->suspects;

        if (!suspects->n_keys)
                return false;
        for (size_t i = 0; i < job->work.n_kernels; ++i)
                if (suspects_has(suspects, suspects_key(job->work.kernels[i].module->name,
                                                        job->work.kernels[i].name)))
                        return true;
        return false;
}

/* So many jobs wait for one of its modules that it stays in its queue. */
static bool scheduler_is_crowded(const Job *job, const Executor *executor) {
        for (size_t i = 0; i < job->work.n_kernels; ++i) {
                const Instance *instance =
                        module_find_instance(job->work.kernels[i].module, executor);

                if (instance && instance->n_parked >= INSTANCE_PARKED_MAX)
                        return true;
        }
        return false;
}

static bool scheduler_fits_well(QueueEntry *entry, void *userdata) {
        return scheduler_fits(entry, userdata) &&
               !scheduler_is_crowded(container_of(entry, Job, entry), userdata);
}

static Job *scheduler_next(Lane *lane, Executor *executor) {
        Job *alone = TAILQ_FIRST(&lane->slot->alone), *job;
        QueueEntry *entry;

        if (scheduler_runs_alone(executor))
                return NULL;
        if (alone)
                return alone->user == lane->user && !executor->n_inflight ? alone : NULL;
        if (scheduler_is_held(executor->engine, lane->user))
                return NULL;
        if (executor->n_inflight >= MAX(executor->engine->config->inflight_jobs, 1u))
                return NULL;

        entry = queue_pick(&lane->queue, executor->n_crowded ? scheduler_fits_well : scheduler_fits,
                           executor);
        job = entry ? container_of(entry, Job, entry) : NULL;
        if (!job || !scheduler_is_suspect(job))
                return job;
        place_alone(job); /* before all other jobs, once the jobs in flight have ended */
        return executor->n_inflight ? NULL : job;
}

/* ---- start ----------------------------------------------------------------- */

static bool scheduler_tell_lost_variables(Job *job) {
        for (size_t i = 0; i < job->work.n_kernels; ++i) {
                Module *module = job->work.kernels[i].module;

                if (!module->variables_lost)
                        continue;
                module_forget_use(module);
                ending_fail(
                        job,
                        failure_new(FAILURE_VARIABLES_LOST,
                                    "the variables of module %s were lost with their worker; the "
                                    "next job starts from their initial values",
                                    module->name));
                return true;
        }
        return false;
}

/* Return: true: all its modules are loaded in this worker. Else the job waits or has ended. */
static bool scheduler_has_modules(Job *job, Executor *executor) {
        Instance *adding = NULL;

        for (size_t i = 0; i < job->work.n_kernels; ++i) {
                Module *module = job->work.kernels[i].module;
                Instance *instance = module_find_instance(module, executor);

                if (!instance)
                        instance = module_add_instance(module, executor);
                if (!instance) {
                        ending_fail(job, failure_new(FAILURE_INTERNAL, "gpuqd is out of memory"));
                        return false;
                }
                if (instance->state != INSTANCE_READY)
                        adding = instance;
        }
        if (adding)
                place_park(job, adding);
        return !adding;
}

/* Its client is gone, and the backlog has not come to it yet. */
static bool scheduler_is_abandoned(Job *job) {
        if (!job->submitter || !job->submitter->is_closing)
                return false;
        place_end_soon(job, JOB_CANCELLED,
                       failure_new(FAILURE_CANCELLED, "cancelled: its client disconnected"));
        return true;
}

/* A job that it was to follow into this worker is not there any more. */
static bool scheduler_has_to_wait(Job *job, const Executor *executor) {
        if (!dependency_is_behind(job) || follow_may_start(job, executor))
                return false;
        place_withdraw(job);
        place_consider(job);
        return true;
}

static void scheduler_start(Executor *executor, Job *job) {
        if (scheduler_is_abandoned(job) || scheduler_has_to_wait(job, executor))
                return;
        if (scheduler_tell_lost_variables(job) || !scheduler_has_modules(job, executor))
                return;

        if (place_run(job, executor) < 0)
                ending_fail(job, failure_new(FAILURE_INTERNAL, "gpuqd is out of memory"));
        else if (!TAILQ_EMPTY(&job->edges.successors))
                follow_started(job);
}

/* Return: NULL: no job of this user can go here now; a later event wakes the lane. */
static Job *scheduler_look(Lane *lane) {
        Executor *executor = lane->slot->executor;

        if (!executor) {
                provision_slot(lane->slot);
                return NULL;
        }
        return executor->is_ready ? scheduler_next(lane, executor) : NULL;
}

/* A user may ask for the holder's quantum only with a job that can be dispatched: otherwise the
 * holder would drain and nobody would follow. */
static bool scheduler_may_ask(Lane *lane) {
        return !quanta_is_shut(&lane->device->quanta, &lane->slot->domain) || scheduler_look(lane);
}

static void scheduler_run_device(Device *device) {
        unsigned n_left = SCHEDULER_PICKS_MAX;
        uint64_t now_ns = engine_now(device->engine);
        Lane *lane;
        Job *job;

        device->is_dirty = false;
        if (!health_takes_jobs(&device->health))
                return;
        while ((lane = lane_pick(device))) {
                if (!n_left--) {
                        device->is_dirty = device->engine->has_new_work = true;
                        return;
                }
                if (!scheduler_may_ask(lane)) {
                        lane_sleep(lane);
                        continue;
                }

                lane = gate_turn(device, lane, now_ns);
                if (!lane || !gate_is_open(device))
                        return;
                job = scheduler_look(lane);
                if (job)
                        scheduler_start(lane->slot->executor, job);
                else
                        lane_sleep(lane);
                lane_took_turn(lane);
        }
}

void scheduler_run(Engine *engine) {
        if (engine->is_paused)
                return;
        instances_load(engine);
        for (size_t i = 0; i < engine->n_devices; ++i)
                if (engine->devices[i].is_dirty)
                        scheduler_run_device(&engine->devices[i]);
}

static void scheduler_release(User *user) {
        user->is_held = false;
        for (size_t i = 0; i < user->n_lanes; ++i)
                if (user->lanes[i])
                        slot_wake(user->lanes[i]->slot);
}

/* Wakes users for whom there was no memory before. */
static void scheduler_wake_again(Engine *engine) {
        Slot *slot;

        if (!engine->has_missed_wake)
                return;
        engine->has_missed_wake = false;
        for (slot = engine->slots; slot; slot = slot->hh.next)
                slot_wake(slot);
}

void scheduler_tick(Engine *engine, uint64_t now_ns) {
        User *user;

        scheduler_wake_again(engine);
        for (user = engine->users; user; user = user->hh.next)
                if (user->is_held && user_over_seconds(user, now_ns) <= 0)
                        scheduler_release(user);
        retire_users(engine, now_ns);
}
