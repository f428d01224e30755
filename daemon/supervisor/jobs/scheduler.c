/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler.h"

#include <assert.h>

#include "dependency.h"
#include "ending.h"
#include "util/list.h"
#include "slot.h"
#include "engine.h"
#include "executor.h"
#include "util/log.h"

static uint64_t scheduler_quantum_ns(const Engine *engine) {
        return MAX(engine->config->inflight_ms, 1u) * 1000000ull;
}

static Lane *scheduler_lane(const Job *job) {
        return job->user->lanes[job->device->index];
}

void scheduler_wake(Lane *lane) {
        lane->device->is_dirty = true;
        if (fairshare_wake(lane->device->share, &lane->share) == 0)
                return;
        log_warning("no memory to wake uid %u", (unsigned)lane->user->uid);
        lane->slot->engine->has_slept_in = true;
}

/* ---- where ----------------------------------------------------------------- */

static Failure *scheduler_wanted_device(const Job *job, int *ret_wanted) {
        size_t n_devices = job->engine->n_devices;
        int wanted = job->wanted_device;

        if (wanted >= (int)n_devices)
                return failure_new(FAILURE_NOT_FOUND, "device %d: there are %zu", wanted,
                                   n_devices);

        for (size_t i = 0; i < job->n_kernels; ++i) {
                const Module *module = job->kernels[i].module;

                if (!module->has_variables || !module->home)
                        continue;
                if (wanted >= 0 && wanted != (int)module->home->index)
                        return failure_new(FAILURE_INVALID,
                                           "the variables of module %s are on device %u, the job "
                                           "needs device %d",
                                           module->name, module->home->index, wanted);
                wanted = (int)module->home->index;
        }
        *ret_wanted = wanted;
        return NULL;
}

/* Jobs before it that are still in flight must be in the same executor, which keeps
 * the order. Return: false: they are elsewhere, wait for them. */
static bool scheduler_follow_order(const Job *job, int *wanted) {
        for (size_t i = 0; i < job->n_order; ++i) {
                const Job *before = job->order[i].before;

                if (!before)
                        continue;
                if (*wanted >= 0 && *wanted != (int)before->device->index)
                        return false;
                /* One that is drained is not where we would have it wait. */
                if (*wanted < 0 && !health_takes_jobs(&before->device->health))
                        return false;
                *wanted = (int)before->device->index;
        }
        return true;
}

static void scheduler_load(Job *job, Device *device) {
        job->device = device;
        job->expected_ns = duration_expected(job->user->duration, job->duration_class);
        job->is_long = job->expected_ns > scheduler_quantum_ns(job->engine);
        job->is_loaded = true;
        device->load_ns += job->expected_ns;
        device->n_queued++;
}

static void scheduler_unload(Job *job) {
        if (!job->is_loaded)
                return;
        job->is_loaded = false;
        job->device->load_ns -= job->expected_ns;
        job->device->n_queued--;
}

/* In the order of their numbers, so that one that comes back is where it was. */
static void scheduler_enqueue_alone(Job *job, Slot *slot) {
        Job *at = TAILQ_LAST(&slot->alone, SlotJobs);

        while (at && at->id > job->id)
                at = TAILQ_PREV(at, SlotJobs, link);
        if (at)
                TAILQ_INSERT_AFTER(&slot->alone, at, job, link);
        else
                TAILQ_INSERT_HEAD(&slot->alone, job, link);
        job->place = JOB_ALONE;
}

static int scheduler_enqueue(Job *job, Lane *lane) {
        int r;

        if (job->is_alone) {
                scheduler_enqueue_alone(job, lane->slot);
        } else {
                r = queue_push(&lane->queue, &job->entry);
                if (r < 0)
                        return r;
                job->place = JOB_QUEUED;
        }
        scheduler_load(job, lane->device);
        scheduler_wake(lane);
        return 0;
}

static void scheduler_wait_for_device(Job *job) {
        job->place = JOB_UNPLACED;
        TAILQ_INSERT_TAIL(&job->engine->unplaced, job, link);
}

/* Failures here go by ending_doom(): we may stand deep in somebody else's end. */
void scheduler_consider(Job *job) {
        Failure *failure;
        Device *device;
        int wanted = -1;
        Lane *lane;

        if (job->state != JOB_WAITING || job->place != JOB_NOWHERE || job->n_blocking ||
            job->is_held)
                return;
        if (!job->engine->n_devices) {
                scheduler_wait_for_device(job);
                return;
        }

        failure = scheduler_wanted_device(job, &wanted);
        if (failure) {
                ending_doom(job, JOB_FAILED, failure);
                return;
        }
        if (!scheduler_follow_order(job, &wanted))
                return;

        device =
                wanted >= 0 ? &job->engine->devices[wanted] : device_choose(job->engine, job->user);
        lane = device_lane(device, job->user);
        if (!lane || scheduler_enqueue(job, lane) < 0)
                ending_doom(job, JOB_FAILED,
                            failure_new(FAILURE_INTERNAL, "the daemon is out of memory"));
}

void scheduler_withdraw(Job *job) {
        switch (job->place) {
                case JOB_NOWHERE:
                case JOB_INFLIGHT:
                case JOB_ENDED:
                        return;
                case JOB_UNPLACED:
                        TAILQ_REMOVE(&job->engine->unplaced, job, link);
                        break;
                case JOB_QUEUED:
                        queue_remove(&scheduler_lane(job)->queue, &job->entry);
                        break;
                case JOB_ALONE:
                        TAILQ_REMOVE(&scheduler_lane(job)->slot->alone, job, link);
                        slot_wake(scheduler_lane(job)->slot);
                        break;
                case JOB_PARKED:
                        TAILQ_REMOVE(&job->instance->parked, job, link);
                        job->instance = NULL;
                        break;
                case JOB_DOOMED:
                        TAILQ_REMOVE(&job->engine->doomed, job, link);
                        break;
        }
        scheduler_unload(job);
        job->place = JOB_NOWHERE;
}

void scheduler_place_all(Engine *engine) {
        Job *job;

        while ((job = TAILQ_FIRST(&engine->unplaced))) {
                scheduler_withdraw(job);
                scheduler_consider(job);
        }
}

/* ---- who ------------------------------------------------------------------- */

/* Long jobs one at a time, short ones up to the quantum, either beside the other. */
static bool scheduler_fits(QueueEntry *entry, void *userdata) {
        const Job *job = container_of(entry, Job, entry);
        const Executor *executor = userdata;

        if (job->is_long)
                return executor->n_long == 0;
        return executor->short_ns < scheduler_quantum_ns(executor->engine);
}

static bool scheduler_runs_alone(const Executor *executor) {
        const Job *job = TAILQ_FIRST(&executor->inflight);

        return job && job->is_alone;
}

/* Woken again by scheduler_tick(). */
static bool scheduler_is_held(Engine *engine, User *user) {
        user->is_held = user->limits.gpu_seconds && user_over_seconds(user, engine_now(engine)) > 0;
        return user->is_held;
}

/* A kernel of it has faulted and not behaved since. */
static bool scheduler_is_suspect(const Job *job) {
        const Suspects *suspects = &job->user->suspects;

        if (!suspects->n_keys)
                return false;
        for (size_t i = 0; i < job->n_kernels; ++i)
                if (suspects_has(suspects,
                                 suspects_key(job->kernels[i].module->name, job->kernels[i].name)))
                        return true;
        return false;
}

/* It is its turn: it runs once what is in flight has ended, before all others. */
static void scheduler_set_alone(Job *job, Lane *lane) {
        queue_take(&lane->queue, &job->entry);
        job->is_alone = true;
        scheduler_enqueue_alone(job, lane->slot);
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

        entry = queue_pick(&lane->queue, scheduler_fits, executor);
        job = entry ? container_of(entry, Job, entry) : NULL;
        if (!job || !scheduler_is_suspect(job))
                return job;
        scheduler_set_alone(job, lane);
        return executor->n_inflight ? NULL : job;
}

/* ---- start ----------------------------------------------------------------- */

static void scheduler_park(Job *job, Instance *instance) {
        Device *device = job->device;

        scheduler_withdraw(job);
        scheduler_load(job, device);
        job->place = JOB_PARKED;
        job->instance = instance;
        TAILQ_INSERT_TAIL(&instance->parked, job, link);
}

static bool scheduler_tell_lost_variables(Job *job) {
        for (size_t i = 0; i < job->n_kernels; ++i) {
                Module *module = job->kernels[i].module;

                if (!module->variables_lost)
                        continue;
                module_forget_use(module);
                ending_fail(job, failure_new(FAILURE_VARIABLES_LOST,
                                             "the variables of module %s died with a executor; the "
                                             "next use starts from their initial values",
                                             module->name));
                return true;
        }
        return false;
}

/* Return: true: all its modules are loaded in this worker. Else the job waits or ended. */
static bool scheduler_has_modules(Job *job, Executor *executor) {
        Instance *adding = NULL;

        for (size_t i = 0; i < job->n_kernels; ++i) {
                Module *module = job->kernels[i].module;
                Instance *instance = executor_find_instance(executor, module);

                if (!instance)
                        instance = executor_add_instance(executor, module);
                if (!instance) {
                        ending_fail(job,
                                    failure_new(FAILURE_INTERNAL, "the daemon is out of memory"));
                        return false;
                }
                if (instance->state == INSTANCE_ADDING)
                        adding = instance;
        }
        if (adding)
                scheduler_park(job, adding);
        return !adding;
}

static void scheduler_claim_variables(Job *job) {
        for (size_t i = 0; i < job->n_kernels; ++i)
                if (job->kernels[i].module->has_variables)
                        job->kernels[i].module->home = job->device;
}

static void scheduler_unqueue(Job *job, Lane *lane) {
        if (job->place == JOB_QUEUED) {
                queue_take(&lane->queue, &job->entry);
                scheduler_unload(job);
                job->place = JOB_NOWHERE;
                return;
        }
        scheduler_withdraw(job);
}

static void scheduler_started(Lane *lane, Executor *executor, Job *job) {
        Device *device = lane->device;

        job->place = JOB_INFLIGHT;
        job->executor = executor;
        job->n_beside = executor->n_inflight;
        job->phase = FAULT_UNKNOWN;
        job->started_ns = engine_now(job->engine);
        job_set_state(job, JOB_RUNNING);
        device->n_running++;
        device->load_ns += job->expected_ns;
        device_enter(device, job);
        fairshare_charge(device->share, &lane->share, job->expected_ns, job->started_ns);
        scheduler_claim_variables(job);
        dependency_started(job);
}

static void scheduler_start(Lane *lane, Executor *executor, Job *job) {
        if (scheduler_tell_lost_variables(job) || !scheduler_has_modules(job, executor))
                return;

        scheduler_unqueue(job, lane);
        if (executor_run(executor, job) < 0) {
                ending_fail(job, failure_new(FAILURE_INTERNAL, "the daemon is out of memory"));
                return;
        }
        scheduler_started(lane, executor, job);
}

/* Return: NULL: nothing of this user can go here now; something will wake it. */
static Job *scheduler_look(Lane *lane) {
        Executor *executor = lane->slot->executor;

        if (!executor) {
                slot_poke(lane->slot);
                return NULL;
        }
        return executor->is_ready ? scheduler_next(lane, executor) : NULL;
}

/* Who asks for another's quantum has a job that could go: else a holder would drain for nobody. */
static bool scheduler_may_ask(Lane *lane) {
        return !quanta_is_shut(&lane->device->quanta, &lane->slot->domain) || scheduler_look(lane);
}

static void scheduler_run_device(Device *device) {
        uint64_t now_ns = engine_now(device->engine);
        ShareUser *share;
        Lane *lane;
        Job *job;

        device->is_dirty = false;
        if (!health_takes_jobs(&device->health))
                return;
        while ((share = fairshare_pick(device->share))) {
                lane = container_of(share, Lane, share);
                if (!scheduler_may_ask(lane)) {
                        fairshare_sleep(device->share, share);
                        continue;
                }

                lane = device_turn(device, lane, now_ns);
                if (!lane || !device_gate_is_open(device))
                        return;
                job = scheduler_look(lane);
                if (job)
                        scheduler_start(lane, lane->slot->executor, job);
                else
                        fairshare_sleep(device->share, &lane->share);
        }
}

void scheduler_run(Engine *engine) {
        if (engine->is_paused)
                return;
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

/* Those that there was no memory to wake. */
static void scheduler_wake_again(Engine *engine) {
        Slot *slot;

        if (!engine->has_slept_in)
                return;
        engine->has_slept_in = false;
        for (slot = engine->slots; slot; slot = slot->hh.next)
                slot_wake(slot);
}

void scheduler_tick(Engine *engine, uint64_t now_ns) {
        User *user;

        scheduler_wake_again(engine);
        for (user = engine->users; user; user = user->hh.next)
                if (user->is_held && user_over_seconds(user, now_ns) <= 0)
                        scheduler_release(user);
}

/* ---- end ------------------------------------------------------------------- */

/* By our own clock, whatever the worker says: the time since its job before this
 * one ended, so that jobs side by side count once together. */
static uint64_t scheduler_settle(const Job *job, uint64_t now_ns) {
        Executor *executor = job->executor;
        uint64_t busy_ns = now_ns - MAX(job->started_ns, executor->last_end_ns);

        if (job->delivery.is_queued)
                return 0;
        executor->last_end_ns = now_ns;
        return busy_ns;
}

void scheduler_leave_worker(Job *job) {
        uint64_t now_ns = engine_now(job->engine), busy_ns = scheduler_settle(job, now_ns);
        Device *device = job->device;
        Lane *lane = scheduler_lane(job);

        fairshare_settle(device->share, &lane->share, job->expected_ns, busy_ns, now_ns);
        user_add_gpu_time(job->user, busy_ns, now_ns);
        job->busy_ns = busy_ns;
        job->n_beside = MAX(job->n_beside, job->executor->n_inflight);
        device->gpu_ns += busy_ns;
        device->load_ns -= job->expected_ns;
        device->n_running--;
        device_leave(device, job, now_ns);
        executor_remove(job->executor, job);
        job->executor = NULL;
        job->place = JOB_NOWHERE;
        slot_wake(lane->slot);
}

void scheduler_return(Job *job, bool alone) {
        bool was_sent = !job->delivery.is_queued;

        scheduler_leave_worker(job);
        job_note_retries(job, job->retries + was_sent);
        job->is_alone = alone;
        job->started_ns = 0;
        job->ran_us = 0;
        job_set_state(job, JOB_WAITING);
        dependency_returned(job);
        if (job->submitter)
                scheduler_consider(job);
        else
                ending_doom(job, JOB_CANCELLED,
                            failure_new(FAILURE_CANCELLED, "its client is gone"));
}
