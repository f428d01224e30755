/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_BACKLOG_H
#define GPUQ_SUPERVISOR_BACKLOG_H

/*
 * Backlog
 *
 * Work that one event makes for many jobs: decided ends, followers of a job that started or ended,
 * jobs of a submitter that is gone, jobs of a slot without a worker. Each turn does a part of it, and
 * people take turns. So is freeing the order of jobs with very many buffers.
 */

#include "engine.h"

#define BACKLOG_PART 64u /* steps for one person before the next one's */

/** backlog_run() - do at most about @n_max steps. Return: how many were done. */
size_t backlog_run(Engine *engine, size_t n_max);
/** backlog_is_empty() - nothing is left to do. */
static inline bool backlog_is_empty(const Engine *engine) {
        return TAILQ_EMPTY(&engine->backlog) && TAILQ_EMPTY(&engine->giving_up) &&
               !order_has_freed();
}

#endif
