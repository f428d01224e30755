/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_REASON_H
#define GPUQ_SUPERVISOR_REASON_H

/*
 * Reason
 *
 * Why a WAITING job waits, in words for `gpuq queue`: of several reasons, the one that
 * has to go first.
 */

#include "job.h"

/** reason_write() - @n_before: jobs whose turn comes first, if QUEUED. */
void reason_write(const Job *job, size_t n_before, char *text, size_t n_text);

#endif
