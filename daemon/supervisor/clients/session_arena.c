/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arenas that a session has open, and those that are being created for it.
 */

#include "session.h"

#include "jobs.h"
#include "util/list.h"
#include "util/macro.h"

/* What is opened is mostly used together with what the session makes later. */
static void session_settle(Submitter *submitter, Device *device) {
        if (!device || submitter->is_settled)
                return;
        if (!submitter->home || submitter->home->device != device)
                submitter_move(submitter, slot_lane(device, submitter->user));
        submitter->is_settled = submitter->home != NULL;
}

int session_open_arena(Session *session, Arena *arena) {
        Opening *opening;

        HASH_FIND(hh, session->openings, &arena->id, sizeof(arena->id), opening);
        if (opening)
                return 0;
        opening = calloc(1, sizeof(*opening));
        if (!opening)
                return -ENOMEM;
        if (user_charge(session->submitter.user, &opening->charge, USER_RECORD_BYTES,
                        OPENING_BYTES) == USER_E_QUOTA) {
                free(opening);
                return USER_E_QUOTA;
        }

        opening->id = arena->id;
        HASH_ADD(hh, session->openings, id, sizeof(opening->id), opening);
        if (!opening->hh.tbl) {
                user_uncharge(&opening->charge);
                free(opening);
                return -ENOMEM;
        }
        opening->arena = arena_ref(arena);
        arena_note_session(arena, session->submitter.id);
        session_settle(&session->submitter, arena->device);
        return 0;
}

Failure *session_opening_failure(const Session *session, int r) {
        return r == USER_E_QUOTA ? user_quota_failure(session->submitter.user, USER_RECORD_BYTES,
                                                      OPENING_BYTES)
                                 : failure_new(FAILURE_MEMORY, "gpuqd has no memory for an arena");
}

void session_close_arena(Session *session, uint64_t id) {
        Opening *opening;

        HASH_FIND(hh, session->openings, &id, sizeof(id), opening);
        if (!opening)
                return;
        HASH_DEL(session->openings, opening);
        arena_unref(opening->arena);
        user_uncharge(&opening->charge);
        free(opening);
}

void session_name_arena(Session *session, const Arena *arena) {
        session->flush.position = MAX(session->flush.position, arena->kept_at);
}

void session_reply_arena(Session *session, uint32_t serial, const Arena *arena, bool has_it) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__ArenaReady ready = GPUQ__V1__ARENA_READY__INIT;

        ready.arena = arena->id;
        ready.place = (Gpuq__V1__Place)arena->place;
        ready.size = arena->size;
        ready.device = arena->device ? arena->device->index : 0;
        ready.address = arena->address;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_ARENA;
        reply.arena = &ready;
        session_name_arena(session, arena);
        session_reply(session, &reply, arena->place == ARENA_DEVICE || has_it ? -1 : arena->fd);
}

void session_on_arena_ready(Submitter *submitter, Arena *arena) {
        Session *session = session_of(submitter);

        int r;

        r = session_open_arena(session, arena);
        if (r)
                session_fail_request(session, arena->serial, session_opening_failure(session, r));
        else
                session_reply_arena(session, arena->serial, arena, false);
}

void session_on_arena_failed(Submitter *submitter, const Arena *arena, const Failure *failure) {
        session_reply_failure(session_of(submitter), arena->serial, failure);
}

void session_drop_arenas(Session *session) {
        while (session->openings)
                session_close_arena(session, session->openings->id);
}
