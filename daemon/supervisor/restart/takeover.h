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
#include "clients.h"
#include "jobs.h"

#define TAKEOVER_LATE_MS 20000u /* without devices; libgpuq gives up after 30 s without an answer */
#define TAKEOVER_TICK_MS 100u   /* between looks at the clock while devices are looked for */

typedef struct Takeover Takeover;

/** takeover_resume_ops - for sessions; accepts a takeover that is NULL. */
extern const ResumeOps takeover_resume_ops;

/**
 * takeover_new() - COLLECTING
 * @may_listen: called with @userdata whenever takeover_lets_in() may have become true
 *
 * Return: 0, or a negative errno.
 */
int takeover_new(Engine *engine, Clients *clients, void (*may_listen)(void *userdata),
                 void *userdata, Takeover **ret_takeover);
/** takeover_free() - whatever is left of it is dropped; NULL is fine. Return: NULL. */
Takeover *takeover_free(Takeover *takeover);
/** takeover_on_held() - the keeper held this; consumed. */
void takeover_on_held(Takeover *takeover, const char *key, int fd);
/** takeover_begin() - that was all: open the ledger, keep a new one if there was none. Return: 0, or a negative errno. */
int takeover_begin(Takeover *takeover);
/** takeover_on_devices() - devices are known: arenas come back, clients may. */
void takeover_on_devices(Takeover *takeover);

/** takeover_is_awaiting() - jobs of sessions that are away may still be waited for. NULL: no. */
bool takeover_is_awaiting(const Takeover *takeover);
/** takeover_lets_in() - clients that connect may come in. NULL: yes. */
bool takeover_lets_in(const Takeover *takeover);
/** takeover_serves() - and may be served. NULL: yes. */
bool takeover_serves(const Takeover *takeover);
/** takeover_has_news() - since this was last asked, a session that was waited for said something. */
bool takeover_has_news(Takeover *takeover);

#endif
