/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm_jobs.h"

#include <stdlib.h>

static SlurmJob *slurm_jobs_add(SlurmJob **jobs, SlurmJobKey key, const User *user) {
        SlurmJob *job = calloc(1, sizeof(*job));

        if (!job)
                return NULL;
        job->key = key;
        job->user = user;
        HASH_ADD(hh, *jobs, key, sizeof(job->key), job);
        if (!job->hh.tbl) {
                free(job);
                return NULL;
        }
        return job;
}

SlurmJob *slurm_jobs_join(SlurmJob **jobs, uint32_t number, const User *user, const char *folder) {
        const SlurmJobKey key = {number, (uint32_t)user->uid};
        SlurmJob *job;

        HASH_FIND(hh, *jobs, &key, sizeof(key), job);
        if (!job)
                job = slurm_jobs_add(jobs, key, user);
        if (!job)
                return NULL;
        job->n_clients++;
        if (folder && !*job->account && !slurm_job_account(folder, number, job->account))
                *job->account = '\0';
        return job;
}

SlurmJob *slurm_jobs_leave(SlurmJob **jobs, SlurmJob *job) {
        if (!job || --job->n_clients)
                return NULL;

        HASH_DEL(*jobs, job);
        free(job);
        return NULL;
}
