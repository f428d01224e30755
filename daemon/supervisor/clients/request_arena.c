/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client requests about arenas.
 */

#include "request.h"

#include <limits.h>

#include "jobs.h"
#include "util/human.h"
#include "util/list.h"

static Failure *arena_check(Session *session, const Gpuq__V1__ArenaCreate *create) {
        if (create->place != GPUQ__V1__PLACE__HOST && create->place != GPUQ__V1__PLACE__DEVICE &&
            create->place != GPUQ__V1__PLACE__IMAGE)
                return failure_new(FAILURE_INVALID, "unknown place %d of an arena", create->place);
        if (create->size == 0)
                return failure_new(FAILURE_INVALID, "an arena must have at least one byte");
        if (create->place == GPUQ__V1__PLACE__IMAGE && create->size > ARENA_IMAGE_MAX)
                return failure_new(FAILURE_INVALID,
                                   "the module image is too large: the limit is %s",
                                   human_bytes(ARENA_IMAGE_MAX).text);
        return create->place == GPUQ__V1__PLACE__DEVICE ? NULL : session_check_room(session);
}

static void session_make_device_arena(Session *session, Arena *arena, uint32_t device) {
        arena->wanted_device = (int)MIN(device, INT_MAX) - 1;
        arena_set_maker(arena, &session->submitter);
        provision_arena(arena);
}

const char *session_on_arena_create(Session *session, uint32_t serial,
                                    const Gpuq__V1__Request *request) {
        const Gpuq__V1__ArenaCreate *create = request->arena_create;
        _cleanup_(arena_unrefp) Arena *arena = NULL;
        bool on_device = create->place == GPUQ__V1__PLACE__DEVICE;
        Failure *failure;
        int r;

        failure = arena_check(session, create);
        if (failure) {
                session_fail_request(session, serial, failure);
                return NULL;
        }
        r = arena_new(session->engine, session->submitter.user, (ArenaPlace)create->place,
                      create->size, &arena);
        if (r) {
                failure = r == ARENA_E_QUOTA
                                  ? arena_quota_failure(session->submitter.user,
                                                        (ArenaPlace)create->place, create->size)
                                  : failure_new(FAILURE_MEMORY, "cannot create an arena of %s: %s",
                                                human_bytes(create->size).text, strerror(-r));
                session_fail_request(session, serial, failure);
                return NULL;
        }

        arena->serial = serial;
        if (on_device) {
                session_make_device_arena(session, arena, create->device);
                return NULL;
        }
        r = session_open_arena(session, arena);
        if (r)
                session_fail_request(session, serial, session_opening_failure(session, r));
        else
                session_reply_arena(session, serial, arena, false);
        return NULL;
}

const char *session_on_arena_open(Session *session, uint32_t serial,
                                  const Gpuq__V1__Request *request) {
        bool is_resumed = request->arena_open->resume && session->is_resuming;
        uint64_t id = request->arena_open->arena;
        Failure *failure;
        Arena *arena = arena_find(session->engine, id);
        int r;

        if (!arena || arena->fd < 0) {
                session_fail_request(
                        session, serial,
                        failure_new(FAILURE_NOT_FOUND, "no arena %llu", (unsigned long long)id));
                return NULL;
        }
        if (arena->user != session->submitter.user ||
            (arena->place == ARENA_IMAGE && !is_resumed)) {
                session_fail_request(session, serial,
                                     failure_new(FAILURE_DENIED,
                                                 "permission denied: arena %llu cannot be opened",
                                                 (unsigned long long)id));
                return NULL;
        }
        failure = session_check_room(session);
        if (failure) {
                session_fail_request(session, serial, failure);
                return NULL;
        }
        r = session_open_arena(session, arena);
        if (r) {
                session_fail_request(session, serial, session_opening_failure(session, r));
                return NULL;
        }

        session_reply_arena(session, serial, arena, is_resumed);
        return NULL;
}

const char *session_on_arena_close(Session *session, uint32_t serial,
                                   const Gpuq__V1__Request *request) {
        session_close_arena(session, request->arena_close->arena);
        return NULL;
}
