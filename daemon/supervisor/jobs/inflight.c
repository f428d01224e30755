/* SPDX-License-Identifier: Apache-2.0 */
#include "inflight.h"

#include "arena.h"
#include "dependency.h"
#include "engine.h"
#include "module.h"
#include "util/list.h"

static int inflight_give_arenas(Executor *executor, const Job *job) {
        Arena *last = NULL; /* most buffers of a job are in one arena */
        int r;

        for (size_t i = 0; i < job->work.n_buffers; ++i) {
                if (job->work.buffers[i].arena == last)
                        continue;
                last = job->work.buffers[i].arena;
                r = arena_give(last, executor);
                if (r < 0)
                        return r;
        }
        return job->work.word && job->work.word != last ? arena_give(job->work.word, executor) : 0;
}

static void inflight_enter(Executor *executor, Job *job) {
        TAILQ_INSERT_TAIL(&executor->inflight, job, link);
        executor->n_inflight++;
        if (job->cost.is_long) {
                executor->n_long++;
                executor->long_ns = job->cost.expected_ns;
                return;
        }
        job->cost.is_bounding = true;
        executor->short_ns += job->cost.expected_ns;
}

static void inflight_record(const Executor *executor, Job *job) {
        LedgerSent sent = {.is_sent = true, .retries = job->retries};
        LedgerOwner owner = job_owner(job);

        job->record = ledger_job_sent(executor->engine->ledger, job->record, &owner, &sent);
}

void inflight_adopt(Executor *executor, Job *job) {
        inflight_record(executor, job);
        inflight_enter(executor, job);
}

int inflight_send(Executor *executor, Job *job) {
        int r;

        r = inflight_give_arenas(executor, job);
        if (r < 0)
                return r;

        inflight_record(executor, job);
        executor->engine->executor_ops->push_job(executor, job);
        inflight_enter(executor, job);
        return 0;
}

void inflight_unbound(Executor *executor, Job *job) {
        if (!job->cost.is_bounding)
                return;
        job->cost.is_bounding = false;
        executor->short_ns -= job->cost.expected_ns;
}

void inflight_note_long(Executor *executor, uint64_t class, uint64_t expected_ns) {
        Job *job;

        TAILQ_FOREACH (job, &executor->inflight, link) {
                if (job->cost.class != class || job->cost.is_long)
                        continue;
                inflight_unbound(executor, job);
                job->cost.is_long = true;
                executor->n_long++;
                executor->long_ns = expected_ns;
        }
}

void inflight_remove(Executor *executor, Job *job) {
        executor->engine->executor_ops->pull_job(executor, job);
        TAILQ_REMOVE(&executor->inflight, job, link);
        executor->n_inflight--;
        if (job->cost.is_long)
                executor->n_long--;
        else
                inflight_unbound(executor, job);
        if (!executor->n_inflight)
                executor->idle_ns = engine_now(executor->engine);
}

/* Most jobs end in the order in which they were handed over. */
Job *inflight_find(const Executor *executor, uint64_t id) {
        Job *job = TAILQ_FIRST(&executor->inflight);

        if (!job || job->id != id)
                job = job_find(executor->engine, id);
        return job && job->executor == executor && !job->delivery.is_queued ? job : NULL;
}

void inflight_note_variables(Executor *executor, const Job *job) {
        for (size_t i = 0; i < job->work.n_kernels; ++i) {
                Module *module = job->work.kernels[i].module;
                Instance *instance;

                if (!module->has_variables)
                        continue;
                module_note_use(module);
                instance = module_find_instance(module, executor);
                if (instance)
                        instance->is_used = true;
        }
}

void inflight_set_phase(Executor *executor, Job *job, FaultPhase phase) {
        job->phase = phase;
        if (phase != FAULT_QUEUED)
                inflight_note_variables(executor, job);
}

bool inflight_has_begun(const Executor *executor) {
        const Job *job;

        TAILQ_FOREACH (job, &executor->inflight, link)
                if (job->phase != FAULT_QUEUED)
                        return true;
        return false;
}

/* A job that waits behind others in the worker is no reason to stop the worker. */
bool inflight_waits_for_stop(const Executor *executor) {
        const Job *job;

        TAILQ_FOREACH (job, &executor->inflight, link)
                if (job->verdict.failure && !dependency_is_behind(job))
                        return true;
        return false;
}
