/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_TAKEOVER_H
#define GPUQ_SUPERVISOR_TAKEOVER_H

/*
 * Takeover
 *
 * How a supervisor continues after the previous one was killed. The state is in the ledger and in
 * descriptors that the keeper held. The previous workers have ended, because the keeper waited for
 * that. Clients resubmit the jobs that they still want.
 *
 *     COLLECTING --> DISCOVERING --> SERVING
 *
 * COLLECTING: the keeper hands over what it held. DISCOVERING: devices are being discovered, without
 * which device arenas mean nothing; no request is served meanwhile. A driver that takes longer than
 * TAKEOVER_LATE_MS costs no client its session, because clients may then connect: resume requests and
 * status requests are answered, and all others wait. The takeover continues without devices after
 * takeover_s, but not before a probe has failed, because a driver may be slow.
 *
 * A session of the ledger whose client has not reconnected is dormant. Its objects are kept until the
 * client resumes it or the client's process ends, or for takeover_s if that process cannot be watched.
 * For takeover_s other sessions may name its jobs, and wait until its client resubmits them.
 *
 * A ledger that cannot be used is set aside. Arenas are dropped, and clients that reconnect are told.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base.h"
#include "clients.h"
#include "jobs.h"

#define TAKEOVER_LATE_MS 20000u /* without devices; libgpuq gives up after 45 s without an answer */
#define TAKEOVER_TICK_MS 100u   /* between checks of the clock during discovery */

typedef struct Takeover Takeover;

/** takeover_resume_ops - for sessions; the functions accept a takeover that is NULL. */
extern const ResumeOps takeover_resume_ops;

/**
 * takeover_new() - COLLECTING
 * @may_listen: called with @userdata whenever takeover_lets_in() may have become true
 *
 * Return: 0, or a negative errno.
 */
int takeover_new(Engine *engine, Clients *clients, void (*may_listen)(void *userdata),
                 void *userdata, Takeover **ret_takeover);
/** takeover_free() - drop the rest; NULL is fine. Return: NULL. */
Takeover *takeover_free(Takeover *takeover);
/** takeover_on_held() - the keeper held this; @fd is consumed. */
void takeover_on_held(Takeover *takeover, const char *key, int fd);
/**
 * takeover_begin() - everything was handed over: open the ledger, or make a new one
 *
 * Return: 0, or a negative errno.
 */
int takeover_begin(Takeover *takeover);
/** takeover_on_devices() - devices are known: restore arenas, and let clients connect. */
void takeover_on_devices(Takeover *takeover);

/** takeover_is_awaiting() - jobs of dormant sessions may still be waited for. NULL: no. */
bool takeover_is_awaiting(const Takeover *takeover);
/** takeover_lets_in() - clients may connect. NULL: yes. */
bool takeover_lets_in(const Takeover *takeover);
/** takeover_serves() - requests may be served. NULL: yes. */
bool takeover_serves(const Takeover *takeover);
/** takeover_has_news() - a session that others wait for has sent something since the last call. */
bool takeover_has_news(Takeover *takeover);

#endif
