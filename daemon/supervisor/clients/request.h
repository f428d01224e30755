/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_REQUEST_H
#define GPUQ_SUPERVISOR_REQUEST_H

/*
 * Requests
 *
 * What the request files share. request.c has the table of all requests, and those that fit no other
 * file. Each function answers its request or fails it with a text. Return: NULL, or how the client
 * broke the protocol, a constant: its session ends.
 */

#include "session.h"

/** session_may_touch() - the job is the user's own, or the client is an administrator. */
static inline bool session_may_touch(const Session *session, const Job *job) {
        return session->peer.is_admin || job->user == session->submitter.user;
}

/**
 * session_find_history() - how a job ended, of this user, or for administrators of any
 * @ret_user: whose job it was; set with an entry only
 *
 * Return: NULL: none has this id, or it is forgotten.
 */
const HistoryEntry *session_find_history(const Session *session, uint64_t id,
                                         const User **ret_user);
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
const char *session_on_explain_get(Session *session, uint32_t serial,
                                   const Gpuq__V1__Request *request);
const char *session_on_trace_get(Session *session, uint32_t serial,
                                 const Gpuq__V1__Request *request);

#endif
