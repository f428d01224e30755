/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ARENA_H
#define GPUQ_SUPERVISOR_ARENA_H

/*
 * Arena
 *
 * Memory of one user, held as a descriptor by the supervisor and the keeper; the supervisor never
 * maps it. An arena lives as long as it has references: from sessions that have it open, jobs that
 * name it, and a module made from it. Then its workers drop it, the descriptor is closed and
 * the charge undone.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "proto/gpuq.pb-c.h"
#include "base.h"
#include "submitter.h"
#include "user.h"
#include "util/macro.h"
#include "util/table.h"

#define ARENA_KEY_FORMAT "arena-%llu"   /* of its descriptor, at the keeper */
#define ARENA_IMAGE_MAX  (256ull << 20) /* bytes */
#define ARENA_SIZE_MAX   (1ull << 50)   /* bytes; far above any machine, far below overflow */

typedef struct Arena Arena;
typedef struct Device Device;
typedef struct Mapping Mapping;
typedef struct Slot Slot;
typedef struct Submitter Submitter;
typedef struct Engine Engine;
typedef struct Executor Executor;

typedef enum ArenaPlace {
        ARENA_HOST = GPUQ__V1__PLACE__HOST,
        ARENA_DEVICE = GPUQ__V1__PLACE__DEVICE,
        ARENA_IMAGE = GPUQ__V1__PLACE__IMAGE,
} ArenaPlace;

/* An arena that an executor may use. */
struct Mapping {
        uint64_t id; /* of the arena */
        Executor *executor;
        LIST_ENTRY(Mapping) link; /* arena->mappings */
        UT_hash_handle hh;        /* executor->mappings */
};

enum {
        _ARENA_E_SUCCESS,
        ARENA_E_QUOTA,
        ARENA_E_ADDRESSES, /* with fence = yes: its person has no more */
};

struct Arena {
        uint64_t id;
        Engine *engine;
        User *user;
        ArenaPlace place;
        uint64_t size;    /* bytes */
        Device *device;   /* of a DEVICE arena */
        uint64_t address; /* of a DEVICE arena, in all workers; 0: it differs among them */
        int fd;           /* -1: not created yet */
        unsigned n_refs;

        LIST_HEAD(, Mapping) mappings; /* one for each executor that may use it */
        UT_hash_handle hh;             /* engine->arenas.by_id */

        /* a DEVICE arena until a worker has created it */
        Submitter *maker; /* the submitter that asked for it; NULL once that is gone */
        uint32_t serial;
        int wanted_device;     /* -1: any */
        bool is_waiting;       /* in slot->making or engine->unplaced.arenas, with a reference */
        Slot *slot;            /* NULL: none yet, or created */
        uint32_t asked_worker; /* id of the worker that creates it; 0: none yet */
        LIST_ENTRY(Arena) maker_link; /* maker->making */
        TAILQ_ENTRY(Arena) wait_link;

        uint64_t kept_at; /* on the keeper link */
        uint32_t record;  /* in the ledger, or LEDGER_NONE */
        uint32_t session; /* as in LedgerArena */
        UserCharge charge;
        UserCharge count; /* of USER_ARENAS */
};

/**
 * arena_new() - charge and make an arena; HOST and IMAGE are created at once, sealed against
 * resizing
 *
 * Return: 0 with one reference, ARENA_E_QUOTA, or a negative errno.
 */
int arena_new(Engine *engine, User *user, ArenaPlace place, uint64_t size, Arena **ret_arena);
/** arena_quota_failure() - why arena_new() returned ARENA_E_QUOTA. */
Failure *arena_quota_failure(const User *user, ArenaPlace place, uint64_t size);
/**
 * arena_restore() - make an arena again that an earlier supervisor had
 * @slot: of its record
 * @device: of a DEVICE arena
 * @fd: consumed in any case
 *
 * Return: 0 with one reference, or a negative errno.
 */
int arena_restore(Engine *engine, const LedgerArena *record, uint32_t slot, Device *device, int fd,
                  Arena **ret_arena);
/** arena_find() - Return: NULL: no arena has this id. */
Arena *arena_find(const Engine *engine, uint64_t id);
/** arena_ref() - Return: the arena. */
Arena *arena_ref(Arena *arena);
/** arena_note_session() - the session has it open: the ledger keeps it for that session. */
void arena_note_session(Arena *arena, uint32_t session);
/** arena_unref() - the last reference ends the arena. NULL is fine. Return: NULL. */
Arena *arena_unref(Arena *arena);
DEFINE_CLEANUP(Arena, arena_unref)
/** arena_adopt_fd() - device memory that a worker created; @fd is consumed. The keeper gets a copy. */
void arena_adopt_fd(Arena *arena, int fd);
/** arena_give() - let the executor use it; the executor is told at most once. Return: 0, or -ENOMEM. */
int arena_give(Arena *arena, Executor *executor);
/**
 * arena_ask() - have the executor create it, unless it was asked already
 *
 * Return: 0, ARENA_E_ADDRESSES, or -ENOMEM.
 */
int arena_ask(Arena *arena, Executor *executor);
/** arena_ask_failure() - why arena_ask() returned @r. */
Failure *arena_ask_failure(const Arena *arena, int r);
/**
 * arena_made() - the executor created it, @fd is consumed: tell its maker
 * @address: where the executor mapped it
 *
 * Return: 0, or -ENOMEM: the executor may not use it yet.
 */
int arena_made(Arena *arena, Executor *executor, uint64_t address, int fd);
/** arena_failed() - it could not be created: tell its maker. Consumes @failure. */
void arena_failed(Arena *arena, Failure *failure);
/** arena_set_maker() - the submitter is told when it is created. */
void arena_set_maker(Arena *arena, Submitter *submitter);
/** mapping_forget() - the executor could not use the arena, or is gone. */
void mapping_forget(Mapping *mapping);
/** arena_is_sealed_image() - it is written and can never change again. */
bool arena_is_sealed_image(const Arena *arena);

#endif
