/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include "choice.h"
#include "dependency.h"
#include "engine.h"
#include "gate.h"
#include "inflight.h"
#include "slot.h"
#include "submitter.h"
#include "util/list.h"

/* ---- waiting --------------------------------------------------------------- */

static Failure *place_wanted_device(const Job *job, int *ret_wanted) {
        size_t n_devices = job->engine->n_devices;
        int wanted = job->work.device;

        if (wanted >= (int)n_devices)
                return engine_no_device(job->engine, (unsigned)wanted);

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
        return NULL;
}

/* Predecessors that are still in flight must be in the same worker, which keeps the order. Return:
 * false: they are elsewhere, so the job waits for them. */
static bool place_follow_order(const Job *job, int *wanted) {
        for (size_t i = 0; i < job->edges.n_order; ++i) {
                const Job *before = job->edges.order[i].before;

                if (!before)
                        continue;
                if (*wanted >= 0 && *wanted != (int)before->device->index)
                        return false;
                /* The job should not wait for a drained device. */
                if (*wanted < 0 && !health_takes_jobs(&before->device->health))
                        return false;
                *wanted = (int)before->device->index;
        }
        return true;
}

static void place_load(Job *job, Device *device) {
        job->device = device;
        job->cost.expected_ns = duration_expected(job->user->duration, job->cost.class);
        job->cost.is_long = job->cost.expected_ns > engine_inflight_ns(job->engine);
        device->load_ns += job->cost.expected_ns;
        device->n_queued++;
}

static void place_unload(Job *job) {
        job->device->load_ns -= job->cost.expected_ns;
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
        place_load(job, lane->device);
        lane_wake(lane);
        return 0;
}

static void place_wait_for_device(Job *job) {
        job_set_place(job, JOB_UNPLACED);
        TAILQ_INSERT_TAIL(&job->engine->unplaced, job, link);
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
        if (!job->engine->n_devices) {
                place_wait_for_device(job);
                return;
        }

        failure = place_wanted_device(job, &wanted);
        if (failure) {
                place_end_soon(job, JOB_FAILED, failure);
                return;
        }
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
        Job *job;

        while ((job = TAILQ_FIRST(&engine->unplaced))) {
                place_withdraw(job);
                place_consider(job);
        }
}

void place_withdraw(Job *job) {
        switch (job->place) {
                case JOB_NOWHERE:
                case JOB_INFLIGHT:
                case JOB_ENDED:
                case _JOB_PLACE_N:
                        return;
                case JOB_UNPLACED:
                        TAILQ_REMOVE(&job->engine->unplaced, job, link);
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
                        TAILQ_REMOVE(&job->instance->parked, job, link);
                        job->instance = NULL;
                        place_unload(job);
                        break;
                case JOB_ENDING:
                        TAILQ_REMOVE(&job->engine->ending, job, link);
                        break;
        }
        job_set_place(job, JOB_NOWHERE);
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
        TAILQ_INSERT_TAIL(&instance->parked, job, link);
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
        device->load_ns += job->cost.expected_ns;
        gate_enter(device, job);
        fairshare_charge(device->share, &lane->payer->share, job->cost.expected_ns,
                         job->clock.started_ns);
        place_claim_variables(job);
}

/* Successors by buffers may follow it into its worker. */
static void place_let_follow(Job *job) {
        JobEdge *edge;

        LIST_FOREACH (edge, &job->edges.successors, link) {
                if (!edge->is_order || !dependency_may_follow(edge->after))
                        continue;
                dependency_unblock(edge);
                place_consider(edge->after);
        }
}

int place_run(Job *job, Executor *executor) {
        int r;

        place_unqueue(job);
        r = inflight_send(executor, job);
        if (r < 0)
                return r;
        place_started(job, executor);
        place_let_follow(job);
        return 0;
}

/* By the supervisor's own clock, whatever the worker reports: the time since the worker's previous
 * job ended, so that concurrent jobs count once together. */
static uint64_t place_settle(const Job *job, uint64_t now_ns) {
        Executor *executor = job->executor;
        uint64_t busy_ns = now_ns - MAX(job->clock.started_ns, executor->last_end_ns);

        if (job->delivery.is_queued)
                return 0;
        executor->last_end_ns = now_ns;
        return busy_ns;
}

void place_leave(Job *job) {
        uint64_t now_ns = engine_now(job->engine), busy_ns = place_settle(job, now_ns);
        Device *device = job->device;
        Lane *lane = job_lane(job);

        fairshare_settle(device->share, &lane->payer->share, job->cost.expected_ns, busy_ns,
                         now_ns);
        user_add_gpu_time(job->user, busy_ns, now_ns);
        job->cost.busy_ns = busy_ns;
        job->cost.n_beside = MAX(job->cost.n_beside, job->executor->n_inflight);
        device->gpu_ns += busy_ns;
        device->load_ns -= job->cost.expected_ns;
        device->n_running--;
        gate_leave(device, job, now_ns);
        inflight_remove(job->executor, job);
        job->executor = NULL;
        job_set_place(job, JOB_NOWHERE);
        slot_wake(lane->slot);
}

/* Successors by buffers wait for it again. */
static void place_hold_back(Job *job) {
        JobEdge *edge;

        LIST_FOREACH (edge, &job->edges.successors, link) {
                Job *after = edge->after;

                if (edge->is_order && dependency_block(edge) && after->state == JOB_WAITING &&
                    after->place != JOB_ENDING)
                        place_withdraw(after);
        }
}

static void place_go_back(Job *job, bool alone) {
        bool was_sent = !job->delivery.is_queued;

        place_leave(job);
        job_note_retries(job, job->retries + was_sent);
        job->is_alone = alone;
        job->clock.started_ns = 0;
        job->outcome.ran_us = 0;
        job_set_state(job, JOB_WAITING);
        place_hold_back(job);
}

void place_return(Job *job, bool alone) {
        place_go_back(job, alone);
        if (job->submitter)
                place_consider(job);
        else
                place_end_soon(
                        job, JOB_CANCELLED,
                        failure_new(FAILURE_CANCELLED, "cancelled: its client disconnected"));
}

void place_recall(Executor *executor) {
        Job *job, *next;

        TAILQ_FOREACH_SAFE (job, &executor->inflight, link, next)
                if (!job->verdict.failure &&
                    executor->engine->executor_ops->pull_job(executor, job))
                        place_return(job, job->is_alone);
}

/* ---- ending ---------------------------------------------------------------- */

/* A job in flight behind others does not stop the worker: dependency_end() comes back to it. */
static void place_stop(Job *job) {
        if (!dependency_is_behind(job))
                job->engine->executor_ops->stop_soon(job->executor);
}

/* A job behind others cannot be taken from the outbox if jobs that follow it are in there, too. */
static bool place_is_sent(const Job *job) {
        JobEdge *edge;

        if (!job->delivery.is_queued)
                return true;
        if (!dependency_is_behind(job))
                return false;
        LIST_FOREACH (edge, &job->edges.successors, link)
                if (edge->is_order && edge->after->state == JOB_RUNNING)
                        return true;
        return false;
}

void place_end_soon(Job *job, JobState state, Failure *failure) {
        if (job->verdict.failure || job_is_ended(job)) {
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
        TAILQ_INSERT_TAIL(&job->engine->ending, job, link);
}

static void place_fail_dependent(Job *dependent, const Job *job) {
        const Failure *failure = job->outcome.failure;

        place_end_soon(dependent, JOB_FAILED,
                       failure_depends(job->id, job->state == JOB_CANCELLED, failure->code,
                                       failure->root, failure->text));
}

/* @closed: gaps that lost their last predecessor. */
static void place_end_edge(JobEdge *edge, const Job *job, struct SubmitterJobs *closed) {
        Job *after = edge->after;

        dependency_end(edge);
        if (!edge->is_order && job->state != JOB_DONE)
                place_fail_dependent(after, job);
        if (edge->is_order && after->is_gap && !dependency_is_behind(after)) {
                if (after->submitter)
                        TAILQ_REMOVE(&after->submitter->gaps, after, submitter_link);
                TAILQ_INSERT_TAIL(closed, after, submitter_link);
        }
        if (after->state == JOB_RUNNING && after->verdict.failure)
                place_stop(after);
        place_consider(after);
}

static void place_end_edges(Job *job, struct SubmitterJobs *closed) {
        JobEdge *edge;

        while ((edge = LIST_FIRST(&job->edges.successors)))
                place_end_edge(edge, job, closed);
}

/* Not by recursion: cancelled jobs may be a long chain. */
static void place_close_gaps(struct SubmitterJobs *closed) {
        Job *job;

        while ((job = TAILQ_FIRST(closed))) {
                TAILQ_REMOVE(closed, job, submitter_link);
                if (job->submitter)
                        order_remove(job->submitter->order, job->edges.node);
                place_end_edges(job, closed);
                job->is_gap = false;
                user_uncharge(&job->charge);
                if (job->is_left)
                        job_free(job);
        }
}

/* Successors by buffers go on following it. */
static void place_leave_gap(Job *job, struct SubmitterJobs *closed) {
        JobEdge *edge, *next;

        place_hold_back(job);
        LIST_FOREACH_SAFE (edge, &job->edges.successors, link, next)
                if (!edge->is_order)
                        place_end_edge(edge, job, closed);
}

void place_let_go(Job *job) {
        struct SubmitterJobs closed = TAILQ_HEAD_INITIALIZER(closed);

        if (job->is_gap)
                place_leave_gap(job, &closed);
        else
                place_end_edges(job, &closed);
        place_close_gaps(&closed);
}
