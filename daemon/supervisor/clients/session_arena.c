/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arenas that a session has open, and those that are being made for it.
 */

#include "session.h"

#include "jobs.h"
#include "util/list.h"

int session_open_arena(Session *session, Arena *arena) {
        Opening *opening;

        HASH_FIND(hh, session->openings, &arena->id, sizeof(arena->id), opening);
        if (opening)
                return 0;
        opening = calloc(1, sizeof(*opening));
        if (!opening)
                return -ENOMEM;

        opening->id = arena->id;
        HASH_ADD(hh, session->openings, id, sizeof(opening->id), opening);
        if (!opening->hh.tbl) {
                free(opening);
                return -ENOMEM;
        }
        opening->arena = arena_ref(arena);
        arena_note_session(arena, session->id);
        return 0;
}

void session_close_arena(Session *session, uint64_t id) {
        Opening *opening;

        HASH_FIND(hh, session->openings, &id, sizeof(id), opening);
        if (!opening)
                return;
        HASH_DEL(session->openings, opening);
        arena_unref(opening->arena);
        free(opening);
}

static Session *session_take_maker(Arena *arena) {
        Session *session = arena->maker;

        if (session)
                LIST_REMOVE(arena, maker_link);
        arena->maker = NULL;
        return session;
}

void session_reply_arena(Session *session, uint32_t serial, const Arena *arena, bool has_it) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__ArenaReady ready = GPUQ__V1__ARENA_READY__INIT;

        ready.arena = arena->id;
        ready.place = (Gpuq__V1__Place)arena->place;
        ready.size = arena->size;
        ready.device = arena->device ? arena->device->index : 0;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_ARENA;
        reply.arena = &ready;
        session_reply(session, &reply, arena->place == ARENA_DEVICE || has_it ? -1 : arena->fd);
}

void session_arena_ready(Arena *arena) {
        Session *session = session_take_maker(arena);

        if (!session)
                return;
        if (session_open_arena(session, arena) < 0)
                session_fail_request(session, arena->serial,
                                     failure_new(FAILURE_MEMORY, "no memory for an arena"));
        else
                session_reply_arena(session, arena->serial, arena, false);
}

void session_arena_failed(Arena *arena, Failure *failure) {
        Session *session = session_take_maker(arena);

        if (session)
                session_reply_failure(session, arena->serial, failure);
        failure_free(failure);
}

void session_drop_arenas(Session *session) {
        Arena *arena;

        while ((arena = LIST_FIRST(&session->making))) {
                LIST_REMOVE(arena, maker_link);
                arena->maker = NULL;
        }
        while (session->openings)
                session_close_arena(session, session->openings->id);
}
