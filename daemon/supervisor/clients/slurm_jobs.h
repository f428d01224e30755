/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SLURM_JOBS_H
#define GPUQ_SUPERVISOR_SLURM_JOBS_H

/*
 * Slurm jobs
 *
 * Those that connected clients belong to, for `gpuq status --verbose`.
 */

#include <stdint.h>

#include "base.h"
#include "jobs.h"

/* What a number names to a user: a process of another user, such as root, may have entered the job's groups. */
typedef struct SlurmJobKey {
        uint32_t number;
        uint32_t uid;
} SlurmJobKey;

typedef struct SlurmJob {
        SlurmJobKey key;
        UT_hash_handle hh; /* clients->slurm_jobs */
        const User *user;  /* has sessions */
        unsigned n_clients;
        char account[SLURM_ACCOUNT_MAX + 1]; /* "": not known */
} SlurmJob;

/**
 * slurm_jobs_join() - a client of this user and job has connected
 * @folder: of the accounts; NULL: nowhere
 *
 * Reads the account with the job's first client, so that a report reads no file.
 *
 * Return: NULL without memory; else slurm_jobs_leave() follows.
 */
SlurmJob *slurm_jobs_join(SlurmJob **jobs, uint32_t number, const User *user, const char *folder);
/** slurm_jobs_leave() - it has disconnected; @job may be NULL. Return: NULL. */
SlurmJob *slurm_jobs_leave(SlurmJob **jobs, SlurmJob *job);

#endif
