/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes the ends of jobs: many in one message, written directly into the output. Answers to a
 * request are sent like all replies.
 */

#include <string.h>

#include "proto/pack.h"
#include "jobs.h"
#include "util/list.h"
#include "session.h"

#define COMPLETIONS_MAX 1024u

void completion_fill(Gpuq__V1__Completion *completion, Gpuq__V1__Error *error, const Job *job) {
        gpuq__v1__completion__init(completion);
        completion->id = job->id;
        completion->state = (Gpuq__V1__State)job->state;
        if (job->outcome.failure) {
                *error = failure_to_proto(job->outcome.failure);
                completion->error = error;
        }
        if (job->outcome.output)
                completion->output = job->outcome.output;
        completion->waited_us = job_waited_us(job, job->clock.ended_ns);
        completion->ran_us = job->outcome.ran_us;
        completion->gpu_ns = job->outcome.gpu_ns;
        completion->device = job->device ? job->device->index : 0;
}

void session_send_completions(Session *session, uint32_t serial, Gpuq__V1__Completion **list,
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

/* ---- those of the session's own jobs --------------------------------------- */

/* An upper bound of its encoded size. */
static size_t completion_n_bytes(const Job *job) {
        size_t n_bytes = PACK_PREFIX_BYTES + 6 * PACK_FIELD_BYTES;

        if (job->outcome.failure)
                n_bytes += 2 * PACK_PREFIX_BYTES + PACK_FIELD_BYTES +
                           strlen(job->outcome.failure->text);
        if (job->outcome.output)
                n_bytes += PACK_PREFIX_BYTES + strlen(job->outcome.output);
        return n_bytes;
}

/* Field numbers are those of gpuq.proto. */
static uint8_t *completion_pack_failure(uint8_t *p, const Failure *failure) {
        uint8_t *begin = p = pack_begin(p, 3);

        p = pack_number(p, 1, (uint64_t)failure->code);
        p = pack_bytes(p, 2, failure->text, strlen(failure->text));
        pack_end(begin, p);
        return p;
}

static uint8_t *completion_pack(uint8_t *p, const Job *job) {
        uint8_t *begin = p = pack_open(p, 1);

        p = pack_number(p, 1, job->id);
        p = pack_number(p, 2, (uint64_t)job->state);
        if (job->outcome.failure)
                p = completion_pack_failure(p, job->outcome.failure);
        if (job->outcome.output)
                p = pack_bytes(p, 4, job->outcome.output, strlen(job->outcome.output));
        p = pack_number(p, 5, job_waited_us(job, job->clock.ended_ns));
        p = pack_number(p, 6, job->outcome.ran_us);
        p = pack_number(p, 7, job->outcome.gpu_ns);
        p = pack_number(p, 8, job->device ? job->device->index : 0);
        return pack_close(begin, p);
}

/* The number of completions at the front that fit one message. */
static size_t session_count_batch(const Session *session, size_t *ret_n_bytes) {
        size_t n = 0, n_bytes = PACK_PREFIX_BYTES;
        const Job *job;

        TAILQ_FOREACH (job, &session->ends.list, link) {
                size_t n_more = completion_n_bytes(job);

                if (n == COMPLETIONS_MAX || (n && n_bytes + n_more > SESSION_REPLY_BYTES))
                        break;
                n_bytes += n_more;
                n++;
        }
        *ret_n_bytes = n_bytes;
        return n;
}

static void session_pack_batch(Session *session, size_t n, size_t n_bytes) {
        const Job *job = TAILQ_FIRST(&session->ends.list);
        uint8_t *payload, *begin, *p;

        if (!session_reply_begin(session, 0, -1, n_bytes, &payload))
                return;
        begin = p = pack_begin(payload, GPUQ__V1__REPLY__BODY_COMPLETIONS);
        for (; n > 0; --n, job = TAILQ_NEXT(job, link))
                p = completion_pack(p, job);
        pack_end(begin, p);
        session_reply_end(session, (size_t)(p - payload));
}

static void session_report_batch(Session *session) {
        size_t n_bytes, n = session_count_batch(session, &n_bytes);
        Job *job;

        session_pack_batch(session, n, n_bytes);
        while (n--) {
                job = TAILQ_FIRST(&session->ends.list);
                TAILQ_REMOVE(&session->ends.list, job, link);
                session->ends.n--;
                ledger_job_told(session->engine->ledger, job->record, &session->ends.told);
                job_free(job);
        }
}

void session_report_ended(Session *session) {
        while (!TAILQ_EMPTY(&session->ends.list) && !session->is_resuming)
                session_report_batch(session);
}

/* ---- those that were asked for --------------------------------------------- */

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

void session_report_end(Session *session, uint32_t serial, const Job *job) {
        Gpuq__V1__Completion completion, *list = &completion;
        Gpuq__V1__Error error;

        completion_fill(&completion, &error, job);
        session_send_completions(session, serial, &list, 1);
}
