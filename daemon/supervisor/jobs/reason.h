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

/** reason_count() - for reason_write(): the jobs whose turn comes before each of this user's. */
void reason_count(User *user);
/** reason_write() - of a job that reason_count() has counted. */
void reason_write(const Job *job, char *text, size_t n_text);

#endif
