/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_REASON_H
#define GPUQ_SUPERVISOR_REASON_H

/*
 * Reason
 *
 * Why a WAITING job or a LOADING module waits, as text for `gpuq queue`. Of several reasons, the one
 * that must go away first. Of a RUNNING job, why its worker runs no job yet; "": it does.
 */

#include "job.h"

#define REASON_COUNT_MAX                                                                           \
        4096u /* jobs of a user on one device that are counted; the others have more ahead */

/**
 * reason_count() - count, for this user's jobs, the jobs before each; needed by reason_write()
 *
 * Return: how many were counted.
 */
size_t reason_count(User *user);
/** reason_write() - the reason of a job; of a WAITING one reason_count() has counted its user's. */
void reason_write(const Job *job, char *text, size_t n_text);
/** reason_write_module() - the same for a module. */
void reason_write_module(const Module *module, char *text, size_t n_text);

#endif
