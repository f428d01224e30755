/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include "away.h"
#include "choice.h"
#include "dependency.h"
#include "engine.h"
#include "gate.h"
#include "inflight.h"
#include "slot.h"
#include "submitter.h"
#include "util/list.h"

#define PLACE_LOOK_MAX 64u      /* followers looked at in one go */
#define PLACE_COPY_NS  1000000u /* a job without kernels, besides a nanosecond for each byte */

/* ---- waiting --------------------------------------------------------------- */

static Failure *place_wanted_device(const Job *job, int *ret_wanted) {
        int wanted = job->work.device;

        for (size_t i = 0; i < job->work.n_kernels; ++i) {
                const Module *module = job->work.kernels[i].module;

                if (!module->has_variables || !module->home)
                        continue;
                if (wanted >= 0 && wanted != (int)module->home->index)
                        return failure_new(FAILURE_INVALID,
                                           "the variables of module %s are on device %u, but the "
                                           "job needs device %d",
                                           module->name, module->home->index, wanted);
                wanted = (int)module->home->index;
        }
        *ret_wanted = wanted;
        return choice_check(job->engine, job->user, wanted);
}

/* Predecessors that are still in flight must be in the same worker, which keeps the order. Return:
 * false: they are elsewhere, so the job waits for them. */
static bool place_follow_order(const Job *job, int *wanted) {
        for (size_t i = 0; i < job->edges.n_order; ++i) {
                const Job *before = job->edges.order[i].before;

                if (!before || before->state != JOB_RUNNING)
                        continue;
                /* It may have to go home, which only a job without followers can. */
                if (before->cost.is_away)
                        return false;
                if (*wanted >= 0 && *wanted != (int)before->device->index)
                        return false;
                /* The job should not wait for a drained device. */
                if (*wanted < 0 && !health_takes_jobs(&before->device->health))
                        return false;
                *wanted = (int)before->device->index;
        }
        return true;
}

/*
 * Copies and fills take as long as their bytes, at more than 1 GB/s. If the first ones took longer, the device
 * was busy with other contexts; small ones need not wait behind long jobs for that.
 */
static uint64_t place_expect(Job *job) {
        uint64_t learnt_ns = duration_expected(job->user->duration, job->cost.class);

        job->cost.is_unknown = !duration_is_known(learnt_ns);
        if (job->cost.is_away)
                learnt_ns = away_expected_ns(job, job->device);
        if (job->work.n_kernels || !job->work.n_operations)
                return learnt_ns;
        job->cost.is_unknown = false;
        return MIN(learnt_ns, PLACE_COPY_NS + job->work.n_data);
}

/* Jobs of unknown duration count once more, all together. */
static void place_count(const Job *job) {
        Lane *lane = job_lane(job);
        uint64_t load_ns = job->cost.expected_ns;

        if (job->cost.is_unknown && !lane->n_unknown++)
                load_ns += PLACEMENT_UNKNOWN_NS;
        lane->load_ns += load_ns;
        lane->device->load_ns += load_ns;
}

static void place_uncount(const Job *job) {
        Lane *lane = job_lane(job);
        uint64_t load_ns = job->cost.expected_ns;

        if (job->cost.is_unknown && !--lane->n_unknown)
                load_ns += PLACEMENT_UNKNOWN_NS;
        lane->load_ns -= load_ns;
        lane->device->load_ns -= load_ns;
}

static void place_choose(Job *job, Device *device) {
        job->device = device;
        job->cost.expected_ns = place_expect(job);
        job->cost.is_long = job->cost.expected_ns > engine_inflight_ns(job->engine);
}

static void place_load(Job *job, Device *device) {
        place_choose(job, device);
        place_count(job);
        device->n_queued++;
}

static void place_unload(Job *job) {
        place_uncount(job);
        job->device->n_queued--;
}

/* By id, so that a job that returns gets its old position. */
static void place_enqueue_alone(Job *job, Slot *slot) {
        Job *at = TAILQ_LAST(&slot->alone, SlotJobs);

        while (at && at->id > job->id)
                at = TAILQ_PREV(at, SlotJobs, link);
        if (at)
                TAILQ_INSERT_AFTER(&slot->alone, at, job, link);
        else
                TAILQ_INSERT_HEAD(&slot->alone, job, link);
        job_set_place(job, JOB_ALONE);
}

static int place_enqueue(Job *job, Lane *lane) {
        int r;

        if (job->is_alone) {
                place_enqueue_alone(job, lane->slot);
        } else {
                r = queue_push(&lane->queue, &job->entry);
                if (r < 0)
                        return r;
                job_set_place(job, JOB_QUEUED);
        }
        if (job->user->n_waiting + job->user->n_running <= 1)
                lane->busy_ns = engine_now(job->engine);
        place_load(job, lane->device);
        lane_wake(lane);
        return 0;
}

static void place_wait_for_device(Job *job) {
        if (engine_lacks_devices(job->engine) && !job->submitter->waits_for_device) {
                place_end_soon(job, JOB_FAILED, engine_lack(job->engine));
                return;
        }
        job_set_place(job, JOB_UNPLACED);
        TAILQ_INSERT_TAIL(&job->engine->unplaced.jobs, job, link);
}

/* A job that follows others to another device goes there only while that pays: else it waits for their ends. */
static void place_go_away(Job *job, int *wanted) {
        const Device *device;

        job->cost.is_away = false;
        if (!job->work.may_move)
                return;
        device = away_device(job, &job->engine->devices[*wanted]);
        job->cost.is_away = device->index != (unsigned)*wanted;
        *wanted = (int)device->index;
}

/* Failures here end the job later: this may be called deep within another job's end. */
void place_consider(Job *job) {
        Failure *failure;
        Device *device;
        int wanted = -1;
        Lane *lane;

        if (job->state != JOB_WAITING || job->place != JOB_NOWHERE || job->edges.n_blocking ||
            job->is_held)
                return;
        if (dependency_is_behind(job) && !dependency_renew(job))
                return;
        if (!job->engine->n_devices) {
                place_wait_for_device(job);
                return;
        }

        failure = place_wanted_device(job, &wanted);
        if (failure) {
                place_end_soon(job, JOB_FAILED, failure);
                return;
        }
        place_go_away(job, &wanted);
        if (!place_follow_order(job, &wanted))
                return;

        device =
                wanted >= 0 ? &job->engine->devices[wanted] : choice_device(job->engine, job->user);
        lane = slot_lane(device, job->user);
        if (!lane || place_enqueue(job, lane) < 0)
                place_end_soon(job, JOB_FAILED,
                               failure_new(FAILURE_INTERNAL, "gpuqd is out of memory"));
}

void place_consider_all(Engine *engine) {
        Job *last = TAILQ_LAST(&engine->unplaced.jobs,
                               EngineJobs); /* others go on waiting, behind it */
        Job *job = NULL;

        while (job != last) {
                job = TAILQ_FIRST(&engine->unplaced.jobs);
                place_withdraw(job);
                place_consider(job);
        }
}

static void place_unpark(Job *job) {
        Instance *instance = job->instance;

        TAILQ_REMOVE(&instance->parked, job, link);
        job->clock.parked_ns += engine_now(job->engine);
        instance->executor->n_crowded -= instance->n_parked-- == INSTANCE_PARKED_MAX;
        instance->executor->n_parked--;
        job->instance = NULL;
}

void place_withdraw(Job *job) {
        switch (job->place) {
                case JOB_NOWHERE:
                case JOB_INFLIGHT:
                case JOB_ENDED:
                case _JOB_PLACE_N:
                        return;
                case JOB_UNPLACED:
                        TAILQ_REMOVE(&job->engine->unplaced.jobs, job, link);
                        break;
                case JOB_QUEUED:
                        queue_remove(&job_lane(job)->queue, &job->entry);
                        place_unload(job);
                        break;
                case JOB_ALONE:
                        TAILQ_REMOVE(&job_lane(job)->slot->alone, job, link);
                        slot_wake(job_lane(job)->slot);
                        place_unload(job);
                        break;
                case JOB_PARKED:
                        place_unpark(job);
                        place_unload(job);
                        break;
                case JOB_ENDING:
                        TAILQ_REMOVE(&job->user->person->backlog.ending, job, link);
                        break;
        }
        job_set_place(job, JOB_NOWHERE);
}

bool place_go_home(Job *job) {
        if (!job->cost.is_away)
                return false;
        job->work.may_move = false;
        place_withdraw(job);
        place_consider(job);
        return true;
}

void place_alone(Job *job) {
        Lane *lane = job_lane(job);

        queue_take(&lane->queue, &job->entry);
        job->is_alone = true;
        place_enqueue_alone(job, lane->slot);
}

void place_park(Job *job, Instance *instance) {
        Device *device = job->device;

        place_withdraw(job);
        place_load(job, device);
        job_set_place(job, JOB_PARKED);
        job->instance = instance;
        job->clock.parked_ns -= engine_now(job->engine);
        TAILQ_INSERT_TAIL(&instance->parked, job, link);
        instance->executor->n_crowded += ++instance->n_parked == INSTANCE_PARKED_MAX;
        instance->executor->n_parked++;
}

/* ---- running --------------------------------------------------------------- */

static void place_claim_variables(Job *job) {
        for (size_t i = 0; i < job->work.n_kernels; ++i)
                if (job->work.kernels[i].module->has_variables)
                        job->work.kernels[i].module->home = job->device;
}

static void place_unqueue(Job *job) {
        if (job->place == JOB_QUEUED) {
                queue_take(&job_lane(job)->queue, &job->entry);
                place_unload(job);
                job_set_place(job, JOB_NOWHERE);
                return;
        }
        place_withdraw(job);
}

static void place_started(Job *job, Executor *executor) {
        Lane *lane = job_lane(job);
        Device *device = lane->device;

        job_set_place(job, JOB_INFLIGHT);
        job->executor = executor;
        job->cost.n_beside = executor->n_inflight;
        job->phase = FAULT_UNKNOWN;
        job->clock.started_ns = engine_now(job->engine);
        job_set_state(job, JOB_RUNNING);
        device->n_running++;
        place_count(job);
        gate_enter(device, job);
        job->cost.owed_ns = job->cost.expected_ns;
        fairshare_charge(device->share, &lane->payer->share, job->cost.expected_ns,
                         job->clock.started_ns);
        place_claim_variables(job);
}

int place_run(Job *job, Executor *executor) {
        int r;

        place_unqueue(job);
        r = inflight_send(executor, job);
        if (r < 0)
                return r;
        place_started(job, executor);
        return 0;
}

/* Its user has a lane there, because earlier jobs ran there. */
void place_adopt(Job *job, Executor *executor) {
        place_choose(job, executor->device);
        inflight_adopt(executor, job);
        place_started(job, executor);
}

/*
 * By the supervisor's own clock, whatever the worker reports: the time since the worker's previous
 * job ended, so that concurrent jobs count once together. Return: what is still to be paid.
 */
static uint64_t place_settle(Job *job, uint64_t now_ns) {
        Executor *executor = job->executor;
        uint64_t since_ns = MAX(job->clock.started_ns, executor->last_end_ns);

        job->cost.busy_ns = 0;
        if (job->delivery.is_queued)
                return 0;
        job->cost.busy_ns = now_ns - since_ns;
        executor->last_end_ns = now_ns;
        return now_ns - MAX(since_ns, executor->charged_ns);
}

void place_leave(Job *job) {
        uint64_t now_ns = engine_now(job->engine), unpaid_ns = place_settle(job, now_ns);
        Device *device = job->device;
        Lane *lane = job_lane(job);

        fairshare_settle(device->share, &lane->payer->share, job->cost.owed_ns, unpaid_ns, now_ns);
        user_add_gpu_time(job->user, unpaid_ns, now_ns);
        job->cost.n_beside = MAX(job->cost.n_beside, job->executor->n_inflight);
        device->gpu_ns += unpaid_ns;
        if (now_ns - job->clock.started_ns >= PLACEMENT_GAIN_NS)
                device->late_at_ns = 0;
        place_uncount(job);
        device->n_running--;
        gate_leave(device, job, now_ns);
        inflight_remove(job->executor, job);
        job->executor = NULL;
        job_set_place(job, JOB_NOWHERE);
        slot_wake(lane->slot);
}

static void place_go_back(Job *job, bool alone) {
        bool was_sent = !job->delivery.is_queued;

        place_leave(job);
        job->cost.spent_ns += job->cost.busy_ns;
        job->cost.busy_ns = 0;
        job_note_retries(job, job->retries + was_sent);
        job->is_alone = alone;
        job->clock.started_ns = 0;
        job->outcome.ran_us = 0;
        job_set_state(job, JOB_WAITING);
}

void place_return(Job *job, bool alone) {
        place_go_back(job, alone);
        if (submitter_is_there(job->submitter))
                place_consider(job);
        else
                place_end_soon(
                        job, JOB_CANCELLED,
                        failure_new(FAILURE_CANCELLED, "cancelled: its client disconnected"));
}

/* With very many followers it is assumed that one runs. */
bool place_has_running_follower(const Job *job) {
        unsigned n_left = PLACE_LOOK_MAX;
        const JobEdge *edge;

        TAILQ_FOREACH (edge, &job->edges.followers, link)
                if (edge->after->state == JOB_RUNNING || !n_left--)
                        return true;
        return false;
}

void place_recall(Executor *executor) {
        Job *job, *next;

        TAILQ_FOREACH_SAFE (job, &executor->inflight, link, next)
                if (!job->verdict.failure &&
                    executor->engine->executor_ops->pull_job(executor, job))
                        place_return(job, job->is_alone);
}

/* ---- ending ---------------------------------------------------------------- */

void place_stop(Job *job) {
        if (!dependency_is_behind(job))
                job->engine->executor_ops->stop_soon(job->executor);
}

/* A job behind others cannot be taken from the outbox if jobs that follow it are in there, too. */
static bool place_is_sent(const Job *job) {
        if (!job->delivery.is_queued)
                return true;
        return dependency_is_behind(job) && place_has_running_follower(job);
}

void place_end_soon(Job *job, JobState state, Failure *failure) {
        if (job_end_is_decided(job)) {
                failure_free(failure);
                return;
        }

        job->verdict.failure = failure;
        job->verdict.state = state;
        if (job->is_held) /* submission_settle() continues from here */
                return;
        if (job->state == JOB_RUNNING && place_is_sent(job)) {
                place_stop(job);
                return;
        }
        if (job->state == JOB_RUNNING)
                place_go_back(job, job->is_alone);
        place_withdraw(job);
        job_set_place(job, JOB_ENDING);
        TAILQ_INSERT_TAIL(&user_has_backlog(job->user, job->engine)->ending, job, link);
}
