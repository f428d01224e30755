/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_REASON_H
#define GPUQ_SUPERVISOR_REASON_H

/*
 * Reason
 *
 * Why a WAITING job waits, as text for `gpuq queue`. Of several reasons, the one that must go away
 * first.
 */

#include "job.h"

/** reason_count() - count, for each of this user's jobs, the jobs before it; needed by reason_write(). */
void reason_count(User *user);
/** reason_write() - the reason of a job that reason_count() has counted. */
void reason_write(const Job *job, char *text, size_t n_text);

#endif
