/* SPDX-License-Identifier: Apache-2.0 */
#include "reason.h"

#include <math.h>
#include <stdio.h>

#include "engine.h"
#include "executor.h"
#include "express.h"
#include "module.h"
#include "slot.h"
#include "util/list.h"

static void reason_count_entry(QueueEntry *entry, size_t n_before, void *userdata) {
        Job *job = container_of(entry, Job, entry);

        job->position.n_before = (uint32_t)n_before;
        job->position.n_counts = job->user->n_counts;
}

size_t reason_count(User *user) {
        size_t n = 0;

        user->n_counts++;
        for (size_t i = 0; i < user->n_lanes; ++i)
                if (user->lanes[i])
                        n += queue_visit(&user->lanes[i]->queue, REASON_COUNT_MAX,
                                         reason_count_entry, NULL);
        return n;
}

static void reason_ahead(const Job *job, char *text, size_t n_text) {
        if (job->position.n_counts != job->user->n_counts)
                snprintf(text, n_text, "over %u jobs", REASON_COUNT_MAX);
        else
                snprintf(text, n_text, "%u job%s", job->position.n_before,
                         job->position.n_before == 1 ? "" : "s");
}

static bool reason_edges(const Job *job, char *text, size_t n_text) {
        for (size_t i = 0; i < job->edges.n_after; ++i) {
                if (!job->edges.after[i].before)
                        continue;
                snprintf(text, n_text, "depends on job " JOB_ID_FORMAT,
                         JOB_ID_PARTS(job->edges.after[i].before->id));
                return true;
        }
        for (size_t i = 0; i < job->edges.n_order; ++i) {
                if (!job->edges.order[i].before)
                        continue;
                snprintf(text, n_text, "job " JOB_ID_FORMAT " runs first: it uses the same buffers",
                         JOB_ID_PARTS(job->edges.order[i].before->id));
                return true;
        }
        return false;
}

static bool reason_runs_alone(const Executor *executor) {
        const Job *job = TAILQ_FIRST(&executor->inflight);

        return job && job->is_alone;
}

static void reason_turn(const Job *job, const Executor *executor, char *text, size_t n_text) {
        const Slot *slot = executor->slot;
        char ahead[32];

        reason_ahead(job, ahead, sizeof(ahead));
        if (job->cost.is_long && executor->n_long)
                snprintf(text, n_text, "another long job of this user is running");
        else if (job->cost.expected_ns <= express_short_ns(job->engine) && express_is_used(slot) &&
                 !slot->express->is_ready)
                snprintf(text, n_text,
                         "a long job of this user is running; another worker is starting for short "
                         "ones");
        else if (quanta_is_shut(&slot->device->quanta, &slot->domain))
                snprintf(text, n_text, "another user's time slice (%s of this user ahead)", ahead);
        else if (job->position.n_before || job->position.n_counts != job->user->n_counts)
                snprintf(text, n_text, "queued (%s ahead)", ahead);
        else
                snprintf(text, n_text, "queued (%u job%s in flight)", slot->device->n_running,
                         slot->device->n_running == 1 ? "" : "s");
}

/* Return: false: the slot's worker is ready. */
static bool reason_slot(const Slot *slot, char *text, size_t n_text) {
        const Executor *executor = slot->executor;
        uint64_t now_ns = uv_hrtime();

        if (!health_takes_jobs(&slot->device->health))
                snprintf(text, n_text, "device %u is %s", slot->device->index,
                         health_reason(&slot->device->health));
        else if (!executor && slot_restart_ns(slot, now_ns))
                snprintf(text, n_text,
                         "this user's workers ended repeatedly by faults, cancels or timeouts; the "
                         "next one starts in %.1f s",
                         (double)(slot_restart_ns(slot, now_ns) - now_ns) / 1e9);
        else if (slot->claim == CLAIM_BROKEN && slot->problem)
                snprintf(text, n_text, "device %u is being checked: %s", slot->device->index,
                         slot->problem);
        else if (slot->pressure.n_others)
                snprintf(
                        text, n_text,
                        "device %u has no memory for this user's context (%u other worker%s there)",
                        slot->device->index, slot->pressure.n_others,
                        slot->pressure.n_others == 1 ? "" : "s");
        else if (!executor && slot->n_failures && slot->problem)
                snprintf(text, n_text, "device %u is unavailable: %s", slot->device->index,
                         slot->problem);
        else if (!executor && slot->problem)
                snprintf(text, n_text, "its worker cannot start yet: %s", slot->problem);
        else if (!executor || !executor->is_ready)
                snprintf(text, n_text, "the worker is starting");
        else
                return false;
        return true;
}

static void reason_queued(const Job *job, char *text, size_t n_text) {
        const Slot *slot = job_lane(job)->slot;
        const Executor *executor = slot->executor;

        if (reason_slot(slot, text, n_text))
                return;
        if (!TAILQ_EMPTY(&slot->alone) || reason_runs_alone(executor))
                snprintf(text, n_text, "jobs run one at a time to find the cause of a fault");
        else if (job->user->is_held)
                snprintf(text, n_text, "over the limit gpu_seconds; more GPU time in about %.0f s",
                         ceil(user_over_seconds(job->user, engine_now(job->engine))));
        else
                reason_turn(job, executor, text, n_text);
}

static void reason_no_device(const Engine *engine, char *text, size_t n_text) {
        snprintf(text, n_text, "no device: %s", engine_state(engine));
}

static const char *reason_instance(const Instance *instance) {
        if (instance->state == INSTANCE_QUEUED)
                return "other modules are loaded first";
        if (instance->executor->wait == EXECUTOR_WAITS_FOR_QUIET)
                return "it is loaded once the running jobs have ended";
        return "it is being compiled";
}

void reason_write_module(const Module *module, char *text, size_t n_text) {
        const Instance *instance;

        if (!module->slot) {
                reason_no_device(module->engine, text, n_text);
                return;
        }
        if (reason_slot(module->slot, text, n_text))
                return;
        instance = module_find_instance(module, module->slot->executor);
        snprintf(text, n_text, "%s", instance ? reason_instance(instance) : "queued");
}

static void reason_running(const Executor *executor, char *text, size_t n_text) {
        bool is_held = executor->is_ready && executor->wait == EXECUTOR_WAITS_FOR_BUILTIN;

        snprintf(text, n_text, "%s", is_held ? "its worker loads gpuq's own kernels first" : "");
}

void reason_write(const Job *job, char *text, size_t n_text) {
        switch (job->place) {
                case JOB_UNPLACED:
                        reason_no_device(job->engine, text, n_text);
                        return;
                case JOB_PARKED:
                        snprintf(text, n_text, "%s",
                                 job->instance->executor->wait == EXECUTOR_WAITS_FOR_QUIET
                                         ? "its module is loaded once the running jobs have ended"
                                         : "its module is being compiled");
                        return;
                case JOB_INFLIGHT:
                        reason_running(job->executor, text, n_text);
                        return;
                case JOB_QUEUED:
                case JOB_ALONE:
                        reason_queued(job, text, n_text);
                        return;
                default:
                        if (!reason_edges(job, text, n_text))
                                snprintf(text, n_text, "queued");
        }
}
