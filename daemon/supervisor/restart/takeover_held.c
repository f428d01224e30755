/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takeover: makes arenas of the descriptors that the keeper held. A descriptor without a record is
 * dropped, and so is a record without a descriptor.
 */

#include <stdio.h>
#include <string.h>

#include "jobs.h"
#include "base.h"
#include "takeover_state.h"

/* ---- descriptors ----------------------------------------------------------- */

void takeover_on_held(Takeover *takeover, const char *key, int fd) {
        TakeoverHeld *held = calloc(1, sizeof(*held));

        if (held) {
                snprintf(held->key, sizeof(held->key), "%.*s", KEEPER_KEY_MAX, key);
                held->fd = fd;
                HASH_ADD_STR(takeover->held, key, held);
                if (held->hh.tbl)
                        return;
        }
        free(held);
        keeper_link_drop(takeover->engine->keeper, key);
        close(fd);
}

int takeover_take_fd(Takeover *takeover, const char *key) {
        TakeoverHeld *held;
        int fd;

        HASH_FIND_STR(takeover->held, key, held);
        if (!held)
                return -1;
        fd = held->fd;
        HASH_DEL(takeover->held, held);
        free(held);
        return fd;
}

static void takeover_drop_fd(Takeover *takeover, TakeoverHeld *held) {
        keeper_link_drop(takeover->engine->keeper, held->key);
        HASH_DEL(takeover->held, held);
        close(held->fd);
        free(held);
}

static void takeover_drop_fds(Takeover *takeover) {
        while (takeover->held)
                takeover_drop_fd(takeover, takeover->held);
}

void takeover_drop_held(Takeover *takeover) {
        for (size_t i = 0; i < takeover->n_arenas; ++i)
                arena_unref(takeover->arenas[i]);
        free(takeover->arenas);
        takeover->arenas = NULL;
        takeover->n_arenas = 0;
        takeover_drop_fds(takeover);
}

/* ---- arenas ---------------------------------------------------------------- */

static Device *takeover_find_device(const Engine *engine, const char *uuid) {
        for (size_t i = 0; i < engine->n_devices; ++i)
                if (strcmp(engine->devices[i].uuid, uuid) == 0)
                        return &engine->devices[i];
        return NULL;
}

static int takeover_note_arena(Takeover *takeover, Arena *arena) {
        Arena **grown = realloc(takeover->arenas, (takeover->n_arenas + 1) * sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        takeover->arenas = grown;
        takeover->arenas[takeover->n_arenas++] = arena;
        return 0;
}

static bool takeover_wants_arena(const Takeover *takeover, const LedgerArena *record) {
        if (record->session == LEDGER_SHARED)
                return takeover_expects_user(takeover, record->uid);
        return takeover_find_session(takeover, record->session) != NULL;
}

/* Return: false: the descriptor is gone, and the record means nothing. */
static bool takeover_restore_arena(Takeover *takeover, const LedgerArena *record, uint32_t slot) {
        _cleanup_(arena_unrefp) Arena *arena = NULL;
        _cleanup_(closep) int fd = -1;
        Device *device = NULL;
        char key[KEEPER_KEY_MAX];
        Arena *other = arena_find(takeover->engine, record->id);

        if (other) { /* the previous supervisor died while it recorded another session's use */
                other->session = LEDGER_SHARED;
                return false;
        }
        if (!takeover_wants_arena(takeover, record))
                return false;
        snprintf(key, sizeof(key), ARENA_KEY_FORMAT, (unsigned long long)record->id);
        if (*record->device) {
                device = takeover_find_device(takeover->engine, record->device);
                if (!device)
                        return false;
        }
        fd = takeover_take_fd(takeover, key);
        if (fd < 0)
                return false;
        if (arena_restore(takeover->engine, record, slot, device, TAKE_FD(fd), &arena) < 0)
                return false;
        if (takeover_note_arena(takeover, arena) == 0)
                (void)TAKE_PTR(arena);
        return true;
}

void takeover_restore(Takeover *takeover) {
        Ledger *ledger = takeover->engine->ledger;
        uint32_t slot = LEDGER_NONE;
        const LedgerArena *record;

        while ((record = ledger_next(ledger, LEDGER_ARENA, &slot)))
                if (!takeover_restore_arena(takeover, record, slot))
                        ledger_drop(ledger, LEDGER_ARENA, slot);
        takeover_drop_fds(takeover);
}
