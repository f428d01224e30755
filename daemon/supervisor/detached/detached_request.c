/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients ask about detached jobs, and the answers when they are due.
 */

#include <stdio.h>
#include <string.h>

#include "detached.h"
#include "jobs.h"
#include "util/list.h"
#include "loop.h"

/* ---- asks ------------------------------------------------------------------ */

static Failure *ask_new(DetachedWhat what, Session *session, uint32_t serial, Detached *detached) {
        DetachedAsk *ask;
        unsigned n = 0;

        LIST_FOREACH (ask, &session->asks, session_link)
                n++;
        if (n >= LIMIT_WATCHES)
                return failure_new(FAILURE_QUOTA, "%u waits at once, at most %u", n, LIMIT_WATCHES);
        ask = calloc(1, sizeof(*ask));
        if (!ask)
                return failure_new(FAILURE_MEMORY, "no memory to wait");

        ask->what = what;
        ask->session = session;
        ask->serial = serial;
        ask->detached = detached;
        LIST_INSERT_HEAD(&session->asks, ask, session_link);
        LIST_INSERT_HEAD(&detached->asks, ask, detached_link);
        return NULL;
}

static void ask_free(DetachedAsk *ask) {
        if (ask->session)
                LIST_REMOVE(ask, session_link);
        LIST_REMOVE(ask, detached_link);
        arena_unref(ask->arena);
        free(ask);
}

static bool ask_is_read_for(const DetachedAsk *ask) {
        return ask->arena != NULL;
}

void detached_drop_asks(Session *session) {
        DetachedAsk *ask;

        while ((ask = LIST_FIRST(&session->asks))) {
                if (!ask_is_read_for(ask)) {
                        ask_free(ask);
                        continue;
                }
                LIST_REMOVE(ask, session_link);
                ask->session = NULL;
        }
}

/* Those that a thread reads for end with it. */
void detached_refuse(Detached *detached, int what, Failure *failure) {
        DetachedAsk *ask, *next;

        LIST_FOREACH_SAFE (ask, &detached->asks, detached_link, next) {
                if ((what >= 0 && ask->what != (DetachedWhat)what) || ask_is_read_for(ask))
                        continue;
                session_reply_failure(ask->session, ask->serial, failure);
                ask_free(ask);
        }
        failure_free(failure);
}

/* ---- answers --------------------------------------------------------------- */

static void answer_detach(DetachedAsk *ask) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Detached detached = GPUQ__V1__DETACHED__INIT;

        detached.id = detached_id(ask->detached);
        reply.serial = ask->serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_DETACHED;
        reply.detached = &detached;
        session_reply(ask->session, &reply, -1);
        ask_free(ask);
}

static void answer_discard(DetachedAsk *ask) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Discarded discarded = GPUQ__V1__DISCARDED__INIT;

        reply.serial = ask->serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_DISCARDED;
        reply.discarded = &discarded;
        session_reply(ask->session, &reply, -1);
        ask_free(ask);
}

static Failure *detached_damage_failure(const Detached *detached) {
        return failure_new(FAILURE_INTERNAL,
                           "the state of job " JOB_ID_FORMAT
                           " on the daemon's disk is damaged and was set aside: %s",
                           JOB_ID_PARTS(detached_id(detached)),
                           detached->damage ? detached->damage : "?");
}

static void answer_wait(DetachedAsk *ask) {
        const Detached *detached = ask->detached;
        Gpuq__V1__Completion damaged = GPUQ__V1__COMPLETION__INIT, *completion = &damaged;
        _cleanup_(failure_freep) Failure *failure = NULL;
        Gpuq__V1__Error error;

        if (detached->state == DETACHED_DAMAGED) {
                failure = detached_damage_failure(detached);
                error = failure_to_proto(failure);
                damaged.id = detached_id(detached);
                damaged.state = GPUQ__V1__STATE__FAILED;
                damaged.error = &error;
        } else {
                completion = detached->end->completion;
        }
        session_send_completions(ask->session, ask->serial, &completion, 1);
        ask_free(ask);
}

/* ---- fetch ----------------------------------------------------------------- */

/* Where a buffer's bytes are in the file of outputs. */
static uint64_t fetch_offset(const Gpuq__Spool__Record *record, const Gpuq__V1__Buffer *buffer) {
        uint64_t before = 0;

        for (size_t i = 0; i < record->n_extents; ++i) {
                const Gpuq__Spool__Extent *extent = record->extents[i];

                if (!extent->written)
                        continue;
                if (buffer->offset >= extent->offset &&
                    buffer->offset + buffer->length <= extent->offset + extent->length)
                        return before + (buffer->offset - extent->offset);
                before += extent->length;
        }
        return 0; /* none is not in one */
}

static size_t fetch_list(const Gpuq__Spool__Record *record, Gpuq__V1__Output *outputs,
                         Gpuq__V1__Output **list) {
        const Gpuq__V1__Job *job = record->job;
        size_t n = 0;

        for (size_t i = 0; i < job->n_buffers; ++i) {
                if (job->buffers[i]->direction == GPUQ__V1__DIRECTION__IN)
                        continue;
                gpuq__v1__output__init(&outputs[n]);
                outputs[n].offset = fetch_offset(record, job->buffers[i]);
                outputs[n].length = job->buffers[i]->length;
                list[n] = &outputs[n];
                n++;
        }
        return n;
}

static void answer_fetched(DetachedAsk *ask) {
        const Gpuq__Spool__Record *record = ask->detached->record;
        size_t n_buffers = record->job->n_buffers;
        _cleanup_(freep) Gpuq__V1__Output *outputs = calloc(n_buffers + 1, sizeof(*outputs));
        _cleanup_(freep) Gpuq__V1__Output **list = calloc(n_buffers + 1, sizeof(*list));
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Fetched fetched = GPUQ__V1__FETCHED__INIT;

        if (!outputs || !list || (ask->arena && session_open_arena(ask->session, ask->arena) < 0)) {
                session_fail_request(ask->session, ask->serial,
                                     failure_new(FAILURE_MEMORY, "no memory for the outputs"));
                return;
        }
        fetched.completion = ask->detached->end->completion;
        fetched.note = record->note;
        if (ask->arena) {
                fetched.arena = ask->arena->id;
                fetched.size = ask->arena->size;
                fetched.n_outputs = fetch_list(record, outputs, list);
                fetched.outputs = list;
        }
        reply.serial = ask->serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_FETCHED;
        reply.fetched = &fetched;
        session_reply(ask->session, &reply, ask->arena ? ask->arena->fd : -1);
}

static void fetch_in_thread(void *userdata) {
        DetachedAsk *ask = userdata;
        const Detached *detached = ask->detached;
        Spool *spool = detached->table->spool;

        ask->r = spool_load_output(spool, detached->record, detached->end, ask->arena->fd,
                                   &ask->problem);
        if (ask->r == SPOOL_E_DAMAGED)
                (void)spool_set_aside(spool, detached->number, detached->uid);
}

static void fetch_reply(DetachedAsk *ask) {
        Failure *failure = NULL;

        if (ask->r == SPOOL_E_DAMAGED)
                failure = detached_damage_failure(ask->detached);
        else if (ask->r < 0)
                failure = failure_new(FAILURE_MEMORY, "the outputs cannot be read: %s",
                                      strerror(-ask->r));
        if (failure)
                session_fail_request(ask->session, ask->serial, failure);
        else
                answer_fetched(ask);
}

static void fetch_on_done(void *userdata) {
        DetachedAsk *ask = userdata;
        Detached *detached = ask->detached;

        detached->n_readers--;
        if (ask->r == SPOOL_E_DAMAGED && detached->state == DETACHED_ENDED)
                detached_damage(detached, ask->problem.text);
        if (ask->session)
                fetch_reply(ask);
        ask_free(ask);
        detached_answer(detached); /* who waited for us to have read */
}

static void fetch_begin(DetachedAsk *ask) {
        Detached *detached = ask->detached;
        User *user = detached->owner->user;
        uint64_t n_bytes = spool_output_bytes(detached->record);
        int r;

        if (detached->end->completion->state != GPUQ__V1__STATE__DONE || n_bytes == 0) {
                answer_fetched(ask);
                ask_free(ask);
                return;
        }
        r = arena_new(&detached->table->supervisor->engine, user, ARENA_HOST, n_bytes, &ask->arena);
        if (r) {
                session_fail_request(ask->session, ask->serial,
                                     r == ARENA_E_QUOTA
                                             ? limit_failure(user, USER_ARENA_BYTES, n_bytes)
                                             : failure_new(FAILURE_MEMORY,
                                                           "no arena for the outputs: %s",
                                                           strerror(-r)));
                ask_free(ask);
                return;
        }
        detached->n_readers++;
        ask->call = (DiskCall){fetch_in_thread, fetch_on_done, ask, {}};
        disk_call(detached->table->disk, &ask->call);
}

static void answer_ended(DetachedAsk *ask) {
        if (ask->what == DETACHED_ASK_WAIT)
                answer_wait(ask);
        else if (ask->what == DETACHED_ASK_FETCH && !ask_is_read_for(ask))
                fetch_begin(ask);
}

static void answer_damaged(DetachedAsk *ask) {
        if (ask->what == DETACHED_ASK_WAIT) {
                answer_wait(ask);
        } else if (!ask_is_read_for(ask)) {
                session_fail_request(ask->session, ask->serial,
                                     detached_damage_failure(ask->detached));
                ask_free(ask);
        }
}

static void answer_one(DetachedAsk *ask) {
        switch (ask->detached->state) {
                case DETACHED_STORING:
                        break;
                case DETACHED_DAMAGED:
                        answer_damaged(ask);
                        break;
                case DETACHED_REMOVING: /* it is gone */
                        if (ask->what == DETACHED_ASK_DISCARD)
                                answer_discard(ask);
                        break;
                default:
                        if (ask->what == DETACHED_ASK_DETACH)
                                answer_detach(ask);
                        else if (ask->detached->state == DETACHED_ENDED)
                                answer_ended(ask);
                        break;
        }
}

static bool detached_is_unwanted(const Detached *detached) {
        const DetachedAsk *ask;

        if (detached->state != DETACHED_ENDED || detached->n_readers)
                return false;
        LIST_FOREACH (ask, &detached->asks, detached_link)
                if (ask->what == DETACHED_ASK_DISCARD)
                        return true;
        return false;
}

void detached_answer(Detached *detached) {
        DetachedAsk *ask, *next;

        LIST_FOREACH_SAFE (ask, &detached->asks, detached_link, next)
                answer_one(ask);
        if (detached_is_unwanted(detached))
                detached_remove(detached);
}

/* ---- who may ask ----------------------------------------------------------- */

static Failure *detached_lookup(const Session *session, uint64_t id, bool admin_may,
                                Detached **ret_detached) {
        Detached *detached = detached_find(session->clients->supervisor, id);
        Failure *failure;

        failure = detached_check_id(session->clients->supervisor, id);
        if (failure)
                return failure;
        if (!detached || detached->state == DETACHED_STORING ||
            detached->state == DETACHED_REMOVING)
                return failure_new(FAILURE_NOT_FOUND, "there is no detached job " JOB_ID_FORMAT,
                                   JOB_ID_PARTS(id));
        if (detached->uid != session->peer.uid && !(admin_may && session->peer.is_admin))
                return failure_new(FAILURE_DENIED, "job " JOB_ID_FORMAT " is somebody else's",
                                   JOB_ID_PARTS(id));
        *ret_detached = detached;
        return NULL;
}

static void detached_ask(DetachedWhat what, Session *session, uint32_t serial, uint64_t id) {
        Detached *detached = NULL;
        Failure *failure;

        failure = detached_lookup(session, id, what == DETACHED_ASK_WAIT, &detached);
        if (!failure && what == DETACHED_ASK_DISCARD && detached->state < DETACHED_ENDED)
                failure = failure_new(FAILURE_INVALID, "job " JOB_ID_FORMAT " has not ended",
                                      JOB_ID_PARTS(id));
        if (!failure)
                failure = ask_new(what, session, serial, detached);
        if (failure)
                session_fail_request(session, serial, failure);
        else
                detached_answer(detached);
}

void session_fetch(Session *session, uint32_t serial, uint64_t id) {
        detached_ask(DETACHED_ASK_FETCH, session, serial, id);
}

void session_discard_job(Session *session, uint32_t serial, uint64_t id) {
        detached_ask(DETACHED_ASK_DISCARD, session, serial, id);
}

/* One that was discarded may still be in its user's history. */
bool session_wait_detached(Session *session, uint32_t serial, uint64_t id) {
        const DetachedTable *table = session->clients->supervisor->detached;

        if (!detached_is_id(id) || !table ||
            (table->is_known && !detached_find(session->clients->supervisor, id)))
                return false;
        detached_ask(DETACHED_ASK_WAIT, session, serial, id);
        return true;
}

/* ---- detach ---------------------------------------------------------------- */

static Failure *detach_check_job(const Session *session, const Gpuq__V1__Job *job, JobSpec *spec) {
        Failure *failure;

        if (job->n_after || job->word_arena)
                return failure_new(FAILURE_INVALID,
                                   "a detached job comes after no other, and has no word");
        failure = session_check_job(session, job, spec);
        if (failure)
                return failure;
        for (size_t i = 0; i < spec->n_buffers; ++i)
                if (spec->buffers[i].arena->place != ARENA_HOST)
                        return failure_new(FAILURE_INVALID,
                                           "buffer %zu is device memory, which a detached job "
                                           "cannot take along",
                                           i);
        return NULL;
}

static Failure *detach_check(const Session *session, const Gpuq__V1__Detach *detach,
                             JobSpec *spec) {
        const DetachedTable *table = session->clients->supervisor->detached;

        if (!table || !table->spool)
                return failure_new(FAILURE_NO_DEVICE, "%s",
                                   table ? table->problem : "detached jobs cannot be kept");
        if (!detach->job)
                return failure_new(FAILURE_INVALID, "there is no job to detach");
        if (detach->note.len > DETACHED_NOTE_MAX)
                return failure_new(FAILURE_INVALID, "a note of %zu bytes, at most %u",
                                   detach->note.len, DETACHED_NOTE_MAX);
        if (table->last == UINT32_MAX)
                return failure_new(FAILURE_INTERNAL, "all numbers of detached jobs are used up");
        return detach_check_job(session, detach->job, spec);
}

static Failure *detach_make(Session *session, uint32_t serial, const Gpuq__V1__Detach *detach,
                            const JobSpec *spec) {
        DetachedTable *table = session->clients->supervisor->detached;
        Detached *detached;
        Failure *failure;

        if (detached_new(table, table->last + 1, session->peer.uid, &detached) < 0)
                return failure_new(FAILURE_MEMORY, "no memory for a detached job");
        failure = detached_fill(detached, session, detach, spec);
        if (!failure)
                failure = ask_new(DETACHED_ASK_DETACH, session, serial, detached);
        if (failure) {
                detached_end_it(detached);
                return failure;
        }

        table->last++;
        detached_store(detached);
        return NULL;
}

/* A request that was sent again, because the supervisor died before it had answered. */
static Detached *detach_find(const Session *session, uint64_t key) {
        Detached *detached;

        for (detached = session->clients->supervisor->detached->jobs; key && detached;
             detached = detached->hh.next)
                if (detached->record && detached->record->key == key &&
                    detached->uid == session->peer.uid && detached->state != DETACHED_REMOVING)
                        return detached;
        return NULL;
}

void session_detach(Session *session, uint32_t serial, const Gpuq__V1__Detach *detach) {
        JobSpec spec = {};
        Detached *detached;
        Failure *failure;

        failure = detach_check(session, detach, &spec);
        detached = failure ? NULL : detach_find(session, detach->key);
        if (!failure && !detached)
                failure = detach_make(session, serial, detach, &spec);
        if (detached)
                failure = ask_new(DETACHED_ASK_DETACH, session, serial, detached);
        if (failure)
                session_fail_request(session, serial, failure);
        else if (detached)
                detached_answer(detached);
}
