/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client requests: each is decoded, checked, and carried out or answered with an error. One function
 * per request, which reads as check, act, reply.
 */

#include "request.h"

#include <stdio.h>
#include <string.h>

#include "util/activity.h"
#include "util/bump.h"
#include "accounting_ops.h"
#include "detached_ops.h"
#include "jobs.h"
#include "known.h"
#include "listing.h"
#include "util/list.h"
#include "base.h"
#include "registry.h"
#include "session.h"
#include "snapshot.h"
#include "submit_scan.h"
#include "util/log.h"
#include "proto/count.h"
#include "proto/text.h"

#define REQUEST_BYTES_STEP 1024u /* bytes of a message that cost one step of a turn */
#define REQUEST_PARTS_STEP 16u   /* parts of a message that cost one step, to unpack them */
/* A larger message pays for the time that it took, if that is more: what a job with thousands of buffers
 * costs depends on all earlier ones. Asking for the time takes 0.5 us. */
#define REQUEST_TIMED_BYTES 2048u

typedef struct RequestEntry {
        const char *(*handle)(Session *session, uint32_t serial, const Gpuq__V1__Request *request);
        size_t n_steps; /* of a turn; 0: as little as any */
} RequestEntry;

/* ---- hello ----------------------------------------------------------------- */

static void session_welcome(Session *session, uint32_t serial) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Welcome welcome = GPUQ__V1__WELCOME__INIT;

        welcome.version = SESSION_VERSION_MAX;
        welcome.daemon = (char *)GPUQ_VERSION;
        welcome.session = session->submitter.id;
        welcome.uid = session->peer.uid;
        welcome.n_devices = (uint32_t)session->engine->n_devices;
        welcome.resumed = session->is_resuming;
        welcome.poll_us = session->engine->config->poll_us;
        welcome.rings = session_can_ring(session);
        welcome.direct = lending_can(session);
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_WELCOME;
        reply.welcome = &welcome;
        session_reply(session, &reply, -1);
}

/* The next supervisor can then tell the client's identity. */
static void session_record(Session *session) {
        LedgerSession record = {
                .id = session->submitter.id,
                .uid = (uint32_t)session->peer.uid,
                .gid = (uint32_t)session->peer.gid,
                .pid = (int32_t)session->peer.pid,
                .start = process_age_start(session->peer.pid),
        };

        snprintf(record.client, sizeof(record.client), "%s", session->client);
        session->record = ledger_add(session->engine->ledger, LEDGER_SESSION, &record);
}

static const char *session_on_hello(Session *session, uint32_t serial,
                                    const Gpuq__V1__Request *request) {
        const Gpuq__V1__Hello *hello = request->hello;
        Failure *failure;

        if (session->state != SESSION_HELLO)
                return "the client sent a second handshake";
        if (!text_is_clean(hello->client, SESSION_CLIENT_MAX))
                return "the client sent a client name that is too long or not printable";
        if (hello->version_min > hello->version_max || hello->version_max < SESSION_VERSION_MIN ||
            hello->version_min > SESSION_VERSION_MAX) {
                session_refuse(
                        session,
                        failure_new(FAILURE_VERSION,
                                    "the client speaks protocol versions %u to %u, but gpuqd "
                                    "speaks %u to %u: install the same version of both",
                                    hello->version_min, hello->version_max, SESSION_VERSION_MIN,
                                    SESSION_VERSION_MAX));
                return NULL;
        }

        snprintf(session->client, sizeof(session->client), "%s", hello->client);
        failure = hello->resume ? session->clients->resume_ops->claim(session->clients->takeover,
                                                                      session, hello->resume)
                                : NULL;
        if (failure) {
                session_refuse(session, failure);
                return NULL;
        }
        session->submitter.waits_for_device = hello->waits_for_device;
        if (!hello->resume)
                session_record(session);
        session->state = SESSION_OPEN;
        wire_set_frame_max(session->wire, WIRE_FRAME_MAX);
        session_welcome(session, serial);
        return NULL;
}

/* ---- jobs ------------------------------------------------------------------ */

static const char *session_on_submit(Session *session, uint32_t serial,
                                     const Gpuq__V1__Request *request) {
        return session_submit(session, request->submit);
}

/* An administrator may ask about any job; its id does not tell the user. */
const HistoryEntry *session_find_history(const Session *session, uint64_t id,
                                         const User **ret_user) {
        const User *user = session->submitter.user;
        const HistoryEntry *entry = history_find(user->history, id);

        if (!entry && session->peer.is_admin)
                for (user = session->engine->users; user; user = user->hh.next) {
                        entry = history_find(user->history, id);
                        if (entry)
                                break;
                }
        if (entry)
                *ret_user = user;
        return entry;
}

/* Done by a lease of a session of this user. */
static bool session_was_leased(const Session *session, uint64_t id) {
        const User *user;

        if (history_was_leased(session->submitter.user->history, id))
                return true;
        if (session->peer.is_admin)
                for (user = session->engine->users; user; user = user->hh.next)
                        if (history_was_leased(user->history, id))
                                return true;
        return false;
}

static Failure *session_wait(Session *session, uint32_t serial, uint64_t id) {
        const Clients *clients = session->clients;
        Job *job = job_find(session->engine, id);
        const HistoryEntry *entry;
        const User *user;
        int r;

        if (clients->detached_ops->wait(clients->detached, session, serial, id))
                return NULL;
        if (!job) {
                entry = session_find_history(session, id, &user);
                if (!entry && !session_was_leased(session, id))
                        return failure_new(FAILURE_NOT_FOUND, "no job " JOB_ID_FORMAT,
                                           JOB_ID_PARTS(id));
                session_report_history(session, serial,
                                       entry ? entry
                                             : &(HistoryEntry){.id = id, .state = JOB_DONE});
                return NULL;
        }
        if (!session_may_touch(session, job))
                return failure_new(FAILURE_DENIED, "job " JOB_ID_FORMAT " belongs to another user",
                                   JOB_ID_PARTS(id));
        if (session->watches.n >= LIMIT_WATCHES)
                return failure_new(FAILURE_QUOTA, "%u concurrent waits; the limit is %u",
                                   session->watches.n, LIMIT_WATCHES);
        r = session_watch(session, job, serial);
        if (r == USER_E_QUOTA)
                return user_quota_failure(session->submitter.user, USER_WAITS, 1);
        if (r < 0)
                return failure_new(FAILURE_MEMORY, "gpuqd has no memory to wait for the job");
        return NULL;
}

static const char *session_on_prepare(Session *session, uint32_t serial,
                                      const Gpuq__V1__Request *request) {
        if (request->prepare->job)
                session_prepare(session, serial, request->prepare);
        else
                session_fail_request(
                        session, serial,
                        failure_new(FAILURE_INVALID, "the request has no job to prepare"));
        return NULL;
}

static const char *session_on_unprepare(Session *session, uint32_t serial,
                                        const Gpuq__V1__Request *request) {
        session_unprepare(session, request->unprepare->prepared);
        return NULL;
}

static const char *session_on_fires(Session *session, uint32_t serial,
                                    const Gpuq__V1__Request *request) {
        const char *problem = session_fire(session, request->fires);

        if (!problem && session->ring.direct)
                lending_note_fires(session, request->fires);
        return problem;
}

static const char *session_on_wait(Session *session, uint32_t serial,
                                   const Gpuq__V1__Request *request) {
        Failure *failure = session_wait(session, serial, request->wait->id);

        if (failure)
                session_fail_request(session, serial, failure);
        return NULL;
}

static const char *session_on_ring_open(Session *session, uint32_t serial,
                                        const Gpuq__V1__Request *request) {
        session_open_ring(session, serial);
        return NULL;
}

static const char *session_on_ring_begin(Session *session, uint32_t serial,
                                         const Gpuq__V1__Request *request) {
        return session_begin_ring(session, serial);
}

static const char *session_on_direct_open(Session *session, uint32_t serial,
                                          const Gpuq__V1__Request *request) {
        lending_open(session, serial);
        return NULL;
}

static const char *session_on_direct_begin(Session *session, uint32_t serial,
                                           const Gpuq__V1__Request *request) {
        return lending_begin(session);
}

static const char *session_on_direct_end(Session *session, uint32_t serial,
                                         const Gpuq__V1__Request *request) {
        return lending_end(session);
}

/* ---- drain ----------------------------------------------------------------- */

/* Return: NULL: the request was answered with an error. */
static Device *session_device_to_drain(Session *session, uint32_t serial, uint32_t index) {
        Engine *engine = session->engine;
        Failure *failure = NULL;

        if (!session->peer.is_admin)
                failure = failure_new(FAILURE_DENIED,
                                      "only root and the admin group may drain and resume devices");
        else if (!engine->n_devices)
                failure = engine_lack(engine);
        else if (index >= engine->n_devices)
                failure = engine_no_device(engine, index);
        if (!failure)
                return &engine->devices[index];
        session_fail_request(session, serial, failure);
        return NULL;
}

static void session_reply_drained(Session *session, uint32_t serial, const Device *device,
                                  bool changed) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Drained drained = GPUQ__V1__DRAINED__INIT;

        drained.changed = changed;
        drained.running = device->n_running;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_DRAINED;
        reply.drained = &drained;
        session->flush.position = keeper_link_position(session->engine->keeper);
        session_reply(session, &reply, -1);
}

static const char *session_on_drain(Session *session, uint32_t serial,
                                    const Gpuq__V1__Request *request) {
        const char *reason = request->drain->reason;
        Device *device = session_device_to_drain(session, serial, request->drain->device);

        if (!device)
                return NULL;
        if (!text_is_clean(reason, LIMIT_DRAIN_REASON)) {
                session_fail_request(session, serial,
                                     failure_new(FAILURE_INVALID,
                                                 "the reason must have at most %u printable bytes",
                                                 LIMIT_DRAIN_REASON));
                return NULL;
        }
        session_reply_drained(
                session, serial, device,
                session->engine->device_ops->drain(device, session->submitter.user->name, reason));
        return NULL;
}

static const char *session_on_resume(Session *session, uint32_t serial,
                                     const Gpuq__V1__Request *request) {
        Device *device = session_device_to_drain(session, serial, request->resume->device);

        if (device)
                session_reply_drained(session, serial, device,
                                      session->engine->device_ops->undrain(device));
        return NULL;
}

/* ---- detached jobs --------------------------------------------------------- */

static const char *session_on_detach(Session *session, uint32_t serial,
                                     const Gpuq__V1__Request *request) {
        const Clients *clients = session->clients;

        clients->detached_ops->detach(clients->detached, session, serial, request->detach);
        return NULL;
}

static const char *session_on_fetch(Session *session, uint32_t serial,
                                    const Gpuq__V1__Request *request) {
        const Clients *clients = session->clients;

        clients->detached_ops->fetch(clients->detached, session, serial, request->fetch->id);
        return NULL;
}

static const char *session_on_discard(Session *session, uint32_t serial,
                                      const Gpuq__V1__Request *request) {
        const Clients *clients = session->clients;

        clients->detached_ops->discard(clients->detached, session, serial, request->discard->id);
        return NULL;
}

/* ---- history --------------------------------------------------------------- */

static const char *session_on_history_get(Session *session, uint32_t serial,
                                          const Gpuq__V1__Request *request) {
        const Clients *clients = session->clients;

        clients->accounting_ops->history(clients->accounting, session, serial,
                                         request->history_get);
        return NULL;
}

static const char *session_on_report_get(Session *session, uint32_t serial,
                                         const Gpuq__V1__Request *request) {
        const Clients *clients = session->clients;

        clients->accounting_ops->report(clients->accounting, session, serial, request->report_get);
        return NULL;
}

/* ---- taking over ----------------------------------------------------------- */

static const char *session_on_resumed(Session *session, uint32_t serial,
                                      const Gpuq__V1__Request *request) {
        if (!session->is_resuming)
                return "the client resumed a session that was not interrupted";
        session->clients->resume_ops->resumed(session->clients->takeover, session,
                                              request->resumed->seen);
        session_flush_later(session);
        return NULL;
}

/* ---- what there is --------------------------------------------------------- */

static const char *session_on_queue_get(Session *session, uint32_t serial,
                                        const Gpuq__V1__Request *request) {
        const Gpuq__V1__QueueGet *get = request->queue_get;

        if (get->next)
                listing_continue(session, serial, get->next);
        else
                snapshot_ask_queue(session, serial, get);
        return NULL;
}

static const char *session_on_status_get(Session *session, uint32_t serial,
                                         const Gpuq__V1__Request *request) {
        snapshot_ask_status(session, serial);
        return NULL;
}

/* ---- what is yet to be said ------------------------------------------------ */

/* Its user has had all of a turn, so its jobs come later than those of others. */
static bool session_is_served_later(const Session *session) {
        return session->unfinished.n_served || session->serving.is_waiting;
}

/* Whether another process of the user may already have submitted this job on a connection that was
 * not read yet. */
static bool session_is_ahead(const Session *session, uint64_t id) {
        uint32_t number = (uint32_t)(id >> 32);
        const Clients *clients = session->clients;
        Session *other = session_find(clients, number);

        if (other && other != session && (uint32_t)id > other->last_tag &&
            (other->submitter.user == session->submitter.user || session->peer.is_admin) &&
            lending_fetch(other))
                return true;
        if (clients->resume_ops->is_ahead(clients->takeover, session->submitter.user, id))
                return !other || (other != session && (uint32_t)id > other->last_tag);
        return other && other != session && other->submitter.user == session->submitter.user &&
               (uint32_t)id > other->last_tag &&
               (!session->deferred.is_second_try || session_is_served_later(other));
}

static bool session_any_is_ahead(const Session *session, const uint64_t *ids, size_t n_ids) {
        for (size_t i = 0; i < n_ids; ++i)
                if (session_is_ahead(session, ids[i]))
                        return true;
        return false;
}

/* Jobs that this request may cancel are known when the rings of their sessions are back. */
static bool session_fetches_all(const Session *session, const Gpuq__V1__Cancel *cancel) {
        bool any = false;
        Session *other, *next;

        if (!cancel->all && !cancel->slurm_job)
                return false;
        HASH_ITER (hh, session->clients->sessions, other, next)
                if (other != session && (other->submitter.user == session->submitter.user ||
                                         (cancel->slurm_job && session->peer.is_admin)))
                        any |= lending_fetch(other);
        return any;
}

static bool session_names_what_is_ahead(const Session *session, const Gpuq__V1__Request *request) {
        if (request->body_case == GPUQ__V1__REQUEST__BODY_WAIT)
                return session_is_ahead(session, request->wait->id);
        if (request->body_case == GPUQ__V1__REQUEST__BODY_CANCEL)
                return session_fetches_all(session, request->cancel) ||
                       session_any_is_ahead(session, request->cancel->ids, request->cancel->n_ids);
        if (request->body_case != GPUQ__V1__REQUEST__BODY_SUBMIT)
                return false;
        for (size_t i = 0; i < request->submit->n_jobs; ++i)
                if (session_any_is_ahead(session, request->submit->jobs[i]->after,
                                         request->submit->jobs[i]->n_after))
                        return true;
        return false;
}

/* Before devices are known, new objects would be mistaken for objects that are taken over. */
static bool session_has_to_wait(const Session *session, const Gpuq__V1__Request *request) {
        return !session->clients->resume_ops->serves(session->clients->takeover) &&
               session->state == SESSION_OPEN &&
               request->body_case != GPUQ__V1__REQUEST__BODY_STATUS_GET;
}

/* About a microsecond each. Jobs pay for themselves. */
static size_t request_steps(const Gpuq__V1__Request *request, size_t n_data) {
        size_t n_steps = 1 + n_data / REQUEST_BYTES_STEP;

        if (request->body_case == GPUQ__V1__REQUEST__BODY_CANCEL)
                n_steps += request->cancel->n_ids;
        return n_steps;
}

static void session_pay(Session *session, size_t n_steps) {
        serving_pay(&session->serving, n_steps);
}

static const char *session_dispatch(Session *session, const Gpuq__V1__Request *request) {
        static const RequestEntry entries[] = {
                [GPUQ__V1__REQUEST__BODY_HELLO] = {session_on_hello, 64},
                [GPUQ__V1__REQUEST__BODY_ARENA_CREATE] = {session_on_arena_create, 32},
                [GPUQ__V1__REQUEST__BODY_ARENA_OPEN] = {session_on_arena_open, 8},
                [GPUQ__V1__REQUEST__BODY_ARENA_CLOSE] = {session_on_arena_close, 8},
                [GPUQ__V1__REQUEST__BODY_MODULE_LOAD] = {session_on_module_load, 16},
                [GPUQ__V1__REQUEST__BODY_MODULE_UNLOAD] = {session_on_module_unload, 4},
                [GPUQ__V1__REQUEST__BODY_SUBMIT] = {session_on_submit},
                [GPUQ__V1__REQUEST__BODY_WAIT] = {session_on_wait},
                [GPUQ__V1__REQUEST__BODY_CANCEL] = {session_on_cancel},
                [GPUQ__V1__REQUEST__BODY_QUEUE_GET] = {session_on_queue_get, 4},
                [GPUQ__V1__REQUEST__BODY_STATUS_GET] = {session_on_status_get, 4},
                [GPUQ__V1__REQUEST__BODY_PREPARE] = {session_on_prepare, 4},
                [GPUQ__V1__REQUEST__BODY_UNPREPARE] = {session_on_unprepare},
                [GPUQ__V1__REQUEST__BODY_FIRES] = {session_on_fires},
                [GPUQ__V1__REQUEST__BODY_DRAIN] = {session_on_drain},
                [GPUQ__V1__REQUEST__BODY_RESUME] = {session_on_resume},
                [GPUQ__V1__REQUEST__BODY_DETACH] = {session_on_detach, 64},
                [GPUQ__V1__REQUEST__BODY_FETCH] = {session_on_fetch, 8},
                [GPUQ__V1__REQUEST__BODY_DISCARD] = {session_on_discard, 16},
                [GPUQ__V1__REQUEST__BODY_RING_OPEN] = {session_on_ring_open, 32},
                [GPUQ__V1__REQUEST__BODY_RING_BEGIN] = {session_on_ring_begin},
                [GPUQ__V1__REQUEST__BODY_RESUMED] = {session_on_resumed},
                [GPUQ__V1__REQUEST__BODY_HISTORY_GET] = {session_on_history_get, 16},
                [GPUQ__V1__REQUEST__BODY_REPORT_GET] = {session_on_report_get, 16},
                [GPUQ__V1__REQUEST__BODY_EXPLAIN_GET] = {session_on_explain_get},
                [GPUQ__V1__REQUEST__BODY_TRACE_GET] = {session_on_trace_get, 16},
                [GPUQ__V1__REQUEST__BODY_DIRECT_OPEN] = {session_on_direct_open, 32},
                [GPUQ__V1__REQUEST__BODY_DIRECT_BEGIN] = {session_on_direct_begin},
                [GPUQ__V1__REQUEST__BODY_DIRECT_END] = {session_on_direct_end},
        };
        size_t body = request->body_case;
        const char *problem;

        if (body >= ARRAY_SIZE(entries) || !entries[body].handle)
                return "the client sent an unknown request";
        if (session->state == SESSION_HELLO && body != GPUQ__V1__REQUEST__BODY_HELLO)
                return "the client sent a message before the handshake";
        if (body != GPUQ__V1__REQUEST__BODY_DIRECT_BEGIN &&
            body != GPUQ__V1__REQUEST__BODY_DIRECT_END && session->ring.direct) {
                problem = lending_note_request(session, body == GPUQ__V1__REQUEST__BODY_FIRES);
                if (problem)
                        return problem;
        }
        session_pay(session, entries[body].n_steps);
        return entries[body].handle(session, request->serial, request);
}

/* The scan knows every field that it accepts. Return: NULL, or the protocol error. */
static const char *session_unpack(Session *session, const uint8_t *data, size_t n_data,
                                  Gpuq__V1__Request **ret_request) {
        Bump *bump = session->clients->bump;
        size_t n_parts;

        *ret_request = submit_scan(bump, data, n_data);
        if (*ret_request)
                return NULL;
        n_parts = count_parts(&gpuq__v1__request__descriptor, data, n_data, LIMIT_REQUEST_PARTS);
        session_pay(session, n_parts / REQUEST_PARTS_STEP);
        if (n_parts > LIMIT_REQUEST_PARTS)
                return "the client sent a message of too many parts";

        *ret_request = gpuq__v1__request__unpack(bump_allocator(bump), n_data, data);
        if (!*ret_request)
                return "the client sent a message that is not protobuf";
        known_only(&(*ret_request)->base);
        return NULL;
}

/* Each part of it decodes the whole message, whatever its session has left of the turn. */
static bool request_is_long(const Gpuq__V1__Request *request, size_t n_data) {
        size_t n_jobs = 0;

        if (request->body_case == GPUQ__V1__REQUEST__BODY_SUBMIT)
                n_jobs = request->submit->n_jobs;
        else if (request->body_case == GPUQ__V1__REQUEST__BODY_FIRES)
                n_jobs = request->fires->n_fires;
        return n_jobs > WIRE_JOBS_MAX || (n_jobs > 1 && n_data > WIRE_JOBS_BYTES);
}

static const char *session_take_request(Session *session, const uint8_t *data, size_t n_data) {
        Gpuq__V1__Request *request;
        const char *problem;

        problem = session_unpack(session, data, n_data, &request);
        if (problem)
                return problem;
        activity_begin(ACTIVITY_REQUEST, request->body_case, session->peer.uid,
                       session->submitter.id);
        if (session->unfinished.n_served)
                return session_dispatch(session, request);
        if (request_is_long(request, n_data))
                return "the client sent too many jobs in one message; the limit is 256 jobs, and "
                       "64 KiB for "
                       "several jobs";

        session_pay(session, request_steps(request, n_data));
        if (session_has_to_wait(session, request)) {
                session_hold(session, data, n_data);
                return NULL;
        }
        /* Without memory to defer it the request is served now, and names jobs that are unknown. */
        if (session_names_what_is_ahead(session, request) &&
            session_defer(session, data, n_data) == 0)
                return NULL;
        return session_dispatch(session, request);
}

/* The steps that it paid while it was served are known by what is left of the visit. */
static const char *session_take_timed_request(Session *session, const uint8_t *data,
                                              size_t n_data) {
        int64_t left = session->serving.visit, n_paid, n_took;
        uint64_t began_ns = stall_cpu_ns();
        const char *problem = session_take_request(session, data, n_data);

        n_paid = left - session->serving.visit;
        n_took = (int64_t)((stall_cpu_ns() - began_ns) / 1000);
        if (n_took > n_paid)
                session_pay(session, (size_t)(n_took - n_paid));
        return problem;
}

const char *session_request(Session *session, const uint8_t *data, size_t n_data) {
        const char *problem = n_data > REQUEST_TIMED_BYTES
                                      ? session_take_timed_request(session, data, n_data)
                                      : session_take_request(session, data, n_data);

        bump_reset(session->clients->bump);
        return problem;
}
