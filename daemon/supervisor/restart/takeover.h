/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_TAKEOVER_H
#define GPUQ_SUPERVISOR_TAKEOVER_H

/*
 * Takeover
 *
 * How a supervisor goes on where the one before it was killed. What that one knew is in its
 * ledger and in descriptors that the keeper held. Its workers have ended: the keeper waited for
 * that. What clients still want they submit again.
 *
 *     COLLECTING --> LOOKING --> SERVING
 *
 * COLLECTING: the keeper hands over what it held. LOOKING: for devices, without which device
 * arenas mean nothing; nobody is served meanwhile. A driver that takes longer than
 * TAKEOVER_LATE_MS costs nobody his session, for clients are let in then: a client that resumes
 * is told that it may, one that asks for the status is answered, and all else waits. The
 * takeover goes on without devices after takeover_s, but not before a look has failed: a driver
 * may be slow.
 *
 * A session of the ledger whose client is not back is away. What it had is kept until its
 * client resumes it or its process ends. For takeover_s others may name its jobs, and wait for
 * what it says of them.
 *
 * A ledger that cannot be used is set aside: arenas are dropped, and clients that come back are
 * told.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base.h"
#include "jobs.h"

#define TAKEOVER_LATE_MS 20000u /* without devices; libgpuq gives up after 30 s without an answer */
#define TAKEOVER_TICK_MS 100u   /* between looks at the clock while devices are looked for */

typedef struct ModuleSpec ModuleSpec;
typedef struct Session Session;
typedef struct Supervisor Supervisor;
typedef struct Takeover Takeover;
typedef struct User User;

/** takeover_new() - COLLECTING. Return: 0, or a negative errno. */
int takeover_new(Supervisor *supervisor, Takeover **ret_takeover);
/** takeover_free() - whatever is left of it is dropped; NULL is fine. Return: NULL. */
Takeover *takeover_free(Takeover *takeover);
/** takeover_on_held() - the keeper held this; consumed. */
void takeover_on_held(Takeover *takeover, const char *key, int fd);
/** takeover_begin() - that was all: open the ledger, keep a new one if there was none. Return: 0, or a negative errno. */
int takeover_begin(Takeover *takeover);
/** takeover_on_devices() - devices are known: arenas come back, clients may. */
void takeover_on_devices(Takeover *takeover);

/** takeover_is_awaiting() - jobs of sessions that are away may still be waited for. */
bool takeover_is_awaiting(const Supervisor *supervisor);
/** takeover_lets_in() - whoever connects may come in. */
bool takeover_lets_in(const Supervisor *supervisor);
/** takeover_serves() - and may be served. */
bool takeover_serves(const Supervisor *supervisor);
/** takeover_has_news() - since it was last asked: somebody who was waited for said something. */
bool takeover_has_news(Supervisor *supervisor);
/** takeover_is_ahead() - may this job of @user's yet be named by a session that is away? */
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

#endif
