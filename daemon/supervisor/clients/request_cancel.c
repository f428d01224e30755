/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancelling: jobs of sessions, and detached ones.
 */

#include "request.h"

#include "detached_ops.h"
#include "jobs.h"
#include "registry.h"
#include "util/list.h"

#define CANCEL_REPLY_STEP    16u /* ids in the reply that cost one step */
#define CANCEL_DETACHED_STEP 4u  /* detached jobs of all users that cost one step */

/* One Cancel. Unless it names jobs it may take many turns; the session's other requests wait meanwhile. */
struct SessionCancel {
        uint32_t serial;
        uint32_t slurm_job; /* whose jobs are cancelled; 0: all jobs of the user */
        JobCursor cursor;
        uint64_t before_ns; /* jobs that came later are not cancelled */
        Gpuq__V1__Cancelled cancelled;
        size_t n_max; /* ids for which there is memory */
};

static void cancel_free(SessionCancel *cancel) {
        cursor_end(&cancel->cursor);
        free(cancel->cancelled.ids);
        free(cancel->cancelled.unknown);
        free(cancel->cancelled.denied);
        free(cancel);
}

static SessionCancel *cancel_new(uint32_t serial, size_t n_ids) {
        SessionCancel *cancel;

        cancel = calloc(1, sizeof(*cancel));
        if (!cancel)
                return NULL;

        cancel->serial = serial;
        gpuq__v1__cancelled__init(&cancel->cancelled);
        cancel->n_max = n_ids + 1;
        cancel->cancelled.ids = malloc(cancel->n_max * sizeof(uint64_t));
        cancel->cancelled.unknown = malloc(cancel->n_max * sizeof(uint64_t));
        cancel->cancelled.denied = malloc(cancel->n_max * sizeof(uint64_t));
        if (cancel->cancelled.ids && cancel->cancelled.unknown && cancel->cancelled.denied)
                return cancel;
        cancel_free(cancel);
        return NULL;
}

/* Return: 0, or -ENOMEM. */
static int cancel_add(SessionCancel *cancel, uint64_t id) {
        size_t n_max = cancel->n_max * 2;
        uint64_t *ids;

        if (cancel->cancelled.n_ids == cancel->n_max) {
                ids = reallocarray(cancel->cancelled.ids, n_max, sizeof(*ids));
                if (!ids)
                        return -ENOMEM;
                cancel->cancelled.ids = ids;
                cancel->n_max = n_max;
        }
        cancel->cancelled.ids[cancel->cancelled.n_ids++] = id;
        return 0;
}

static void session_cancel_job(const Session *session, Job *job) {
        place_end_soon(job, JOB_CANCELLED, ending_cancelled(job->user, session->submitter.user));
}

/* ---- by id ----------------------------------------------------------------- */

/* Return: false: it is not a detached job. */
static bool session_cancel_detached(Session *session, uint64_t id, Gpuq__V1__Cancelled *cancelled) {
        const Clients *clients = session->clients;

        switch (clients->detached_ops->cancel(clients->detached, session, id)) {
                case DETACHED_CANCEL_DONE:
                        cancelled->ids[cancelled->n_ids++] = id;
                        return true;
                case DETACHED_CANCEL_LATE:
                        cancelled->unknown[cancelled->n_unknown++] = id;
                        return true;
                case DETACHED_CANCEL_DENIED:
                        cancelled->denied[cancelled->n_denied++] = id;
                        return true;
                case DETACHED_CANCEL_NONE:
                        break;
        }
        return false;
}

static void session_cancel_ids(Session *session, const Gpuq__V1__Cancel *request,
                               Gpuq__V1__Cancelled *cancelled) {
        for (size_t i = 0; i < request->n_ids; ++i) {
                uint64_t id = request->ids[i];
                Job *job = job_find(session->engine, id);

                if (session_cancel_detached(session, id, cancelled))
                        continue;
                if (!job) {
                        cancelled->unknown[cancelled->n_unknown++] = id;
                } else if (!session_may_touch(session, job)) {
                        cancelled->denied[cancelled->n_denied++] = id;
                } else {
                        session_cancel_job(session, job);
                        cancelled->ids[cancelled->n_ids++] = id;
                }
        }
}

/* ---- all jobs of one session's user, or of a job of Slurm ------------------- */

typedef struct CancelAll {
        Session *session;
        SessionCancel *cancel;
} CancelAll;

static bool session_wants_cancelled(const Session *session, const SessionCancel *cancel,
                                    const User *user, uint32_t slurm_job) {
        if (cancel->slurm_job && slurm_job != cancel->slurm_job)
                return false;
        return user == session->submitter.user || (cancel->slurm_job && session->peer.is_admin);
}

static void cancel_all_visit(const DetachedEntry *entry, void *userdata) {
        const CancelAll *all = userdata;
        const Clients *clients = all->session->clients;

        if (session_wants_cancelled(all->session, all->cancel, entry->user, entry->slurm_job) &&
            clients->detached_ops->cancel(clients->detached, all->session, entry->id) ==
                    DETACHED_CANCEL_DONE)
                (void)cancel_add(all->cancel, entry->id); /* it is cancelled, if not listed */
}

/* A job of Slurm may have jobs here of several users, if some of its processes changed theirs. */
static bool session_cancel_next_user(const Session *session, SessionCancel *cancel) {
        User *user = cancel->cursor.user->hh.next;

        if (!cancel->slurm_job || !session->peer.is_admin || !user)
                return false;
        cursor_end(&cancel->cursor);
        cursor_begin(&cancel->cursor, user);
        return true;
}

/* Return: false: the job ends the list of those to be cancelled, or there was no memory. */
static bool session_cancel_next(Session *session, SessionCancel *cancel) {
        Job *job = cursor_next(&cancel->cursor);

        serving_pay(&session->serving, 1);
        if (!job || job->clock.submitted_ns > cancel->before_ns)
                return session_cancel_next_user(session, cancel);
        if (job->submitter && job->submitter->ops != &session_submitter_ops)
                return true;
        if (!session_wants_cancelled(session, cancel, job->user, job->work.slurm_job))
                return true;
        session_cancel_job(session, job);
        return cancel_add(cancel, job->id) == 0;
}

static void session_finish_cancel(Session *session) {
        SessionCancel *cancel = session->unfinished.cancel;
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;

        serving_pay(&session->serving, cancel->cancelled.n_ids / CANCEL_REPLY_STEP);
        reply.serial = cancel->serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_CANCELLED;
        reply.cancelled = &cancel->cancelled;
        session_reply(session, &reply, -1);
        session_drop_cancel(session);
}

void session_cancel_more(Session *session) {
        Serving *serving = &session->clients->serving;
        SessionCancel *cancel = session->unfinished.cancel;
        const Clients *clients = session->clients;
        CancelAll all = {session, cancel};

        while (session_cancel_next(session, cancel))
                if (!serving_goes_on(&session->serving)) {
                        serving_wait(serving, &session->serving);
                        return;
                }
        clients->detached_ops->visit(clients->detached, cancel_all_visit, &all);
        serving_pay(&session->serving,
                    clients->detached_ops->count(clients->detached) / CANCEL_DETACHED_STEP);
        session_finish_cancel(session);
}

void session_drop_cancel(Session *session) {
        if (session->unfinished.cancel)
                cancel_free(session->unfinished.cancel);
        session->unfinished.cancel = NULL;
}

/* ---- the request ----------------------------------------------------------- */

static Failure *session_check_cancel(const Session *session, const Gpuq__V1__Cancel *request) {
        Failure *failure = NULL;

        if (request->n_ids > WIRE_CANCEL_MAX)
                return failure_new(FAILURE_INVALID,
                                   "the request cancels %zu jobs; the limit is %u: send several "
                                   "requests",
                                   request->n_ids, WIRE_CANCEL_MAX);
        for (size_t i = 0; i < request->n_ids && !failure; ++i)
                failure = session->clients->detached_ops->check_id(session->clients->detached,
                                                                   request->ids[i]);
        return failure;
}

const char *session_on_cancel(Session *session, uint32_t serial, const Gpuq__V1__Request *request) {
        SessionCancel *cancel;
        Failure *failure;

        failure = session_check_cancel(session, request->cancel);
        if (failure) {
                session_fail_request(session, serial, failure);
                return NULL;
        }
        cancel = session->unfinished.cancel = cancel_new(serial, request->cancel->n_ids);
        if (!cancel) {
                session_fail_request(
                        session, serial,
                        failure_new(FAILURE_MEMORY, "gpuqd has no memory to cancel jobs"));
                return NULL;
        }

        session_cancel_ids(session, request->cancel, &cancel->cancelled);
        if (!request->cancel->all && !request->cancel->slurm_job) {
                session_finish_cancel(session);
                return NULL;
        }
        if (!request->cancel->all)
                cancel->slurm_job = request->cancel->slurm_job;
        cancel->before_ns = engine_now(session->engine);
        cursor_begin(&cancel->cursor, cancel->slurm_job && session->peer.is_admin
                                              ? session->engine->users
                                              : session->submitter.user);
        session_cancel_more(session);
        return NULL;
}
