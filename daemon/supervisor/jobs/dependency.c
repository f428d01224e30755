/* SPDX-License-Identifier: Apache-2.0 */
#include "dependency.h"

#include <assert.h>

#include "arena.h"
#include "ending.h"
#include "util/list.h"
#include "module.h"
#include "policy.h"
#include "scheduler.h"
#include "submitter.h"
#include "engine.h"
#include "executor.h"

#define DEPENDENCY_ON_STACK  32u
#define DEPENDENCY_VARIABLES (1ull << 63) /* marks a module among the arenas */

/* ---- order ----------------------------------------------------------------- */

static size_t dependency_accesses(const Job *job, OrderAccess *accesses) {
        size_t n = 0;

        for (size_t i = 0; i < job->n_buffers; ++i)
                accesses[n++] = (OrderAccess){
                        .object = job->buffers[i].arena->id,
                        .offset = job->buffers[i].offset,
                        .length = job->buffers[i].length,
                        .write = job->buffers[i].direction != JOB_IN,
                };
        for (size_t i = 0; i < job->n_kernels; ++i)
                if (job->kernels[i].module->has_variables)
                        accesses[n++] = (OrderAccess){
                                .object = job->kernels[i].module->id | DEPENDENCY_VARIABLES,
                                .length = 1,
                                .write = true,
                        };
        return n;
}

static void dependency_drop_order(Job *job) {
        for (size_t i = 0; i < job->n_order; ++i) {
                if (!job->order[i].before)
                        continue;
                LIST_REMOVE(&job->order[i], link);
                job->n_blocking -= job->order[i].is_blocking;
        }
        free(job->order);
        job->order = NULL;
        job->n_order = 0;
}

static int dependency_set_order(Job *job, const uint64_t *ids, size_t n_ids) {
        if (!n_ids)
                return 0;

        job->order = calloc(n_ids, sizeof(*job->order));
        if (!job->order)
                return -ENOMEM;

        for (size_t i = 0; i < n_ids; ++i) {
                Job *before = engine_find_job(job->engine, ids[i]);
                JobEdge *edge = &job->order[job->n_order];

                if (!before)
                        continue;
                *edge = (JobEdge){
                        .before = before,
                        .after = job,
                        .is_order = true,
                        .is_blocking = before->state == JOB_WAITING,
                };
                LIST_INSERT_HEAD(&before->successors, edge, link);
                job->n_blocking += edge->is_blocking;
                job->n_order++;
        }
        return 0;
}

int dependency_derive(Job *job) {
        OrderAccess on_stack[DEPENDENCY_ON_STACK], *accesses = on_stack;
        _cleanup_(freep) OrderAccess *on_heap = NULL;
        _cleanup_(freep) uint64_t *ids = NULL;
        size_t n_max = job->n_buffers + job->n_kernels, n_ids = 0;
        int r;

        if (n_max > DEPENDENCY_ON_STACK) {
                accesses = on_heap = calloc(n_max, sizeof(*on_heap));
                if (!on_heap)
                        return -ENOMEM;
        }

        r = order_add(job->submitter->order, job->id, accesses, dependency_accesses(job, accesses),
                      &job->order_node);
        if (r < 0)
                return r;
        r = order_predecessors(job->submitter->order, job->order_node, &ids, &n_ids);
        if (r >= 0)
                r = dependency_set_order(job, ids, n_ids);
        if (r < 0)
                order_remove(job->submitter->order, job->order_node);
        return r;
}

/* One before it ended while others before that one have not: it is behind those now. */
static void dependency_rederive(Job *job) {
        _cleanup_(freep) uint64_t *ids = NULL;
        size_t n_ids = 0;
        int r;

        if (!job->submitter || job_is_ended(job))
                return;

        r = order_predecessors(job->submitter->order, job->order_node, &ids, &n_ids);
        if (r >= 0) {
                dependency_drop_order(job);
                r = dependency_set_order(job, ids, n_ids);
        }
        if (r < 0)
                ending_doom(job, JOB_FAILED,
                            failure_new(FAILURE_INTERNAL, "the daemon is out of memory"));
}

/* ---- edges ----------------------------------------------------------------- */

static void dependency_unblock(JobEdge *edge) {
        if (!edge->is_blocking)
                return;
        assert(edge->after->n_blocking > 0);
        edge->is_blocking = false;
        edge->after->n_blocking--;
}

void dependency_started(Job *job) {
        JobEdge *edge;

        LIST_FOREACH (edge, &job->successors, link) {
                if (!edge->is_order)
                        continue;
                dependency_unblock(edge);
                scheduler_consider(edge->after);
        }
}

void dependency_returned(Job *job) {
        JobEdge *edge;

        LIST_FOREACH (edge, &job->successors, link) {
                if (!edge->is_order || edge->is_blocking)
                        continue;
                edge->is_blocking = true;
                edge->after->n_blocking++;
                if (edge->after->state == JOB_WAITING && edge->after->place != JOB_DOOMED)
                        scheduler_withdraw(edge->after);
        }
}

bool dependency_is_behind(const Job *job) {
        for (size_t i = 0; i < job->n_order; ++i)
                if (job->order[i].before)
                        return true;
        return false;
}

static void dependency_fail_dependent(Job *dependent, const Job *job) {
        const Failure *failure = job->failure;

        ending_doom(dependent, JOB_FAILED,
                    failure_depends(job->id, job->state == JOB_CANCELLED, failure->code,
                                    failure->root, failure->text));
}

/* It was doomed while it was in flight behind others, which its end would have cost their work. */
static void dependency_stop_for(Job *job) {
        if (job->state == JOB_RUNNING && job->doom && !dependency_is_behind(job))
                job->engine->executor_ops->stop_soon(job->executor);
}

void dependency_ended(Job *job) {
        bool out_of_turn = dependency_is_behind(job);
        JobEdge *edge;

        while ((edge = LIST_FIRST(&job->successors))) {
                Job *after = edge->after;
                bool is_order = edge->is_order;

                LIST_REMOVE(edge, link);
                edge->before = NULL;
                dependency_unblock(edge);
                if (!is_order && job->state != JOB_DONE)
                        dependency_fail_dependent(after, job);
                else if (is_order && out_of_turn)
                        dependency_rederive(after);
                dependency_stop_for(after);
                scheduler_consider(after);
        }
}
