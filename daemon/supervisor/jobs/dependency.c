/* SPDX-License-Identifier: Apache-2.0 */
#include "dependency.h"

#include <assert.h>

#include "arena.h"
#include "module.h"
#include "submitter.h"
#include "util/list.h"

#define DEPENDENCY_ON_STACK  32u
#define DEPENDENCY_VARIABLES (1ull << 63) /* marks a module among the arenas */

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
                Job *before = job_find(job->engine, ids[i]);
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

int dependency_derive_again(Job *job) {
        _cleanup_(freep) uint64_t *ids = NULL;
        size_t n_ids = 0;
        int r;

        if (!job->submitter || job_is_ended(job))
                return 0;

        r = order_predecessors(job->submitter->order, job->order_node, &ids, &n_ids);
        if (r < 0)
                return r;
        dependency_drop_order(job);
        return dependency_set_order(job, ids, n_ids);
}

bool dependency_block(JobEdge *edge) {
        if (edge->is_blocking)
                return false;
        edge->is_blocking = true;
        edge->after->n_blocking++;
        return true;
}

void dependency_unblock(JobEdge *edge) {
        if (!edge->is_blocking)
                return;
        assert(edge->after->n_blocking > 0);
        edge->is_blocking = false;
        edge->after->n_blocking--;
}

void dependency_end(JobEdge *edge) {
        LIST_REMOVE(edge, link);
        edge->before = NULL;
        dependency_unblock(edge);
}

bool dependency_is_behind(const Job *job) {
        for (size_t i = 0; i < job->n_order; ++i)
                if (job->order[i].before)
                        return true;
        return false;
}
