/* SPDX-License-Identifier: Apache-2.0 */
#include "follow.h"

#include "dependency.h"
#include "engine.h"
#include "place.h"
#include "submitter.h"
#include "util/list.h"

static void follow_later(Job *job) {
        if (job->edges.is_following)
                return;
        job->edges.is_following = true;
        TAILQ_INSERT_TAIL(&user_has_backlog(job->user, job->engine)->following, job, edges.link);
}

static void follow_finish(Job *job) {
        job->engine->n_steps++;
        TAILQ_REMOVE(&job->user->person->backlog.following, job, edges.link);
        job->edges.is_following = false;
        if (job->is_left)
                job_free(job);
}

/* ---- it started ------------------------------------------------------------ */

/* Return: false: none is left. */
static bool follow_start_one(Job *job) {
        JobEdge *edge = TAILQ_FIRST(&job->edges.successors);

        if (!edge)
                return false;
        job->engine->n_steps++;
        job_edge_remove(edge);
        edge->is_seen = true;
        job_edge_add(edge);
        if (dependency_may_follow(edge->after)) {
                dependency_unblock(edge);
                place_consider(edge->after);
        }
        return true;
}

void follow_started(Job *job) {
        for (unsigned i = 0; i < FOLLOW_AT_ONCE; ++i)
                if (!follow_start_one(job))
                        return;
        follow_later(job);
}

bool follow_may_start(Job *job, const Executor *executor) {
        return dependency_renew(job) && dependency_is_beside(job, executor);
}

/* ---- it ended -------------------------------------------------------------- */

/* Of many jobs that it depends on, the first one that failed gives the reason. */
static void follow_fail_dependent(Job *dependent, const Job *job) {
        const Failure *failure = job->outcome.failure;

        if (job_end_is_decided(dependent))
                return;
        place_end_soon(dependent, JOB_FAILED,
                       failure_depends(job->id, job->state == JOB_CANCELLED, failure->code,
                                       failure->root, failure->text));
}

/* Not by recursion: cancelled jobs may be a long chain. */
static void follow_close_gap(Job *gap) {
        if (gap->submitter) {
                TAILQ_REMOVE(&gap->submitter->gaps, gap, submitter_link);
                order_remove(gap->submitter->order, gap->edges.node);
        }
        gap->is_gap = false;
        user_uncharge(&gap->charge);
        follow_later(gap);
}

static void follow_end_edge(JobEdge *edge, const Job *job) {
        Job *after = edge->after;

        dependency_end(edge);
        if (!edge->is_order && job->state != JOB_DONE)
                follow_fail_dependent(after, job);
        if (edge->is_order && after->is_gap && !dependency_is_behind(after))
                follow_close_gap(after);
        if (after->state == JOB_RUNNING && after->verdict.failure)
                place_stop(after);
        place_consider(after);
}

/* Later jobs by buffers go on following a gap. */
static JobEdge *follow_next_edge(const Job *job) {
        JobEdge *edge = TAILQ_FIRST(&job->edges.dependents);

        if (!edge && !job->is_gap)
                edge = TAILQ_FIRST(&job->edges.successors);
        if (!edge && !job->is_gap)
                edge = TAILQ_FIRST(&job->edges.followers);
        return edge;
}

/* Return: false: none is left. */
static bool follow_end_one(Job *job) {
        JobEdge *edge = follow_next_edge(job);

        if (!edge)
                return false;
        job->engine->n_steps++;
        follow_end_edge(edge, job);
        return true;
}

void follow_ended(Job *job) {
        for (unsigned i = 0; i < FOLLOW_AT_ONCE; ++i)
                if (!follow_end_one(job))
                        return;
        follow_later(job);
}

/* ---- the rest -------------------------------------------------------------- */

/* A job that went back to its queue has no followers to look at until it starts again. */
static bool follow_one(Job *job) {
        if (job->state == JOB_RUNNING)
                return follow_start_one(job);
        return job_is_ended(job) && follow_end_one(job);
}

bool follow_step(User *person) {
        Job *job = TAILQ_FIRST(&person->backlog.following);

        if (!job)
                return false;
        if (!follow_one(job))
                follow_finish(job);
        return true;
}
