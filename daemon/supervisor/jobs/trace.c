/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "executor.h"
#include "job.h"
#include "module.h"
#include "proto/text.h"
#include "submitter.h"
#include "util/list.h"

/* ---- life -------------------------------------------------------------------- */

static bool trace_is_for(const Trace *trace, const User *user, bool is_of_all) {
        return trace->is_of_all == is_of_all && (is_of_all || trace->user == user);
}

static bool trace_has_room(const Engine *engine, const User *user) {
        unsigned n_all = 0, n_person = 0;
        const Trace *trace;

        LIST_FOREACH (trace, &engine->ends.traces, link) {
                n_all += !trace->is_of_all;
                n_person += !trace->is_of_all && trace->user->person == user->person;
        }
        return n_all < TRACE_USERS_MAX && n_person < TRACE_PERSON_MAX;
}

static void trace_free(Trace *trace) {
        LIST_REMOVE(trace, link);
        user_uncharge(&trace->charge);
        user_release(trace->user);
        free(trace);
}

static int trace_new(Engine *engine, User *user, bool is_of_all, Trace **ret_trace) {
        UserCharge charge = {};
        Trace *trace;

        if (!is_of_all && !trace_has_room(engine, user))
                return TRACE_E_MANY;
        if (user_charge(user, &charge, USER_RECORD_BYTES, sizeof(*trace)) == USER_E_QUOTA)
                return TRACE_E_QUOTA;
        trace = calloc(1, sizeof(*trace));
        if (!trace) {
                user_uncharge(&charge);
                return -ENOMEM;
        }

        trace->number = ++engine->ends.last_trace;
        trace->user = user_hold(user);
        trace->is_of_all = is_of_all;
        trace->charge = charge;
        trace->asked_ns = engine_now(engine);
        LIST_INSERT_HEAD(&engine->ends.traces, trace, link);
        *ret_trace = trace;
        return 0;
}

int trace_open(Engine *engine, User *user, bool is_of_all, Trace **ret_trace) {
        Trace *trace;

        LIST_FOREACH (trace, &engine->ends.traces, link)
                if (trace_is_for(trace, user, is_of_all)) {
                        *ret_trace = trace;
                        return 0;
                }
        return trace_new(engine, user, is_of_all, ret_trace);
}

Trace *trace_find(const Engine *engine, const User *user, bool is_of_all, uint64_t number) {
        Trace *trace;

        LIST_FOREACH (trace, &engine->ends.traces, link)
                if (trace->number == number && trace_is_for(trace, user, is_of_all))
                        return trace;
        return NULL;
}

void trace_tick(Engine *engine, uint64_t now_ns) {
        Trace *trace, *next;

        LIST_FOREACH_SAFE (trace, &engine->ends.traces, link, next)
                if (now_ns > trace->asked_ns + TRACE_IDLE_NS)
                        trace_free(trace);
}

void trace_free_all(Engine *engine) {
        while (!LIST_EMPTY(&engine->ends.traces))
                trace_free(LIST_FIRST(&engine->ends.traces));
}

/* ---- ended jobs ---------------------------------------------------------------- */

TraceRecord *trace_add(Trace *trace, uint64_t now_ns) {
        TraceRecord *record = &trace->records[trace->n_kept % TRACE_MAX];

        trace->n_ended++;
        if (trace->n_kept >= TRACE_MAX && now_ns - record->ended_ns < TRACE_KEEP_NS)
                return NULL;
        trace->n_kept++;
        *record = (TraceRecord){.serial = trace->n_ended, .ended_ns = now_ns};
        return record;
}

static void trace_copy(char *to, size_t max, const char *text, size_t n_text) {
        size_t n = n_text > max ? text_cut(text, max) : n_text;

        memcpy(to, text, n);
        to[n] = '\0';
}

static void trace_copy_kernels(TraceRecord *record, const JobWork *work) {
        char *to = record->kernels;
        size_t left = TRACE_KERNELS_MAX;

        for (size_t i = 0; i < work->n_kernels && left > 2; ++i) {
                if (i)
                        to = stpcpy(to, ", ");
                trace_copy(to, left - (i ? 2 : 0), work->kernels[i].name, work->kernels[i].n_name);
                to += strlen(to);
                left = TRACE_KERNELS_MAX - (size_t)(to - record->kernels);
        }
}

static void trace_copy_client(TraceRecord *record, const Submitter *submitter) {
        record->client = submitter->pid;
        trace_copy(record->program, LIMIT_CLIENT_NAME, submitter->program,
                   strlen(submitter->program));
}

static void trace_copy_job(TraceRecord *record, const Job *job, const Executor *executor) {
        HistoryTimes times;

        job_note_times(job, job->clock.ended_ns, &times);
        record->id = job->id;
        record->uid = job->user->uid;
        record->state = (int)job->state;
        record->code = job->outcome.failure ? job->outcome.failure->code : 0;
        record->submitted_ns = job->clock.submitted_ns;
        record->started_ns = job->clock.started_ns;
        record->behind_ns = times.behind_ns;
        record->parked_ns = times.parked_ns;
        record->ran_us = job->outcome.ran_us;
        record->gpu_ns = times.gpu_ns;
        record->n_moved = times.n_moved;
        record->worker = executor ? executor->pid : 0;
        record->device = executor && job->device ? job->device->index + 1 : 0;
        record->stream = executor ? job->cost.stream : 0;
        record->n_beside = times.n_beside;
        record->n_retries = job->retries;
        if (job->submitter && job->submitter->program)
                trace_copy_client(record, job->submitter);
        trace_copy(record->label, LIMIT_JOB_LABEL, job->label, strlen(job->label));
        trace_copy_kernels(record, &job->work);
}

void trace_ended(const Job *job, const Executor *executor) {
        const Engine *engine = job->engine;
        TraceRecord *record;
        Trace *trace;

        LIST_FOREACH (trace, &engine->ends.traces, link) {
                if (!trace_is_for(trace, job->user, trace->is_of_all))
                        continue;
                record = trace_add(trace, job->clock.ended_ns);
                if (record)
                        trace_copy_job(record, job, executor);
        }
}

/* ---- reading ------------------------------------------------------------------- */

uint64_t trace_after(const Trace *trace, uint64_t serial) {
        uint64_t low = trace->n_kept > TRACE_MAX ? trace->n_kept - TRACE_MAX : 0;
        uint64_t high = trace->n_kept;

        while (low < high) {
                uint64_t middle = low + (high - low) / 2;

                if (trace_at(trace, middle)->serial > serial)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}
