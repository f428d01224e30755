/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that ended since the client asked before, with all that `gpuq trace` draws.
 */

#include "request.h"

#include <time.h>

#include "registry.h"

#define TRACE_PAGE  256u /* jobs in one answer */
#define TRACE_STEPS 2u   /* of a turn, for each of them */

static uint64_t trace_unix_ns(void) {
        struct timespec now;

        (void)clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void trace_fill_names(Gpuq__V1__TraceJob *to, const TraceRecord *record) {
        to->label = (char *)record->label;
        to->kernels = (char *)record->kernels;
        to->program = (char *)record->program;
        to->client = (uint32_t)record->client;
}

static void trace_fill(Gpuq__V1__TraceJob *to, const TraceRecord *record) {
        gpuq__v1__trace_job__init(to);
        to->id = record->id;
        to->uid = (uint32_t)record->uid;
        to->state = (Gpuq__V1__State)record->state;
        to->code = (Gpuq__V1__Code)record->code;
        trace_fill_names(to, record);
        to->device = record->device;
        to->worker = (uint32_t)record->worker;
        to->stream = record->stream;
        to->submitted_ns = record->submitted_ns;
        to->started_ns = record->started_ns;
        to->ended_ns = record->ended_ns;
        to->behind_ns = record->behind_ns;
        to->parked_ns = record->parked_ns;
        to->ran_us = record->ran_us;
        to->gpu_ns = record->gpu_ns;
        to->moved_bytes = record->n_moved;
        to->beside = record->n_beside;
        to->retries = record->n_retries;
}

/* Serial numbers tell what is missing: each job that ended has one. Return: 0, or -ENOMEM. */
static int trace_fill_page(Session *session, const Trace *trace, uint64_t serial,
                           Gpuq__V1__Trace *message) {
        Bump *bump = session->clients->bump;
        uint64_t position = trace_after(trace, serial);
        size_t n = (size_t)MIN(trace->n_kept - position, TRACE_PAGE);
        Gpuq__V1__TraceJob *jobs = bump_take(bump, (n + 1) * sizeof(*jobs));

        message->jobs = bump_take(bump, (n + 1) * sizeof(*message->jobs));
        if (!jobs || !message->jobs)
                return -ENOMEM;
        serving_pay(&session->serving, n * TRACE_STEPS);
        for (size_t i = 0; i < n; ++i) {
                trace_fill(&jobs[i], trace_at(trace, position + i));
                message->jobs[i] = &jobs[i];
        }
        message->n_jobs = n;
        message->more = position + n < trace->n_kept;
        message->next = message->more ? trace_at(trace, position + n - 1)->serial : trace->n_ended;
        message->lost = message->next - MIN(serial, message->next) - n;
        return 0;
}

static Failure *trace_failure(const Session *session, int error) {
        if (error == TRACE_E_QUOTA)
                return user_quota_failure(session->submitter.user, USER_RECORD_BYTES,
                                          sizeof(Trace));
        if (error == TRACE_E_MANY)
                return failure_new(FAILURE_QUOTA,
                                   "gpuqd traces the jobs of %u users already, or those of %u "
                                   "subordinate uids of yours; try again when one has finished",
                                   TRACE_USERS_MAX, TRACE_PERSON_MAX);
        return failure_new(FAILURE_MEMORY, "gpuqd has no memory for a trace");
}

/* Return: NULL, or why the user gets no answer. */
static Failure *trace_begin(Session *session, Gpuq__V1__Trace *message) {
        Trace *trace;
        int r;

        r = trace_open(session->engine, session->submitter.user, session->peer.is_admin, &trace);
        if (r)
                return trace_failure(session, r);
        trace->asked_ns = engine_now(session->engine);
        message->trace = trace->number;
        message->next = trace->n_ended;
        return NULL;
}

static Failure *trace_continue(Session *session, const Gpuq__V1__TraceGet *get,
                               Gpuq__V1__Trace *message) {
        Trace *trace = trace_find(session->engine, session->submitter.user, session->peer.is_admin,
                                  get->trace);

        if (!trace || get->next > trace->n_ended)
                return failure_new(FAILURE_NOT_FOUND,
                                   "there is no such trace: gpuqd was restarted, or nobody read "
                                   "the trace for %u s; begin again",
                                   (unsigned)(TRACE_IDLE_NS / 1000000000u));
        trace->asked_ns = engine_now(session->engine);
        message->trace = trace->number;
        if (trace_fill_page(session, trace, get->next, message) < 0)
                return trace_failure(session, -ENOMEM);
        return NULL;
}

const char *session_on_trace_get(Session *session, uint32_t serial,
                                 const Gpuq__V1__Request *request) {
        const Gpuq__V1__TraceGet *get = request->trace_get;
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Trace message = GPUQ__V1__TRACE__INIT;
        Failure *failure;

        message.all_users = session->peer.is_admin;
        message.now_ns = engine_now(session->engine);
        message.unix_ns = trace_unix_ns() - (uv_hrtime() - message.now_ns);
        failure = get->trace ? trace_continue(session, get, &message)
                             : trace_begin(session, &message);
        if (failure) {
                session_fail_request(session, serial, failure);
                return NULL;
        }
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_TRACE;
        reply.trace = &message;
        session_reply(session, &reply, -1);
        return NULL;
}
