/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the ends of jobs become messages: many in one, pointing into the jobs, so
 * that nothing is copied but into the socket's buffer.
 */

#include <string.h>

#include "supervisor/device.h"
#include "supervisor/list.h"
#include "supervisor/session.h"
#include "supervisor/supervisor.h"

#define COMPLETIONS_MAX 1024u

typedef struct Completions {
        Gpuq__V1__Completion completions[COMPLETIONS_MAX];
        Gpuq__V1__Completion *list[COMPLETIONS_MAX];
        Gpuq__V1__Error errors[COMPLETIONS_MAX];
} Completions;

static void completion_fill(Gpuq__V1__Completion *completion, Gpuq__V1__Error *error,
                            const Job *job) {
        gpuq__v1__completion__init(completion);
        completion->id = job->id;
        completion->state = (Gpuq__V1__State)job->state;
        if (job->failure) {
                *error = failure_to_proto(job->failure);
                completion->error = error;
        }
        if (job->output)
                completion->output = job->output;
        completion->waited_us = job_waited_us(job, job->ended_ns);
        completion->ran_us = job->ran_us;
        completion->gpu_ns = job->gpu_ns;
        completion->device = job->device ? job->device->index : 0;
}

static size_t completion_n_bytes(const Job *job) {
        return 64 + (job->failure ? strlen(job->failure->text) : 0) +
               (job->output ? strlen(job->output) : 0);
}

/* Kept from turn to turn: its size would be too much for the stack. */
static Completions *completions_scratch(void) {
        static Completions scratch;

        return &scratch;
}

static void session_send_completions(Session *session, uint32_t serial, Gpuq__V1__Completion **list,
                                     size_t n) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Completions message = GPUQ__V1__COMPLETIONS__INIT;

        message.completions = list;
        message.n_completions = n;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_COMPLETIONS;
        reply.completions = &message;
        session_reply(session, &reply, -1);
}

static void session_report_batch(Session *session) {
        Completions *scratch = completions_scratch();
        size_t n = 0, n_bytes = 0;
        Job *job;

        TAILQ_FOREACH(job, &session->ended, link) {
                n_bytes += completion_n_bytes(job);
                if (n == COMPLETIONS_MAX || (n && n_bytes > SESSION_REPLY_BYTES))
                        break;
                completion_fill(&scratch->completions[n], &scratch->errors[n], job);
                scratch->list[n] = &scratch->completions[n];
                n++;
        }
        session_send_completions(session, 0, scratch->list, n);
        while (n--) {
                job = TAILQ_FIRST(&session->ended);
                TAILQ_REMOVE(&session->ended, job, link);
                job_free(job);
        }
}

void session_report_ended(Session *session) {
        while (!TAILQ_EMPTY(&session->ended))
                session_report_batch(session);
}

void session_report_history(Session *session, uint32_t serial, const HistoryEntry *entry) {
        Gpuq__V1__Completion completion = GPUQ__V1__COMPLETION__INIT, *list = &completion;
        Gpuq__V1__Error error = GPUQ__V1__ERROR__INIT;

        completion.id = entry->id;
        completion.state = (Gpuq__V1__State)entry->state;
        completion.waited_us = entry->waited_us;
        completion.ran_us = entry->ran_us;
        completion.device = entry->device;
        if (entry->code) {
                error.code = (Gpuq__V1__Code)entry->code;
                if (entry->text)
                        error.text = entry->text;
                completion.error = &error;
        }
        session_send_completions(session, serial, &list, 1);
}

void session_watch_ended(JobWatch *watch) {
        Gpuq__V1__Completion completion, *list = &completion;
        Gpuq__V1__Error error;

        completion_fill(&completion, &error, watch->job);
        session_send_completions(watch->session, watch->serial, &list, 1);
        LIST_REMOVE(watch, job_link);
        LIST_REMOVE(watch, session_link);
        free(watch);
}
