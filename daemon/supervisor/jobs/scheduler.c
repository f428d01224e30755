/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler.h"

#include "ending.h"
#include "dependency.h"
#include "executor.h"
#include "express.h"
#include "follow.h"
#include "gate.h"
#include "module.h"
#include "place.h"
#include "provision.h"
#include "retire.h"
#include "slot.h"
#include "trace.h"
#include "util/list.h"

#define SCHEDULER_PICKS_MAX 1024u /* jobs looked at on one device before other work goes on */

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

/* Others stay in the main executor: variables exist there alone, and it keeps the order of jobs that
 * follow one another by their buffers. A suspect job runs alone there. */
static bool scheduler_is_for_express(QueueEntry *entry, void *userdata) {
        const Job *job = container_of(entry, Job, entry);
        const Slot *slot = userdata;

        return job->cost.expected_ns <= express_short_ns(job->engine) && !job_has_variables(job) &&
               !scheduler_is_suspect(job) && dependency_is_beside(job, slot->express);
}

static bool scheduler_fits_express(QueueEntry *entry, void *userdata) {
        const Executor *express = userdata;

        return scheduler_is_for_express(entry, express->slot) &&
               scheduler_fits_well(entry, userdata);
}

/* With an express executor beside it. */
static bool scheduler_fits_main(QueueEntry *entry, void *userdata) {
        const Executor *main = userdata;

        if (express_is_used(main->slot) && scheduler_is_for_express(entry, main->slot))
                return false;
        return dependency_is_beside(container_of(entry, Job, entry), main) &&
               scheduler_fits_well(entry, userdata);
}

static QueueEntry *scheduler_pick(Lane *lane, Executor *executor) {
        if (executor->is_express)
                return queue_pick_deep(&lane->queue, scheduler_fits_express, executor);
        if (lane->slot->express)
                return queue_pick(&lane->queue, scheduler_fits_main, executor);
        return queue_pick(&lane->queue, executor->n_crowded ? scheduler_fits_well : scheduler_fits,
                          executor);
}

static bool scheduler_has_room(Lane *lane, Executor *executor) {
        const Engine *engine = executor->engine;

        return !scheduler_is_held(executor->engine, lane->user) &&
               executor->n_inflight < MAX(engine->config->inflight_jobs, 1u);
}

/* Also of jobs that it takes from direct rings. */
static bool scheduler_is_empty(const Executor *executor) {
        return !executor->n_inflight && TAILQ_EMPTY(&executor->leases);
}

static Job *scheduler_next(Lane *lane, Executor *executor) {
        Job *alone = TAILQ_FIRST(&lane->slot->alone), *job;
        QueueEntry *entry;

        if (scheduler_runs_alone(executor))
                return NULL;
        if (alone)
                return alone->user == lane->user && scheduler_is_empty(executor) ? alone : NULL;
        if (!scheduler_has_room(lane, executor))
                return NULL;

        entry = scheduler_pick(lane, executor);
        job = entry ? container_of(entry, Job, entry) : NULL;
        if (!job || !scheduler_is_suspect(job))
                return job;
        place_alone(job); /* before all other jobs, once the jobs in flight have ended */
        return scheduler_is_empty(executor) ? job : NULL;
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
        if (adding) {
                place_park(job, adding);
                provision_watch(executor->slot);
        }
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

static Job *scheduler_next_express(Lane *lane, Executor *express) {
        QueueEntry *entry;

        if (!scheduler_has_room(lane, express))
                return NULL;
        entry = scheduler_pick(lane, express);
        return entry ? container_of(entry, Job, entry) : NULL;
}

/* The main executor comes first: what it takes is not for the express one. */
static Job *scheduler_look_both(Lane *lane, Executor **ret_executor) {
        Slot *slot = lane->slot;
        Executor *main = slot->executor;
        Job *job = NULL;

        if (express_may_start(slot) &&
            queue_pick_deep(&lane->queue, scheduler_is_for_express, slot))
                express_start(slot);
        if (main && main->is_ready)
                job = scheduler_next(lane, main);
        if (job || !slot->express || !slot->express->is_ready || !express_is_used(slot))
                return job;
        *ret_executor = slot->express;
        return scheduler_next_express(lane, slot->express);
}

/* Return: NULL: no job of this user can go here now; a later event wakes the lane. */
static Job *scheduler_look(Lane *lane, Executor **ret_executor) {
        Slot *slot = lane->slot;
        Executor *executor = *ret_executor = slot->executor;

        if (!executor)
                provision_slot(slot);
        if (express_may_help(slot))
                return scheduler_look_both(lane, ret_executor);
        return executor && executor->is_ready ? scheduler_next(lane, executor) : NULL;
}

static void scheduler_sleep(Lane *lane) {
        if (lane->queue.n_entries)
                provision_watch(lane->slot);
        lane_sleep(lane);
}

/* A user may ask for the holder's quantum only with a job that can be dispatched: otherwise the
 * holder would drain and nobody would follow. */
static bool scheduler_may_ask(Lane *lane) {
        Executor *executor;

        return !quanta_is_shut(&lane->device->quanta, &lane->slot->domain) ||
               scheduler_look(lane, &executor);
}

static void scheduler_run_device(Device *device) {
        unsigned n_left = SCHEDULER_PICKS_MAX;
        uint64_t now_ns = engine_now(device->engine);
        Executor *executor;
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
                        scheduler_sleep(lane);
                        continue;
                }

                lane = gate_turn(device, lane, now_ns);
                if (!lane || !gate_is_open(device))
                        return;
                job = scheduler_look(lane, &executor);
                if (job)
                        scheduler_start(executor, job);
                else
                        scheduler_sleep(lane);
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
        trace_tick(engine, now_ns);
        retire_users(engine, now_ns);
}
