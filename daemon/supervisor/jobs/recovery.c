/* SPDX-License-Identifier: Apache-2.0 */
#include "recovery.h"

#include <stdio.h>
#include <string.h>

#include "ending.h"
#include "engine.h"
#include "module.h"
#include "overtaken.h"
#include "place.h"
#include "proto/text.h"
#include "util/list.h"
#include "util/log.h"
#include "util/macro.h"

#define RECOVERY_NAMED_MAX 16u   /* buffers named in one text */
#define RECOVERY_LINE_MAX  2000u /* bytes of a line of output in one */
#define RECOVERY_BLOCK     "block: ["

static FaultJob recovery_describe(const Job *job) {
        return (FaultJob){
                .phase = job->phase,
                .retries = job->retries,
                .repeatable = job->work.repeatable,
                .device_inout = job_changes_in_place(job, ARENA_DEVICE),
                .host_inout = job_changes_in_place(job, ARENA_HOST),
                .variables = job_has_variables(job),
                .alone = job->is_alone,
                .overtaken = job->was_overtaken,
                .terminated = job->verdict.failure != NULL,
        };
}

/* ---- words ----------------------------------------------------------------- */

/* Whether "x,y,z]" follows. Not by sscanf(), which measures the rest of the text each time. */
static bool recovery_names_block(const char *text) {
        for (unsigned i = 0; i < 3; ++i) {
                size_t n = strspn(text, "0123456789");

                if (n == 0 || text[n] != (i < 2 ? ',' : ']'))
                        return false;
                text += n + 1;
        }
        return true;
}

/* The last line of a driver about the fault, such as a failed assertion: one that names a block. Or "". */
static const char *recovery_line(const char *output, size_t *ret_n) {
        const char *line = NULL;

        for (const char *at = output; at && (at = strstr(at, RECOVERY_BLOCK)); ++at)
                if (recovery_names_block(at + strlen(RECOVERY_BLOCK)))
                        line = at;
        while (line && line > output && line[-1] != '\n')
                --line;
        *ret_n = line ? strcspn(line, "\n") : 0;
        return line ?: "";
}

static Failure *recovery_guilty(const Job *job, const Failure *failure, const char *output,
                                bool alone) {
        const char *line;
        char names[256];
        size_t n;

        job_kernel_names(job, names, sizeof(names));
        line = recovery_line(output, &n);
        return failure_new(FAILURE_FAULT, "%s: %s%s%.*s (this job caused the fault: %s)", names,
                           failure ? failure->text : "the worker process died", n > 0 ? ": " : "",
                           (int)MIN(n, text_cut(line, RECOVERY_LINE_MAX)), line,
                           alone ? "it failed again when it ran alone"
                                 : "no other job was in flight");
}

static void recovery_name_buffers(const Job *job, JobDirection direction, char *text,
                                  size_t n_text) {
        size_t n = 0, n_named = 0;

        *text = '\0';
        for (size_t i = 0; i < job->work.n_buffers && n < n_text; ++i) {
                if (job->work.buffers[i].direction != direction)
                        continue;
                if (n_named++ == RECOVERY_NAMED_MAX) {
                        snprintf(text + n, n_text - n, ", and more");
                        return;
                }
                n += snprintf(text + n, n_text - n, "%sbytes %llu to %llu of arena %llu",
                              n ? ", " : "", (unsigned long long)job->work.buffers[i].offset,
                              (unsigned long long)(job->work.buffers[i].offset +
                                                   job->work.buffers[i].length),
                              (unsigned long long)job->work.buffers[i].arena->id);
        }
        if (job_has_variables(job) && n < n_text)
                snprintf(text + n, n_text - n, "%sthe variables of its modules", n ? ", " : "");
}

static Failure *recovery_half_written(const Job *job) {
        char buffers[1536];

        if (job->was_overtaken && job->phase == FAULT_UNKNOWN) {
                recovery_name_buffers(job, JOB_IN, buffers, sizeof(buffers));
                return failure_new(FAILURE_HALF_WRITTEN,
                                   "the job was in flight when its worker died, and cannot run "
                                   "again: a later job may have overwritten its input: %s",
                                   buffers);
        }

        recovery_name_buffers(job, JOB_INOUT, buffers, sizeof(buffers));
        return failure_new(FAILURE_HALF_WRITTEN,
                           "the job was in flight when its worker died, and cannot run again; "
                           "these buffers may be half written: %s",
                           buffers);
}

static Failure *recovery_given_up(const Job *job, const Failure *failure) {
        if (job->phase == FAULT_QUEUED)
                return failure_new(FAILURE_INTERNAL, "%u workers died before they ran the job",
                                   job->retries + 1);
        return failure_new(FAILURE_NO_DEVICE,
                           "devices failed %u times while they ran the job; last: %s",
                           job->retries + 1, failure ? failure->text : "unknown reason");
}

/* ---- deeds ----------------------------------------------------------------- */

static void recovery_suspect(const Job *job) {
        for (size_t i = 0; i < job->work.n_kernels; ++i)
                suspects_add(&job->user->suspects, suspects_key(job->work.kernels[i].module->name,
                                                                job->work.kernels[i].name));
}

static void recovery_punish(Job *job, const Failure *failure, const char *output, bool alone) {
        char fields[96];

        if (output && *output) {
                job_set_output(job, output, SIZE_MAX);
        }
        snprintf(fields, sizeof(fields), "GPUQ_JOB=" JOB_ID_FORMAT " GPUQ_UID=%u GPUQ_DEVICE=%u",
                 JOB_ID_PARTS(job->id), (unsigned)job->user->uid, job->device->index);
        log_full(LOG_NOTICE, fields, "job " JOB_ID_FORMAT " of uid %u faulted: %s",
                 JOB_ID_PARTS(job->id), (unsigned)job->user->uid,
                 failure ? failure->text : "its worker process died");
        recovery_suspect(job);
        ending_fail(job, recovery_guilty(job, failure, output, alone));
}

static void recovery_end_as_told(Job *job) {
        Failure *verdict = TAKE_PTR(job->verdict.failure);

        if (job->verdict.state == JOB_CANCELLED)
                ending_cancel(job, verdict);
        else
                ending_fail(job, verdict);
}

static void recovery_apply(Job *job, FaultVerdict verdict, const Failure *failure,
                           const char *output) {
        switch (verdict) {
                case FAULT_AGAIN:
                case FAULT_AGAIN_ALONE:
                        break;
                case FAULT_GUILTY:
                case FAULT_GUILTY_ALONE:
                        recovery_punish(job, failure, output, verdict == FAULT_GUILTY_ALONE);
                        break;
                case FAULT_TERMINATED:
                        recovery_end_as_told(job);
                        break;
                case FAULT_HALF_WRITTEN:
                        ending_fail(job, recovery_half_written(job));
                        break;
                case FAULT_GIVEN_UP:
                        ending_fail(job, recovery_given_up(job, failure));
                        break;
        }
}

/* First all jobs to be retried: their successors must find them WAITING when others end. */
static void recovery_return(Job *job, FaultVerdict verdict) {
        if (verdict != FAULT_AGAIN && verdict != FAULT_AGAIN_ALONE)
                return;
        job->was_overtaken = false;
        place_return(job, verdict == FAULT_AGAIN_ALONE || job->is_alone);
}

void recovery_run(Executor *executor, FaultCause cause, const Failure *failure,
                  const char *output) {
        _cleanup_(freep) FaultVerdict *verdicts = NULL;
        _cleanup_(freep) FaultJob *described = NULL;
        _cleanup_(freep) Job **jobs = NULL;
        size_t n_jobs = executor->n_inflight, n_left = OVERTAKEN_STEPS_MAX, i = 0;
        Job *job;

        if (!n_jobs)
                return;

        jobs = calloc(n_jobs, sizeof(*jobs));
        described = calloc(n_jobs, sizeof(*described));
        verdicts = calloc(n_jobs, sizeof(*verdicts));
        if (!jobs || !described || !verdicts) {
                while ((job = TAILQ_FIRST(&executor->inflight)))
                        ending_fail(job, failure_new(FAILURE_INTERNAL, "gpuqd is out of memory"));
                return;
        }

        TAILQ_FOREACH (job, &executor->inflight, link)
                overtaken_mark(job, &n_left);
        TAILQ_FOREACH (job, &executor->inflight, link) {
                described[i] = recovery_describe(job);
                jobs[i++] = job;
        }
        fault_triage(cause, described, n_jobs, verdicts);

        for (i = 0; i < n_jobs; ++i)
                recovery_return(jobs[i], verdicts[i]);
        for (i = 0; i < n_jobs; ++i)
                recovery_apply(jobs[i], verdicts[i], failure, output);
}

void recovery_run_unattached(Job *job) {
        FaultJob described;
        FaultVerdict verdict;

        job->phase = FAULT_UNKNOWN;
        described = recovery_describe(job);
        fault_triage(FAULT_STOPPED, &described, 1, &verdict);
        if (verdict != FAULT_AGAIN && verdict != FAULT_AGAIN_ALONE) {
                ending_fail(job, recovery_half_written(job));
                return;
        }
        job_note_retries(job, job->retries + 1);
        place_consider(job);
}
