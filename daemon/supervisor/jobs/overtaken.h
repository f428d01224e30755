/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_OVERTAKEN_H
#define GPUQ_SUPERVISOR_OVERTAKEN_H

/*
 * Overtaken
 *
 * Which jobs must not run again because a later job that was in flight beside them may have overwritten
 * their input. A later job's written buffers are sorted once, so the cost is n log n in the buffers of
 * all jobs. With very many buffers in flight the rest counts as overtaken: those jobs fail, which is
 * always safe.
 */

#include <stddef.h>

#include "job.h"

#define OVERTAKEN_STEPS_MAX (1u << 20) /* comparisons after the end of one worker */

/**
 * overtaken_mark() - set was_overtaken in the jobs before @after whose input it writes
 * @n_left: comparisons that may still be made, counted down
 */
void overtaken_mark(const Job *after, size_t *n_left);

#endif
