/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_TAKEOVER_H
#define GPUQ_SUPERVISOR_TAKEOVER_H

/*
 * Takeover
 *
 * How a supervisor goes on where the one before it was killed. What that one knew is
 * in its ledger and in descriptors that the keeper held; what its clients still want
 * they say again. Until all of them have, nothing is dispatched and workers are not
 * read: the window.
 *
 *     COLLECTING --> LOOKING --> OPEN --> over
 *
 * COLLECTING: the keeper hands over what it held. LOOKING: for devices, without which
 * device arenas and workers mean nothing; nobody is served meanwhile. A driver that takes longer
 * than TAKEOVER_LATE_MS costs nobody his session, for clients are let in then: who resumes is
 * told that he may, who asks for the status that devices are looked for, and all else waits.
 * It goes on without devices after takeover_s, but not before a look has failed: a driver may be
 * slow. OPEN: clients come back, for takeover_s at most, or half a second where no client that
 * is away has a job in a worker; a supervisor with nothing to take over is over at once.
 *
 * Who is not back by then is dormant: what he had is kept as long as his process lives, and he
 * may resume at any time.
 *
 * A ledger that cannot be used is set aside: workers are killed, arenas dropped, and
 * clients that come back are told.
 */

#include <stdbool.h>
#include <stdint.h>

#include "proto/worker.pb-c.h"
#include "base.h"
#include "jobs.h"
#include "util/table.h"

#define TAKEOVER_BRIEF_MS 500u   /* for clients that have nothing in a worker */
#define TAKEOVER_LATE_MS  20000u /* without devices; libgpuq gives up after 30 s without an answer */
#define TAKEOVER_TICK_MS  100u   /* between looks whether those who are expected still live */

typedef struct ModuleSpec ModuleSpec;
typedef struct Session Session;
typedef struct Supervisor Supervisor;
typedef struct Takeover Takeover;
typedef struct User User;
typedef struct Worker Worker;

/* A job of a dormant session, which may yet claim it. */
typedef struct TakeoverJob {
        uint64_t id;
        LedgerOwner owner;
        User *user;
        LedgerSent sent; /* to none, or to one that may have ended: then it waits to be claimed */
        uint32_t slot;
        Failure *doom; /* what it ends with when its worker stops because of it */
        JobState doom_state;
        UT_hash_handle hh; /* takeover->jobs */
} TakeoverJob;

/** takeover_new() - COLLECTING. Return: 0, or a negative errno. */
int takeover_new(Supervisor *supervisor, Takeover **ret_takeover);
/** takeover_free() - whatever is left of it is dropped; NULL is fine. Return: NULL. */
Takeover *takeover_free(Takeover *takeover);
/** takeover_on_held() - the keeper held this; consumed. */
void takeover_on_held(Takeover *takeover, const char *key, int fd);
/** takeover_begin() - that was all: open the ledger, keep a new one if there was none. Return: 0, or a negative errno. */
int takeover_begin(Takeover *takeover);
/** takeover_on_devices() - devices are known: arenas and workers come back, clients may. */
void takeover_on_devices(Takeover *takeover);

/** takeover_is_open() - it is not over: nothing is dispatched. */
bool takeover_is_open(const Supervisor *supervisor);
/** takeover_is_awaiting() - for a while: jobs of sessions that are not back may be waited for. */
bool takeover_is_awaiting(const Supervisor *supervisor);
/** takeover_lets_in() - whoever connects may come in. */
bool takeover_lets_in(const Supervisor *supervisor);
/** takeover_serves() - and may be served. */
bool takeover_serves(const Supervisor *supervisor);
/** takeover_has_news() - since it was last asked: somebody who was waited for said something. */
bool takeover_has_news(Supervisor *supervisor);
/** takeover_is_ahead() - may this job of @user's yet be named by a session that is expected? */
bool takeover_is_ahead(const Supervisor *supervisor, const User *user, uint64_t id);

/**
 * takeover_claim() - @session is what was session @id, by the word of the kernel
 *
 * Return: NULL, the session has that number now; or why not.
 */
Failure *takeover_claim(Session *session, uint32_t id);
/** takeover_resumed() - it has said all; it has read of @n_seen ends. */
void takeover_resumed(Session *session, uint32_t n_seen);
/** takeover_session_closed() - it is waited for no more. */
void takeover_session_closed(Session *session);
/** takeover_claim_module() - what is known of a module that @session had. Return: false: it had no such module. */
bool takeover_claim_module(Session *session, uint64_t id, ModuleSpec *spec);
/** takeover_find_job() - what a resuming session submits again. Return: false: nothing is known of it. */
bool takeover_find_job(const Session *session, uint64_t id, LedgerJob *ret_job);
/** takeover_submitted() - this job was submitted, maybe again, and then is_held. */
void takeover_submitted(Job *job);

/* Dormant sessions, see takeover_dormant.c. */

/** takeover_knows_module() - it is one of theirs. */
bool takeover_knows_module(const Supervisor *supervisor, uint64_t id);
/** takeover_needs_worker() - it has their jobs, or variables of their modules. */
bool takeover_needs_worker(const Worker *worker);
/** takeover_first_job() - of theirs, by hh.next. Return: NULL: there is none. */
const TakeoverJob *takeover_first_job(const Supervisor *supervisor);
/** takeover_count_jobs() - how many there are. */
size_t takeover_count_jobs(const Supervisor *supervisor);
/** takeover_find_kept() - Return: NULL: there is none of that id. */
TakeoverJob *takeover_find_kept(const Supervisor *supervisor, uint64_t id);
/** takeover_worker_of() - that it runs in. Return: NULL: it has ended. */
Worker *takeover_worker_of(const Supervisor *supervisor, const TakeoverJob *job);
/** takeover_doom_job() - it ends in this state, now or when its worker has stopped. Consumes @failure. */
void takeover_doom_job(Supervisor *supervisor, TakeoverJob *job, JobState state, Failure *failure);
/** takeover_has_doomed() - does this worker have to stop for one of them? */
bool takeover_has_doomed(const Worker *worker);
/** takeover_worker_lost() - those that were doomed end. */
void takeover_worker_lost(Worker *worker);
/** takeover_n_jobs() - of theirs, in this worker. */
unsigned takeover_n_jobs(const Worker *worker);
/** takeover_job_ended() - in this worker a job ended that nobody claimed. */
void takeover_job_ended(Worker *worker, const Gpuq__Worker__JobEnd *said);
/** takeover_job_late() - one is beyond its timeout: that is its end. */
void takeover_job_late(Worker *worker, uint64_t id);
/** takeover_compare_jobs() - what is not in this worker after all runs when it is submitted again. */
void takeover_compare_jobs(Worker *worker, const Gpuq__Worker__State *state);

#endif
