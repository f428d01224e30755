/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients' requests about detached jobs, and their answers.
 */

#include <stdio.h>
#include <string.h>

#include "detached_state.h"
#include "proto/pack.h"
#include "util/list.h"

/* What a reply to a fetch costs of a turn, the thread's time included, and how many bytes cost one step more. */
#define FETCH_STEPS      64u
#define FETCH_BYTES_STEP 64u

struct DetachedAsk {
        DetachedWhat what;
        Session *session; /* NULL once it is gone while a thread still reads for it */
        uint32_t serial;
        UserCharge charge;
        Detached *detached;
        LIST_ENTRY(DetachedAsk) session_link;  /* session->asks.list */
        LIST_ENTRY(DetachedAsk) detached_link; /* detached->asks */
        DiskCall call;                         /* FETCH: reads the output into its arena */
        Arena *arena;                          /* NULL: no thread reads */
        uint8_t *fetched; /* FETCH: the answer but for the arena's id, packed by the thread */
        size_t n_fetched;
        int r;
        char damage[PAYLOAD_DAMAGE_MAX];
};

_Static_assert((sizeof(DetachedAsk) + 16u) * LIMIT_USER_WAITS <= FOOTPRINT_WAITS,
               "waits take more than gpuqd --check says");

/* ---- asks ------------------------------------------------------------------ */

static Failure *ask_new(DetachedWhat what, Session *session, uint32_t serial, Detached *detached,
                        DetachedAsk **ret_ask) {
        DetachedAsk *ask;

        if (session->asks.n >= LIMIT_WATCHES)
                return failure_new(FAILURE_QUOTA, "%u concurrent waits; the limit is %u",
                                   session->asks.n, LIMIT_WATCHES);
        ask = calloc(1, sizeof(*ask));
        if (!ask)
                return failure_new(FAILURE_MEMORY, "gpuqd has no memory to wait for the job");

        if (user_charge(session->submitter.user, &ask->charge, USER_WAITS, 1) == USER_E_QUOTA) {
                free(ask);
                return user_quota_failure(session->submitter.user, USER_WAITS, 1);
        }

        ask->what = what;
        ask->session = session;
        ask->serial = serial;
        ask->detached = detached;
        LIST_INSERT_HEAD(&session->asks.list, ask, session_link);
        session->asks.n++;
        LIST_INSERT_HEAD(&detached->asks, ask, detached_link);
        *ret_ask = ask;
        return NULL;
}

/* Nobody waits for the answer any longer. */
static void ask_leave_session(DetachedAsk *ask) {
        if (!ask->session)
                return;
        LIST_REMOVE(ask, session_link);
        ask->session->asks.n--;
        ask->session = NULL;
}

static void ask_free(DetachedAsk *ask) {
        ask_leave_session(ask);
        LIST_REMOVE(ask, detached_link);
        arena_unref(ask->arena);
        free(ask->fetched);
        user_uncharge(&ask->charge);
        free(ask);
}

/* Consumes @failure. */
static void ask_fail(DetachedAsk *ask, Failure *failure) {
        session_fail_request(ask->session, ask->serial, failure);
        ask_free(ask);
}

static void session_forget_asks(Session *session) {
        DetachedAsk *ask;

        while ((ask = LIST_FIRST(&session->asks.list))) {
                if (!ask->arena) {
                        ask_free(ask);
                        continue;
                }
                ask_leave_session(ask);
        }
}

/* Requests with a reading thread end when the thread is done. */
void detached_refuse(Detached *detached, DetachedWhat what, Failure *failure) {
        DetachedAsk *ask, *next;

        LIST_FOREACH_SAFE (ask, &detached->asks, detached_link, next)
                if ((what == DETACHED_ASK_ANY || ask->what == what) && !ask->arena)
                        ask_fail(ask, failure_copy(failure));
        failure_free(failure);
}

/* ---- answers --------------------------------------------------------------- */

static void ask_reply(DetachedAsk *ask, Gpuq__V1__Reply *reply) {
        reply->serial = ask->serial;
        session_reply(ask->session, reply, -1);
        ask_free(ask);
}

static void answer_detach(DetachedAsk *ask) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Detached detached = GPUQ__V1__DETACHED__INIT;

        detached.id = detached_id(ask->detached);
        reply.body_case = GPUQ__V1__REPLY__BODY_DETACHED;
        reply.detached = &detached;
        ask_reply(ask, &reply);
}

static void answer_discard(DetachedAsk *ask) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Discarded discarded = GPUQ__V1__DISCARDED__INIT;

        reply.body_case = GPUQ__V1__REPLY__BODY_DISCARDED;
        reply.discarded = &discarded;
        ask_reply(ask, &reply);
}

static Failure *damage_failure(const Detached *detached, const char *damage) {
        return failure_new(FAILURE_INTERNAL,
                           "job " JOB_ID_FORMAT
                           " was set aside because its files are damaged: %s; submit it again",
                           JOB_ID_PARTS(detached_id(detached)), damage);
}

static void answer_wait(DetachedAsk *ask) {
        const Detached *detached = ask->detached;
        Gpuq__V1__Completion damaged = GPUQ__V1__COMPLETION__INIT, *completion = &damaged;
        _cleanup_(failure_freep) Failure *failure = damage_failure(detached, detached->damage);
        Gpuq__V1__Error error = failure_to_proto(failure);

        damaged.id = detached_id(detached);
        damaged.state = GPUQ__V1__STATE__FAILED;
        damaged.error = &error;
        if (detached->state == DETACHED_ENDED)
                completion = detached->stored.end->completion;
        session_send_completions(ask->session, ask->serial, &completion, 1);
        ask_free(ask);
}

/* ---- fetch ----------------------------------------------------------------- */

/* Of each extent's bytes in the output file. */
static void fetch_positions(const StoredJob *stored, uint64_t *positions) {
        uint64_t position = 0;

        for (size_t i = 0; i < stored->n_extents; ++i) {
                positions[i] = position;
                position += stored->extents[i].written ? stored->extents[i].length : 0;
        }
}

/* @positions: memory for one of each extent. */
static size_t fetch_list(const Detached *detached, uint64_t *positions, Gpuq__V1__Output *outputs,
                         Gpuq__V1__Output **list) {
        const StoredJob *stored = &detached->stored;
        const Gpuq__V1__Job *job = detached_job(detached);
        size_t n = 0;

        fetch_positions(stored, positions);
        for (size_t i = 0; i < job->n_buffers; ++i) {
                const Gpuq__V1__Buffer *buffer = job->buffers[i];
                const Extent *extent;

                if (buffer->direction == GPUQ__V1__DIRECTION__IN)
                        continue;
                extent = extents_find(stored->extents, stored->n_extents, buffer);
                gpuq__v1__output__init(&outputs[n]);
                outputs[n].offset =
                        positions[extent - stored->extents] + (buffer->offset - extent->offset);
                outputs[n].length = buffer->length;
                list[n] = &outputs[n];
                n++;
        }
        return n;
}

/* May run in a thread: with thousands of outputs it takes a millisecond. Return: 0, or -ENOMEM. */
static int fetch_pack(DetachedAsk *ask) {
        const Detached *detached = ask->detached;
        size_t n_buffers = detached_job(detached)->n_buffers;
        _cleanup_(freep) Gpuq__V1__Output *outputs = calloc(n_buffers + 1, sizeof(*outputs));
        _cleanup_(freep) Gpuq__V1__Output **list = calloc(n_buffers + 1, sizeof(*list));
        _cleanup_(freep) uint64_t *positions =
                calloc(detached->stored.n_extents + 1, sizeof(*positions));
        Gpuq__V1__Fetched fetched = GPUQ__V1__FETCHED__INIT;

        if (!outputs || !list || !positions)
                return -ENOMEM;
        fetched.completion = detached->stored.end->completion;
        fetched.note = detached->stored.record->detach->note;
        if (ask->arena) {
                fetched.size = ask->arena->size;
                fetched.n_outputs = fetch_list(detached, positions, outputs, list);
                fetched.outputs = list;
        }

        ask->n_fetched = gpuq__v1__fetched__get_packed_size(&fetched);
        ask->fetched = malloc(ask->n_fetched + 1);
        if (!ask->fetched)
                return -ENOMEM;
        gpuq__v1__fetched__pack(&fetched, ask->fetched);
        return 0;
}

static Failure *fetch_open_arena(DetachedAsk *ask) {
        Failure *failure;
        int r;

        if (!ask->arena)
                return NULL;
        failure = session_check_room(ask->session);
        if (failure)
                return failure;
        r = session_open_arena(ask->session, ask->arena);
        if (r)
                return session_opening_failure(ask->session, r);
        session_name_arena(ask->session, ask->arena);
        return NULL;
}

static void fetch_send(DetachedAsk *ask) {
        size_t n_max = PACK_FIELD_BYTES + PACK_PREFIX_BYTES + ask->n_fetched + PACK_FIELD_BYTES;
        uint8_t *payload, *begin, *p;

        if (!session_reply_begin(ask->session, ask->serial, ask->arena ? ask->arena->fd : -1, n_max,
                                 &payload))
                return;
        p = pack_number(payload, 1, ask->serial);
        begin = p = pack_begin(p, GPUQ__V1__REPLY__BODY_FETCHED);
        memcpy(p, ask->fetched, ask->n_fetched);
        p += ask->n_fetched;
        if (ask->arena)
                p = pack_number(p, 3, ask->arena->id);
        pack_end(begin, p);
        session_reply_end(ask->session, (size_t)(p - payload));
}

static void answer_fetched(DetachedAsk *ask) {
        Failure *failure;

        serving_pay(&ask->session->serving, FETCH_STEPS + ask->n_fetched / FETCH_BYTES_STEP);
        failure = fetch_open_arena(ask);
        if (failure)
                session_fail_request(ask->session, ask->serial, failure);
        else
                fetch_send(ask);
}

static void fetch_in_thread(void *userdata) {
        DetachedAsk *ask = userdata;
        PayloadPart part = {ask->arena->fd, 0, ask->arena->size};

        ask->r = store_load(ask->detached->table->store, &ask->detached->stored, true, &part, 1,
                            ask->damage);
        if (ask->r == 0)
                ask->r = fetch_pack(ask);
}

static void fetch_reply(DetachedAsk *ask) {
        if (ask->r == 0)
                answer_fetched(ask);
        else
                session_fail_request(ask->session, ask->serial,
                                     ask->r == STORE_E_DAMAGED
                                             ? damage_failure(ask->detached, ask->damage)
                                             : failure_new(FAILURE_MEMORY,
                                                           "cannot read the outputs: %s",
                                                           strerror(-ask->r)));
}

static void fetch_on_done(void *userdata) {
        DetachedAsk *ask = userdata;
        Detached *detached = ask->detached;

        detached->n_readers--;
        if (ask->r == STORE_E_DAMAGED && detached->state == DETACHED_ENDED)
                detached_damaged(detached, ask->damage);
        if (ask->session)
                fetch_reply(ask);
        ask_free(ask);
        detached_answer(detached); /* the requests that waited until this read ended */
}

static void fetch_begin(DetachedAsk *ask) {
        Detached *detached = ask->detached;
        const StoredJob *stored = &detached->stored;
        User *user = detached->owner->user;
        uint64_t n_bytes = 0;
        int r;

        for (size_t i = 0; i < stored->n_extents; ++i)
                n_bytes += stored->extents[i].written ? stored->extents[i].length : 0;
        if (stored->end->completion->state != GPUQ__V1__STATE__DONE || n_bytes == 0) {
                ask->r = fetch_pack(ask);
                fetch_reply(ask);
                ask_free(ask);
                return;
        }
        r = arena_new(detached->table->engine, user, ARENA_HOST, n_bytes, &ask->arena);
        if (r) {
                ask_fail(ask, r == ARENA_E_QUOTA
                                      ? arena_quota_failure(user, ARENA_HOST, n_bytes)
                                      : failure_new(FAILURE_MEMORY,
                                                    "cannot create an arena for the outputs: %s",
                                                    strerror(-r)));
                return;
        }
        detached->n_readers++;
        ask->call = (DiskCall){.run = fetch_in_thread, .done = fetch_on_done, .userdata = ask};
        disk_call(detached->table->disk, &detached->owner->line->disk, &ask->call);
}

/* ---- when they are due --------------------------------------------------------- */

static void answer_ended(DetachedAsk *ask) {
        if (ask->what == DETACHED_ASK_DETACH)
                answer_detach(ask);
        else if (ask->what == DETACHED_ASK_WAIT)
                answer_wait(ask);
        else if (ask->what == DETACHED_ASK_FETCH)
                fetch_begin(ask);
}

static void answer_damaged(DetachedAsk *ask) {
        if (ask->what == DETACHED_ASK_WAIT)
                answer_wait(ask);
        else
                ask_fail(ask, damage_failure(ask->detached, ask->detached->damage));
}

static void answer_one(DetachedAsk *ask) {
        if (ask->arena) /* a thread reads for it */
                return;
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
                case DETACHED_ENDED:
                        answer_ended(ask);
                        break;
                default:
                        if (ask->what == DETACHED_ASK_DETACH)
                                answer_detach(ask);
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

/* A new one. The others were answered if they could be, and thousands may wait. */
static void answer_new(DetachedAsk *ask) {
        Detached *detached = ask->detached;

        answer_one(ask);
        if (detached_is_unwanted(detached))
                detached_remove(detached);
}

/* ---- requests -------------------------------------------------------------- */

static Failure *ops_check_id(const DetachedTable *table, uint64_t id) {
        if (!detached_is_id(id) || table->is_known)
                return NULL;
        return failure_new(FAILURE_NO_DEVICE, "%s", table->problem);
}

static Failure *ask_look_up(const DetachedTable *table, const Session *session, uint64_t id,
                            bool admin_may, Detached **ret_detached) {
        Detached *detached = detached_find(table, id);
        Failure *failure;

        failure = ops_check_id(table, id);
        if (failure)
                return failure;
        if (!detached || detached->state == DETACHED_STORING ||
            detached->state == DETACHED_REMOVING)
                return failure_new(FAILURE_NOT_FOUND, "no detached job " JOB_ID_FORMAT,
                                   JOB_ID_PARTS(id));
        if (detached->stored.uid != session->peer.uid && !(admin_may && session->peer.is_admin))
                return failure_new(FAILURE_DENIED, "job " JOB_ID_FORMAT " belongs to another user",
                                   JOB_ID_PARTS(id));
        *ret_detached = detached;
        return NULL;
}

static void ask_for(const DetachedTable *table, DetachedWhat what, Session *session,
                    uint32_t serial, uint64_t id) {
        Detached *detached = NULL;
        DetachedAsk *ask = NULL;
        Failure *failure;

        failure = ask_look_up(table, session, id, what == DETACHED_ASK_WAIT, &detached);
        if (!failure && what == DETACHED_ASK_DISCARD && detached->state < DETACHED_ENDED)
                failure = failure_new(FAILURE_INVALID, "job " JOB_ID_FORMAT " has not ended yet",
                                      JOB_ID_PARTS(id));
        if (!failure)
                failure = ask_new(what, session, serial, detached, &ask);
        if (failure)
                session_fail_request(session, serial, failure);
        else
                answer_new(ask);
}

static void ops_fetch(DetachedTable *table, Session *session, uint32_t serial, uint64_t id) {
        ask_for(table, DETACHED_ASK_FETCH, session, serial, id);
}

static void ops_discard(DetachedTable *table, Session *session, uint32_t serial, uint64_t id) {
        ask_for(table, DETACHED_ASK_DISCARD, session, serial, id);
}

/* A discarded job may still be in its user's history. */
static bool ops_wait(DetachedTable *table, Session *session, uint32_t serial, uint64_t id) {
        if (!detached_is_id(id) || (table->is_known && !detached_find(table, id)))
                return false;
        ask_for(table, DETACHED_ASK_WAIT, session, serial, id);
        return true;
}

static DetachedCancel ops_cancel(DetachedTable *table, const Session *session, uint64_t id) {
        Detached *detached = detached_find(table, id);

        if (!detached)
                return DETACHED_CANCEL_NONE;
        if (!session->peer.is_admin && detached->stored.uid != session->peer.uid)
                return DETACHED_CANCEL_DENIED;
        return detached_cancel(detached, session->submitter.user) ? DETACHED_CANCEL_DONE
                                                                  : DETACHED_CANCEL_LATE;
}

/* ---- listings -------------------------------------------------------------- */

/* NULL: the job does not wait outside of the queues. */
static const char *entry_reason(const Detached *detached) {
        if (detached->state < DETACHED_QUEUED || detached->state > DETACHED_ENDING ||
            detached->state == DETACHED_SUBMITTED)
                return NULL;
        if (*detached->reason)
                return detached->reason;
        switch (detached->state) {
                case DETACHED_LINKING:
                        return "its modules are being loaded";
                case DETACHED_LOADING:
                        return "its input is being read from disk";
                case DETACHED_ENDING:
                        return detached->stored.end
                                       ? "it has ended; its result is being written to disk"
                                       : "it runs again because it may be half written";
                default:
                        return "on disk, queued behind other detached jobs";
        }
}

static void ops_visit(const DetachedTable *table, DetachedVisit visit, void *userdata) {
        const Detached *detached, *next;

        for (detached = table->jobs; detached; detached = next) {
                next = detached->hh.next;
                if (!detached->owner || detached->state == DETACHED_DAMAGED)
                        continue;
                visit(&(DetachedEntry){.id = detached_id(detached),
                                       .user = detached->owner->user,
                                       .job = detached_job(detached),
                                       .made_s = detached->stored.record->made_s,
                                       .slurm_job = detached->stored.record->slurm_job,
                                       .reason = entry_reason(detached)},
                      userdata);
        }
}

static size_t ops_count(const DetachedTable *table) {
        return HASH_COUNT(table->jobs);
}

static bool ops_is_writing(const DetachedTable *table) {
        const Detached *detached;

        for (detached = table->jobs; detached; detached = detached->hh.next)
                if (detached_is_ending(detached))
                        return true;
        return false;
}

/* ---- detach ---------------------------------------------------------------- */

static Failure *detach_check_job(const Session *session, const Gpuq__V1__Job *job, JobSpec *spec) {
        Failure *failure;

        if (job->n_after || job->word_arena)
                return failure_new(FAILURE_INVALID,
                                   "a detached job cannot have dependencies or a completion word");
        failure = submit_check_job(&session->submitter, job, spec);
        if (failure)
                return failure;
        for (size_t i = 0; i < spec->n_buffers; ++i) {
                if (spec->buffers[i].arena->place != ARENA_HOST)
                        return failure_new(FAILURE_INVALID,
                                           "buffer %zu is device memory; a detached job can use "
                                           "host memory only",
                                           i + 1);
                /* Packed beside others it would take their place: see extent.h. */
                if (!spec->buffers[i].length)
                        return failure_new(FAILURE_INVALID,
                                           "buffer %zu is empty; the buffers of a detached job "
                                           "have at least one byte",
                                           i + 1);
        }
        return NULL;
}

static Failure *detach_check(const DetachedTable *table, const Session *session,
                             const Gpuq__V1__Detach *detach, JobSpec *spec) {
        if (!table->store)
                return failure_new(FAILURE_NO_DEVICE, "%s", table->problem);
        if (!detach->job)
                return failure_new(FAILURE_INVALID, "the request has no job to detach");
        if (detach->note.len > DETACHED_NOTE_MAX)
                return failure_new(FAILURE_INVALID, "the note has %zu bytes; the limit is %u",
                                   detach->note.len, DETACHED_NOTE_MAX);
        if (table->last == UINT32_MAX)
                return failure_new(FAILURE_INTERNAL,
                                   "there are no job numbers left for detached jobs");
        return detach_check_job(session, detach->job, spec);
}

static Failure *detach_make(DetachedTable *table, Session *session, uint32_t serial,
                            const Gpuq__V1__Detach *detach) {
        JobSpec spec = {};
        DetachedAsk *ask;
        Detached *detached;
        Failure *failure;

        failure = detach_check(table, session, detach, &spec);
        if (failure)
                return failure;
        if (detached_make(table, table->last + 1, session->peer.uid, &detached) < 0)
                return failure_new(FAILURE_MEMORY, "gpuqd has no memory for a detached job");
        failure = detached_fill(detached, session, detach, &spec);
        if (!failure)
                failure = ask_new(DETACHED_ASK_DETACH, session, serial, detached, &ask);
        if (failure) {
                detached_destroy(detached);
                return failure;
        }

        table->last++;
        detached_store(detached);
        return NULL;
}

/* The client resent the request, because the supervisor died before the answer. What is stored is not
 * checked again: the user may have come to a limit since. */
static Detached *detach_find(const DetachedTable *table, const Session *session, uint64_t key) {
        Detached *detached = key ? detached_find_key(table, session->peer.uid, key) : NULL;

        return detached && detached->state != DETACHED_REMOVING ? detached : NULL;
}

static void ops_detach(DetachedTable *table, Session *session, uint32_t serial,
                       const Gpuq__V1__Detach *detach) {
        Detached *detached = table->store ? detach_find(table, session, detach->key) : NULL;
        DetachedAsk *ask;
        Failure *failure;

        failure = detached ? ask_new(DETACHED_ASK_DETACH, session, serial, detached, &ask)
                           : detach_make(table, session, serial, detach);
        if (failure)
                session_fail_request(session, serial, failure);
        else if (detached)
                answer_new(ask);
}

const DetachedOps detached_ops = {
        .detach = ops_detach,
        .fetch = ops_fetch,
        .discard = ops_discard,
        .wait = ops_wait,
        .cancel = ops_cancel,
        .check_id = ops_check_id,
        .visit = ops_visit,
        .count = ops_count,
        .is_writing = ops_is_writing,
        .forget = session_forget_asks,
};
