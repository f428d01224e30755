/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a job's time went, beside other jobs of its kernels and size, and what would help it.
 */

#include "request.h"

#include <stddef.h>
#include <string.h>

#include "detached_ops.h"
#include "registry.h"

#define EXPLAIN_REASON_MAX 160u
#define EXPLAIN_STEPS      (HISTORY_MAX / 64) /* to search a history */
#define EXPLAIN_SORT_STEP  4u /* entries sorted for their medians that cost one step */

/* What is known of a job; of one that has ended, by its entry in the history. */
typedef struct Explain {
        const User *user;
        HistoryEntry entry;
        Gpuq__V1__JobTimes times, median;
        char reason[EXPLAIN_REASON_MAX];
        bool lacks_memory;  /* it waits for device memory */
        bool was_elsewhere; /* equal jobs before it ran on another device */
        Gpuq__V1__Explanation message;
} Explain;

_Static_assert(HISTORY_MAX == 4096, "a text here says another number");
_Static_assert((int)ADVICE_PREPARE == (int)GPUQ__V1__ADVICE__ADVICE_PREPARE &&
                       (int)ADVICE_PIN == (int)GPUQ__V1__ADVICE__ADVICE_PIN,
               "advice has other numbers in the protocol");

/* ---- times ------------------------------------------------------------------- */

/* Of a part that was measured by another clock, no more than there is. */
static uint64_t explain_part(uint64_t us, uint64_t *rest_us) {
        uint64_t part = MIN(us, *rest_us);

        *rest_us -= part;
        return part;
}

static void explain_times(const HistoryEntry *entry, Gpuq__V1__JobTimes *to) {
        const HistoryTimes *times = &entry->times;
        uint64_t waited_us = entry->waited_us;

        gpuq__v1__job_times__init(to);
        to->dependencies_us = explain_part(times->behind_ns / 1000, &waited_us);
        to->module_us = explain_part(times->parked_ns / 1000, &waited_us);
        to->queue_us = waited_us;
        to->ran_us = entry->ran_us;
        if (times->worker_ns / 1000 > entry->ran_us)
                to->launch_us = times->worker_ns / 1000 - entry->ran_us;
        to->moved_bytes = times->worker_ns ? times->n_moved : 0;
        to->gpu_ns = times->gpu_ns;
}

/* The fields of JobTimes that have a median. */
static const size_t explain_fields[] = {
        offsetof(Gpuq__V1__JobTimes, dependencies_us), offsetof(Gpuq__V1__JobTimes, module_us),
        offsetof(Gpuq__V1__JobTimes, queue_us),        offsetof(Gpuq__V1__JobTimes, launch_us),
        offsetof(Gpuq__V1__JobTimes, ran_us),          offsetof(Gpuq__V1__JobTimes, moved_bytes),
        offsetof(Gpuq__V1__JobTimes, gpu_ns),
};

static int explain_compare(const void *left, const void *right) {
        uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

        return (a > b) - (a < b);
}

static void explain_sort(const Gpuq__V1__JobTimes *all, size_t n, uint64_t *values,
                         Gpuq__V1__JobTimes *median) {
        for (size_t i = 0; i < ARRAY_SIZE(explain_fields); ++i) {
                for (size_t k = 0; k < n; ++k)
                        memcpy(&values[k], (const char *)&all[k] + explain_fields[i],
                               sizeof(values[k]));
                qsort(values, n, sizeof(*values), explain_compare);
                memcpy((char *)median + explain_fields[i], &values[n / 2], sizeof(*values));
        }
}

/* Whether this equal job came before and ran on another device, where it had the modules loaded. */
static bool explain_is_elsewhere(const Explain *explain, const HistoryEntry *equal) {
        return explain->message.device && equal->device + 1 != explain->message.device &&
               equal->id < explain->entry.id;
}

/* Return: 0, or -ENOMEM. */
static int explain_median(Session *session, Explain *explain) {
        Bump *bump = session->clients->bump;
        const HistoryEntry **entries = bump_take(bump, HISTORY_MAX * sizeof(*entries));
        uint64_t *values = bump_take(bump, HISTORY_MAX * sizeof(*values));
        Gpuq__V1__JobTimes *all;
        size_t n;

        if (!entries || !values)
                return -ENOMEM;
        n = explain->entry.times.class ? history_of_class(explain->user->history,
                                                          explain->entry.times.class, JOB_DONE,
                                                          entries)
                                       : 0;
        serving_pay(&session->serving, n / EXPLAIN_SORT_STEP);
        all = bump_take(bump, (n + 1) * sizeof(*all));
        if (!all)
                return -ENOMEM;
        for (size_t i = 0; i < n; ++i) {
                explain_times(entries[i], &all[i]);
                explain->was_elsewhere |= explain_is_elsewhere(explain, entries[i]);
        }
        gpuq__v1__job_times__init(&explain->median);
        if (n)
                explain_sort(all, n, values, &explain->median);
        explain->message.n_median = (uint32_t)n;
        return 0;
}

/* ---- the job ------------------------------------------------------------------- */

static bool explain_waits_for_memory(const Job *job) {
        return job->place == JOB_QUEUED && job_lane(job)->slot->pressure.n_others;
}

static void explain_job(Session *session, Explain *explain, const Job *job) {
        uint64_t now_ns = engine_now(session->engine);
        Gpuq__V1__Explanation *message = &explain->message;

        explain->user = job->user;
        explain->lacks_memory = explain_waits_for_memory(job);
        explain->entry = (HistoryEntry){
                .id = job->id,
                .state = job->state,
                .waited_us = job_waited_us(job, now_ns),
                .ran_us = job->clock.started_ns ? (now_ns - job->clock.started_ns) / 1000 : 0,
        };
        job_note_times(job, now_ns, &explain->entry.times);
        if (job->place == JOB_PARKED)
                explain->entry.times.parked_ns += now_ns;
        message->label = job->label;
        message->device = job->device ? job->device->index + 1 : 0;
        if (job->work.n_kernels)
                message->kernel = (char *)job->work.kernels[0].name;
        if (job->state != JOB_WAITING)
                return;
        serving_pay(&session->serving, reason_count(job->user));
        reason_write(job, explain->reason, sizeof(explain->reason));
        message->reason = explain->reason;
}

static void explain_entry(Explain *explain, const User *user, const HistoryEntry *entry) {
        explain->user = user;
        explain->entry = *entry;
        explain->message.device = entry->times.worker_ns ? entry->device + 1 : 0;
        if (entry->text)
                explain->message.reason = entry->text;
}

/* Until the first job of a class has ended, a job that runs is judged by itself. */
static Advice explain_advise(const Engine *engine, const Explain *explain) {
        const Gpuq__V1__JobTimes *times = &explain->times;
        const HistoryTimes *known = &explain->entry.times;

        return advice_choose(&(AdviceJob){
                .dependencies_us = times->dependencies_us,
                .module_us = times->module_us,
                .queue_us = times->queue_us,
                .launch_us = times->launch_us,
                .ran_us = MAX(times->ran_us, explain->median.ran_us),
                .n_moved = MAX(times->moved_bytes, explain->median.moved_bytes),
                .n_equal = explain->message.n_median,
                .n_beside = known->n_beside,
                .is_prepared = known->is_prepared,
                .is_pinned = known->is_pinned || engine->n_devices == 1,
                .was_elsewhere = explain->was_elsewhere,
                .has_failed =
                        explain->entry.state == JOB_FAILED || explain->entry.state == JOB_CANCELLED,
                .lacks_memory = explain->lacks_memory,
        });
}

/* ---- the answer ---------------------------------------------------------------- */

/* Return: NULL, or why the user gets no answer. */
static Failure *explain_find(Session *session, uint64_t id, Explain *explain) {
        Job *job = job_find(session->engine, id);
        const HistoryEntry *entry;
        const User *user;

        if (detached_is_id(id))
                return failure_new(FAILURE_INVALID,
                                   JOB_ID_FORMAT " is the id of a detached job, and detached jobs "
                                                 "are not explained",
                                   JOB_ID_PARTS(id));
        if (job && !session_may_touch(session, job))
                return failure_new(FAILURE_DENIED, "job " JOB_ID_FORMAT " belongs to another user",
                                   JOB_ID_PARTS(id));
        if (job) {
                explain_job(session, explain, job);
                return NULL;
        }
        entry = session_find_history(session, id, &user);
        if (!entry)
                return failure_new(FAILURE_NOT_FOUND,
                                   "no job " JOB_ID_FORMAT ": it is unknown, or it ended too long "
                                   "ago (gpuqd remembers 4,096 jobs of each user)",
                                   JOB_ID_PARTS(id));
        explain_entry(explain, user, entry);
        return NULL;
}

static Failure *explain_fill(Session *session, uint64_t id, Explain *explain) {
        Gpuq__V1__Explanation *message = &explain->message;
        Failure *failure;

        gpuq__v1__explanation__init(message);
        failure = explain_find(session, id, explain);
        if (failure)
                return failure;
        if (explain_median(session, explain) < 0)
                return failure_new(FAILURE_MEMORY, "gpuqd has no memory to explain a job");
        explain_times(&explain->entry, &explain->times);
        message->id = id;
        message->uid = explain->user->uid;
        message->state = (Gpuq__V1__State)explain->entry.state;
        message->times = &explain->times;
        message->median = &explain->median;
        message->n_beside = explain->entry.times.n_beside;
        message->advice = (Gpuq__V1__Advice)explain_advise(session->engine, explain);
        return NULL;
}

const char *session_on_explain_get(Session *session, uint32_t serial,
                                   const Gpuq__V1__Request *request) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Explain explain = {0};
        Failure *failure;

        serving_pay(&session->serving, EXPLAIN_STEPS);
        failure = explain_fill(session, request->explain_get->id, &explain);
        if (failure) {
                session_fail_request(session, serial, failure);
                return NULL;
        }
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_EXPLANATION;
        reply.explanation = &explain.message;
        session_reply(session, &reply, -1);
        return NULL;
}
