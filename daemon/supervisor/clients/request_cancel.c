/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancelling: jobs of sessions, and detached ones.
 */

#include "request.h"

#include "detached_ops.h"
#include "jobs.h"
#include "registry.h"
#include "util/list.h"

static void session_cancel_job(const Session *session, Job *job) {
        place_end_soon(job, JOB_CANCELLED, ending_cancelled(job->user, session->submitter.user));
}

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

static void session_cancel_ids(Session *session, const Gpuq__V1__Cancel *cancel,
                               Gpuq__V1__Cancelled *cancelled) {
        for (size_t i = 0; i < cancel->n_ids; ++i) {
                uint64_t id = cancel->ids[i];
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

/* All jobs of one session's user. */
typedef struct CancelAll {
        Session *session;
        Gpuq__V1__Cancelled *cancelled;
} CancelAll;

static void cancel_all_visit(const DetachedEntry *entry, void *userdata) {
        const CancelAll *all = userdata;

        if (entry->user == all->session->submitter.user)
                session_cancel_detached(all->session, entry->id, all->cancelled);
}

static void session_cancel_all(Session *session, Gpuq__V1__Cancelled *cancelled) {
        const Clients *clients = session->clients;
        CancelAll all = {session, cancelled};
        size_t n_unknown = cancelled->n_unknown;
        Job *job;

        TAILQ_FOREACH (job, &session->submitter.user->jobs, user_link) {
                if (job->submitter && job->submitter->ops != &session_submitter_ops)
                        continue;
                session_cancel_job(session, job);
                cancelled->ids[cancelled->n_ids++] = job->id;
        }
        clients->detached_ops->visit(clients->detached, cancel_all_visit, &all);
        cancelled->n_unknown = n_unknown; /* ended jobs among them were not named by the client */
}

static Failure *session_check_cancel(const Session *session, const Gpuq__V1__Cancel *cancel) {
        Failure *failure = NULL;

        if (cancel->n_ids > WIRE_CANCEL_MAX)
                return failure_new(FAILURE_INVALID,
                                   "the request cancels %zu jobs; the limit is %u: send several "
                                   "requests",
                                   cancel->n_ids, WIRE_CANCEL_MAX);
        for (size_t i = 0; i < cancel->n_ids && !failure; ++i)
                failure = session->clients->detached_ops->check_id(session->clients->detached,
                                                                   cancel->ids[i]);
        return failure;
}

const char *session_on_cancel(Session *session, uint32_t serial, const Gpuq__V1__Request *request) {
        const Gpuq__V1__Cancel *cancel = request->cancel;
        size_t n_all =
                cancel->all
                        ? session->submitter.user->n_waiting + session->submitter.user->n_running +
                                  session->clients->detached_ops->count(session->clients->detached)
                        : 0;
        size_t n_max = cancel->n_ids + n_all;
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Cancelled cancelled = GPUQ__V1__CANCELLED__INIT;
        _cleanup_(freep) uint64_t *ids = NULL;
        Failure *failure;

        failure = session_check_cancel(session, cancel);
        if (failure) {
                session_fail_request(session, serial, failure);
                return NULL;
        }
        ids = calloc(3 * n_max + 1, sizeof(*ids));
        if (!ids) {
                session_fail_request(
                        session, serial,
                        failure_new(FAILURE_MEMORY, "gpuqd has no memory to cancel jobs"));
                return NULL;
        }

        cancelled.ids = ids;
        cancelled.unknown = ids + n_max;
        cancelled.denied = ids + 2 * n_max;
        session_cancel_ids(session, cancel, &cancelled);
        if (cancel->all)
                session_cancel_all(session, &cancelled);
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_CANCELLED;
        reply.cancelled = &cancelled;
        session_reply(session, &reply, -1);
        return NULL;
}
