/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas
 */
#include "worker/arenas.h"

void arenas_init(Arenas *arenas, Context *context, Streams *streams, Quiesce *quiesce,
                 uv_loop_t *loop, ArenaFunc func, void *userdata) {
        arenas->context = context;
        arenas->streams = streams;
        arenas->quiesce = quiesce;
        arenas->loop = loop;
        arenas->func = func;
        arenas->userdata = userdata;
        LIST_INIT(&arenas->zeroing);
}

Arena *arenas_find(Arenas *arenas, uint64_t id) {
        Arena *arena;

        HASH_FIND(hh, arenas->by_id, &id, sizeof(id), arena);
        return arena;
}

static int arenas_on_free(QuiesceTask *task, void *userdata) {
        arena_free(userdata);
        return 0;
}

static void arenas_maybe_free(Arena *arena) {
        if (!arena->dropped || arena->n_uses > 0 || arena->state == ARENA_PREPARING)
                return;
        if (!arena_needs_quiesce(arena)) {
                arena_free(arena);
                return;
        }

        arena->task.func = arenas_on_free;
        arena->task.userdata = arena;
        quiesce_add(arena->arenas->quiesce, &arena->task);
}

static void arenas_on_end(Arena *arena, void *userdata) {
        Arenas *arenas = userdata;

        if (arena->dropped) {
                arenas_maybe_free(arena);
                return;
        }
        arenas->func(arena, arenas->userdata);
        /* An arena that could not be created is freed; one that could not be added is kept to tell
         * jobs why. */
        if (arena->made && arena->state == ARENA_FAILED)
                arenas_drop(arenas, arena);
}

static int arenas_new(Arenas *arenas, uint64_t id, Gpuq__V1__Place place, uint64_t size,
                      Arena **ret_arena) {
        Arena *arena;
        int r;

        r = arena_new(id, place, size, arenas->context, arenas->streams, arenas_on_end, arenas,
                      &arena);
        if (r < 0)
                return r;

        arena->arenas = arenas;
        HASH_ADD(hh, arenas->by_id, id, sizeof(arena->id), arena);
        if (!arena->hh.tbl) {
                arena_free(arena);
                return -ENOMEM;
        }
        *ret_arena = arena;
        return 0;
}

/* Ends a preparation that could not begin. */
static int arenas_begun(Arena *arena, int r) {
        if (r == FAILURE_E_FAULT)
                return r;
        if (arena->state != ARENA_PREPARING)
                arenas_on_end(arena, arena->arenas);
        return 0;
}

int arenas_add(Arenas *arenas, uint64_t id, Gpuq__V1__Place place, uint64_t size, CUdeviceptr wish,
               int fd) {
        Arena *arena;
        int r;

        r = arenas_new(arenas, id, place, size, &arena);
        if (r < 0)
                return r;
        arena->wish = wish;
        if (place == GPUQ__V1__PLACE__DEVICE)
                return arenas_begun(arena, arena_import(arena, fd));
        return arenas_begun(arena, arena_map_host(arena, arenas->loop, fd));
}

int arenas_make(Arenas *arenas, uint64_t id, uint64_t size, CUdeviceptr wish) {
        Arena *arena;
        int r;

        r = arenas_new(arenas, id, GPUQ__V1__PLACE__DEVICE, size, &arena);
        if (r < 0)
                return r;

        arena->wish = wish;
        r = arena_make(arena);
        if (arena_is_zeroing(arena))
                LIST_INSERT_HEAD(&arenas->zeroing, arena, link);
        return arenas_begun(arena, r);
}

void arenas_drop(Arenas *arenas, Arena *arena) {
        HASH_DELETE(hh, arenas->by_id, arena);
        arena->dropped = true;
        arenas_maybe_free(arena);
}

void arenas_unuse(Arena *arena) {
        --arena->n_uses;
        arenas_maybe_free(arena);
}

bool arenas_poll(Arenas *arenas) {
        Arena *arena, *next;
        bool any = false;

        for (arena = LIST_FIRST(&arenas->zeroing); arena; arena = next) {
                next = LIST_NEXT(arena, link);
                if (!ticket_is_done(&arena->zeroing))
                        continue;
                LIST_REMOVE(arena, link);
                arena_poll(arena); /* which may free it */
                any = true;
        }
        return any;
}
