/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_REQUEST_H
#define GPUQ_SUPERVISOR_REQUEST_H

/*
 * Requests
 *
 * What the files of requests share: request.c knows them all by number and has
 * those that are nobody else's. Each answers, or fails its request with a text.
 * Return: NULL, or how the client broke the rules, a constant: its session ends.
 */

#include "session.h"

/** session_may_touch() - its user's, or the client is an admin. */
static inline bool session_may_touch(const Session *session, const Job *job) {
        return session->peer.is_admin || job->user == session->submitter.user;
}

const char *session_on_arena_create(Session *session, uint32_t serial,
                                    const Gpuq__V1__Request *request);
const char *session_on_arena_open(Session *session, uint32_t serial,
                                  const Gpuq__V1__Request *request);
const char *session_on_arena_close(Session *session, uint32_t serial,
                                   const Gpuq__V1__Request *request);
const char *session_on_module_load(Session *session, uint32_t serial,
                                   const Gpuq__V1__Request *request);
const char *session_on_module_unload(Session *session, uint32_t serial,
                                     const Gpuq__V1__Request *request);
const char *session_on_cancel(Session *session, uint32_t serial, const Gpuq__V1__Request *request);

#endif
