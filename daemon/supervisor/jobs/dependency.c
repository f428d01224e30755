/* SPDX-License-Identifier: Apache-2.0 */
#include "dependency.h"

#include <assert.h>

#include "arena.h"
#include "engine.h"
#include "module.h"
#include "submitter.h"
#include "util/list.h"

#define DEPENDENCY_ON_STACK  32u
#define DEPENDENCY_VARIABLES (1ull << 63) /* marks a module among the arenas */

static size_t dependency_accesses(const Job *job, OrderAccess *accesses) {
        size_t n = 0;

        for (size_t i = 0; i < job->work.n_buffers; ++i)
                accesses[n++] = (OrderAccess){
                        .object = job->work.buffers[i].arena->id,
                        .offset = job->work.buffers[i].offset,
                        .length = job->work.buffers[i].length,
                        .write = job->work.buffers[i].direction != JOB_IN,
                };
        for (size_t i = 0; i < job->work.n_kernels; ++i)
                if (job->work.kernels[i].module->has_variables)
                        accesses[n++] = (OrderAccess){
                                .object = job->work.kernels[i].module->id | DEPENDENCY_VARIABLES,
                                .length = 1,
                                .write = true,
                        };
        return n;
}

/* Order knows a job by its address. */
static uint64_t dependency_number(const Job *job) {
        return (uint64_t)(uintptr_t)job;
}

static int dependency_set_order(Job *job, const uint64_t *numbers, size_t n) {
        if (!n)
                return 0;

        job->edges.order = calloc(n, sizeof(*job->edges.order));
        if (!job->edges.order)
                return -ENOMEM;

        job->edges.n_order = job->edges.n_behind = n;
        for (size_t i = 0; i < n; ++i) {
                Job *before = (Job *)(uintptr_t)numbers[i];
                JobEdge *edge = &job->edges.order[i];

                *edge = (JobEdge){
                        .before = before,
                        .after = job,
                        .is_order = true,
                        .is_seen = before->state == JOB_RUNNING && dependency_may_follow(job),
                        .is_blocking = before->state != JOB_RUNNING || !dependency_may_follow(job),
                };
                job_edge_add(edge);
                job->edges.n_blocking += edge->is_blocking;
        }
        return 0;
}

int dependency_derive(Job *job) {
        OrderAccess on_stack[DEPENDENCY_ON_STACK], *accesses = on_stack;
        _cleanup_(freep) OrderAccess *on_heap = NULL;
        _cleanup_(freep) uint64_t *numbers = NULL;
        size_t n_max = job->work.n_buffers + job->work.n_kernels, n_before = 0;
        int r;

        if (n_max > DEPENDENCY_ON_STACK) {
                accesses = on_heap = calloc(n_max, sizeof(*on_heap));
                if (!on_heap)
                        return -ENOMEM;
        }

        r = order_add(job->submitter->order, dependency_number(job), accesses,
                      dependency_accesses(job, accesses), &job->edges.node);
        if (r < 0 || order_is_free(job->submitter->order, job->edges.node))
                return r;
        r = order_predecessors(job->submitter->order, job->edges.node, &numbers, &n_before);
        if (r >= 0)
                r = dependency_set_order(job, numbers, n_before);
        if (r < 0)
                order_remove(job->submitter->order, job->edges.node);
        return r;
}

static void dependency_block(JobEdge *edge) {
        edge->is_blocking = true;
        edge->after->edges.n_blocking++;
        job_edge_remove(edge);
        edge->is_seen = false;
        job_edge_add(edge);
}

/* It went back to its queue, or was cancelled there and later jobs still follow it. */
static bool dependency_has_returned(const Job *before) {
        return before->state == JOB_WAITING || before->is_gap;
}

bool dependency_renew(Job *job) {
        for (size_t i = 0; i < job->edges.n_order; ++i) {
                JobEdge *edge = &job->edges.order[i];

                if (edge->before && !edge->is_blocking && dependency_has_returned(edge->before))
                        dependency_block(edge);
        }
        return job->edges.n_blocking == 0;
}

bool dependency_is_beside(const Job *job, const Executor *executor) {
        for (size_t i = 0; dependency_is_behind(job) && i < job->edges.n_order; ++i) {
                const Job *before = job->edges.order[i].before;

                if (before && before->state == JOB_RUNNING && before->executor != executor)
                        return false;
        }
        return true;
}

void dependency_unblock(JobEdge *edge) {
        Job *job = edge->after;

        if (!edge->is_blocking)
                return;
        assert(job->edges.n_blocking > 0);
        edge->is_blocking = false;
        if (--job->edges.n_blocking == 0 && !job->clock.behind_ns)
                job->clock.behind_ns = engine_now(job->engine) - job->clock.submitted_ns;
}

void dependency_end(JobEdge *edge) {
        job_edge_remove(edge);
        edge->before = NULL;
        edge->after->edges.n_behind -= edge->is_order;
        dependency_unblock(edge);
}
