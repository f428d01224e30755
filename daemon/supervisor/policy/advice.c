/* SPDX-License-Identifier: Apache-2.0 */
#include "advice.h"

#include "util/macro.h"

/* Whether one part is at least half of the job's time. */
static bool advice_dominates(const AdviceJob *job, uint64_t us) {
        uint64_t all_us = job->dependencies_us + job->module_us + job->queue_us + job->launch_us +
                          job->ran_us;

        return us > 0 && us >= all_us - us;
}

/* A job that runs briefly, and often. Others must not be what it waits for. */
static Advice advice_for_short(const AdviceJob *job) {
        if (job->n_beside == 0 || advice_dominates(job, job->queue_us))
                return ADVICE_NOTHING;
        if (job->n_beside == 1)
                return ADVICE_IN_FLIGHT;
        return job->is_prepared ? ADVICE_NOTHING : ADVICE_PREPARE;
}

Advice advice_choose(const AdviceJob *job) {
        uint64_t moved_us = MIN(job->n_moved / ADVICE_BYTES_US, job->ran_us);
        bool is_short = job->ran_us < ADVICE_SHORT_US && job->n_equal >= ADVICE_MANY;

        if (job->has_failed)
                return ADVICE_NOTHING;
        if (job->lacks_memory)
                return ADVICE_LESS_MEMORY;
        if (advice_dominates(job, job->dependencies_us))
                return ADVICE_NOTHING; /* the jobs before it may gain something */
        if (advice_dominates(job, job->module_us))
                return job->was_elsewhere && !job->is_pinned ? ADVICE_PIN : ADVICE_NOTHING;
        if (moved_us > 0 && moved_us >= job->ran_us - moved_us &&
            !advice_dominates(job, job->queue_us))
                return ADVICE_KEEP_DATA;
        return is_short ? advice_for_short(job) : ADVICE_NOTHING;
}
