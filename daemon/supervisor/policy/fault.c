/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

static bool fault_job_can_run_again(const FaultJob *job) {
        bool committing = job->phase == FAULT_COMMITTING || job->phase == FAULT_UNKNOWN;

        if (job->variables)
                return false;
        if (job->device_inout && !job->repeatable)
                return false;
        /* A worker that could report the phase let no job overtake another any more. */
        if (job->overtaken && job->phase == FAULT_UNKNOWN)
                return false;
        return !(job->host_inout && committing);
}

static size_t fault_count_suspects(const FaultJob *jobs, size_t n_jobs) {
        size_t n = 0;

        for (size_t i = 0; i < n_jobs; ++i)
                n += jobs[i].phase != FAULT_QUEUED;
        return n;
}

bool fault_has_culprit(FaultCause cause) {
        return cause == FAULT_DEVICE || cause == FAULT_CRASH;
}

static bool fault_is_hopeless(FaultCause cause, const FaultJob *job) {
        return job->retries >= FAULT_RETRIES_MAX &&
               (job->phase == FAULT_QUEUED || cause == FAULT_HARDWARE);
}

static FaultVerdict fault_judge(FaultCause cause, const FaultJob *job, size_t n_suspects) {
        if (job->terminated)
                return FAULT_TERMINATED;
        if (fault_is_hopeless(cause, job))
                return FAULT_GIVEN_UP;
        if (job->phase == FAULT_QUEUED)
                return FAULT_AGAIN;
        if (fault_has_culprit(cause) && job->alone)
                return FAULT_GUILTY_ALONE;
        if (fault_has_culprit(cause) && n_suspects == 1)
                return FAULT_GUILTY;
        if (!fault_job_can_run_again(job))
                return FAULT_HALF_WRITTEN;

        /* A job that was to run alone still is: the fault that caused it is not explained yet. */
        return !fault_has_culprit(cause) && !job->alone ? FAULT_AGAIN : FAULT_AGAIN_ALONE;
}

void fault_triage(FaultCause cause, const FaultJob *jobs, size_t n_jobs, FaultVerdict *verdicts) {
        size_t n_suspects = fault_count_suspects(jobs, n_jobs);

        for (size_t i = 0; i < n_jobs; ++i)
                verdicts[i] = fault_judge(cause, &jobs[i], n_suspects);
}
