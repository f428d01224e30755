/* SPDX-License-Identifier: Apache-2.0 */
#include "arena.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include "device.h"
#include "engine.h"
#include "executor.h"
#include "util/list.h"

static int arena_make_memfd(Arena *arena) {
        int seals = F_SEAL_SHRINK | F_SEAL_GROW;
        _cleanup_(closep) int fd = -1;
        char name[48];

        snprintf(name, sizeof(name), "gpuq-arena-%llu", (unsigned long long)arena->id);
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        if (ftruncate(fd, (off_t)arena->size) < 0)
                return -errno;
        /* The client of an image adds F_SEAL_WRITE itself, after filling the image. */
        if (arena->place == ARENA_HOST)
                seals |= F_SEAL_SEAL;
        if (fcntl(fd, F_ADD_SEALS, seals) < 0)
                return -errno;

        arena_adopt_fd(arena, TAKE_FD(fd));
        return 0;
}

/* In the tables, without a charge. Return: NULL: out of memory. */
static Arena *arena_alloc(Engine *engine, User *user, ArenaPlace place, uint64_t id,
                          uint64_t size) {
        Arena *arena = calloc(1, sizeof(*arena));

        if (!arena)
                return NULL;

        arena->engine = engine;
        arena->user = user;
        arena->place = place;
        arena->size = size;
        arena->fd = -1;
        arena->record = LEDGER_NONE;
        arena->n_refs = 1;
        LIST_INIT(&arena->mappings);
        arena->id = id;
        HASH_ADD(hh, engine->arenas.by_id, id, sizeof(arena->id), arena);
        if (!arena->hh.tbl) {
                free(arena);
                return NULL;
        }
        user_hold(user);
        return arena;
}

_Static_assert(sizeof(Arena) + sizeof(Mapping) + 128 <= FOOTPRINT_ARENA,
               "an arena takes more than gpuqd --check says");

static UserResource arena_resource(ArenaPlace place) {
        return place == ARENA_DEVICE ? USER_DEVICE_BYTES : USER_ARENA_BYTES;
}

static int arena_charge(Arena *arena) {
        int r;

        r = user_charge(arena->user, &arena->count, USER_ARENAS, 1);
        if (r == 0)
                r = user_charge(arena->user, &arena->charge, arena_resource(arena->place),
                                arena->size);
        return r;
}

/* ---- addresses ---------------------------------------------------------------------------- */

/* Regions are a person's: subordinate uids are too many for one each. */
static uint32_t arena_owner(const Arena *arena) {
        return (uint32_t)arena->user->person->uid;
}

/* They may be of either kind, as a restart may have changed that. Return: 0 or ARENA_E_ADDRESSES. */
static int arena_take_address(Arena *arena) {
        Engine *engine = arena->engine;

        if (config_is_fenced(engine->config)) {
                arena->address =
                        regions_take(&engine->arenas.regions, arena->size, arena_owner(arena));
                return arena->address ? 0 : ARENA_E_ADDRESSES;
        }
        arena->address = addresses_take(&engine->arenas.addresses, arena->size);
        regions_block(&engine->arenas.regions, arena->address, 1);
        return 0;
}

static Failure *arena_addresses_failure(const Arena *arena) {
        if (regions_has_one(&arena->engine->arenas.regions, arena_owner(arena)))
                return failure_new(FAILURE_MEMORY,
                                   "with fence = yes, as gpuqd is configured, %s has at most %llu "
                                   "GiB of addresses for device memory, and they are in use",
                                   arena->user->person->name,
                                   (unsigned long long)(FIXED_REGION_BYTES >> 30));
        return failure_new(FAILURE_MEMORY,
                           "with fence = yes, as gpuqd is configured, at most %llu users have "
                           "device memory, and as many have: try again when one has freed its own",
                           (unsigned long long)FIXED_REGIONS);
}

static void arena_claim_address(Arena *arena) {
        Engine *engine = arena->engine;

        if (fixed_region_is(arena->address))
                regions_claim(&engine->arenas.regions, arena->address, arena->size,
                              arena_owner(arena));
        else
                regions_block(&engine->arenas.regions, arena->address, 1);
        addresses_claim(&engine->arenas.addresses, arena->address);
}

static void arena_give_address(Arena *arena) {
        Engine *engine = arena->engine;

        if (fixed_region_is(arena->address))
                regions_give(&engine->arenas.regions, arena->address, arena->size);
        else
                regions_block(&engine->arenas.regions, arena->address, -1);
        addresses_give(&engine->arenas.addresses, arena->address);
}

/* ---- new ones ------------------------------------------------------------------------------ */

Failure *arena_quota_failure(const User *user, ArenaPlace place, uint64_t size) {
        if (!user_may_charge(user, USER_ARENAS, 1))
                return user_quota_failure(user, USER_ARENAS, 1);
        return user_quota_failure(user, arena_resource(place), size);
}

int arena_new(Engine *engine, User *user, ArenaPlace place, uint64_t size, Arena **ret_arena) {
        _cleanup_(arena_unrefp) Arena *arena = NULL;
        int r;

        ledger_note_id(engine->ledger, LEDGER_ARENA, ++engine->last.arena);
        arena = arena_alloc(engine, user, place, engine->last.arena, size);
        if (!arena)
                return -ENOMEM;
        if (arena_charge(arena) == USER_E_QUOTA)
                return ARENA_E_QUOTA;
        if (place != ARENA_DEVICE) {
                r = arena_make_memfd(arena);
                if (r < 0)
                        return r;
        }

        *ret_arena = TAKE_PTR(arena);
        return 0;
}

/* The arena was within its user's limits once: a smaller limit takes nothing away. */
int arena_restore(Engine *engine, const LedgerArena *record, uint32_t slot, Device *device, int fd,
                  Arena **ret_arena) {
        _cleanup_(closep) int owned = fd;
        Arena *arena;
        User *user;
        int r;

        r = user_get(engine, record->uid, record->gid, &user);
        if (r < 0)
                return r;
        arena = arena_alloc(engine, user, (ArenaPlace)record->place, record->id, record->size);
        if (!arena)
                return -ENOMEM;

        (void)arena_charge(arena);
        arena->fd = TAKE_FD(owned);
        arena->record = slot;
        arena->session = record->session;
        arena->device = device;
        arena->address = record->address;
        arena_claim_address(arena);
        if (device)
                device->arena_bytes += arena->size;
        *ret_arena = arena;
        return 0;
}

/* The record comes first: without it the keeper's descriptor means nothing. */
static void arena_record(Arena *arena) {
        Ledger *ledger = arena->engine->ledger;
        LedgerArena record = {
                .id = arena->id,
                .size = arena->size,
                .uid = (uint32_t)arena->user->uid,
                .gid = (uint32_t)arena->user->gid,
                .place = (uint32_t)arena->place,
                .session = arena->session,
                .address = arena->address,
        };

        if (arena->device)
                snprintf(record.device, sizeof(record.device), "%s", arena->device->uuid);
        if (arena->record == LEDGER_NONE)
                arena->record = ledger_add(ledger, LEDGER_ARENA, &record);
        else
                arena->record = ledger_change(ledger, LEDGER_ARENA, arena->record, &record);
}

void arena_adopt_fd(Arena *arena, int fd) {
        char key[KEEPER_KEY_MAX];

        assert(arena->fd < 0);
        arena->fd = fd;
        arena_record(arena);
        snprintf(key, sizeof(key), ARENA_KEY_FORMAT, (unsigned long long)arena->id);
        arena->kept_at = keeper_link_keep(arena->engine->keeper, key, fd);
}

void arena_note_session(Arena *arena, uint32_t session) {
        if (arena->session == session || arena->session == LEDGER_SHARED)
                return;
        arena->session = arena->session ? LEDGER_SHARED : session;
        arena_record(arena);
}

static void arena_forget_fd(Arena *arena) {
        char key[KEEPER_KEY_MAX];

        if (arena->fd < 0)
                return;
        /* Before the keeper's: who closes the last descriptor frees the memory, and the keeper has a
         * thread for that. */
        close(arena->fd);
        snprintf(key, sizeof(key), ARENA_KEY_FORMAT, (unsigned long long)arena->id);
        keeper_link_drop(arena->engine->keeper, key);
        ledger_drop(arena->engine->ledger, LEDGER_ARENA, arena->record);
}

void mapping_forget(Mapping *mapping) {
        LIST_REMOVE(mapping, link);
        HASH_DEL(mapping->executor->mappings, mapping);
        free(mapping);
}

static void mapping_drop(Mapping *mapping) {
        mapping->executor->engine->executor_ops->drop_arena(mapping->executor, mapping->id);
        mapping_forget(mapping);
}

static void arena_free(Arena *arena) {
        Mapping *mapping;

        while ((mapping = LIST_FIRST(&arena->mappings)))
                mapping_drop(mapping);
        assert(!arena->slot && !arena->maker);
        if (arena->device && arena->fd >= 0)
                arena->device->arena_bytes -= arena->size;
        HASH_DEL(arena->engine->arenas.by_id, arena);
        arena_forget_fd(arena);
        arena_give_address(arena);
        user_uncharge(&arena->charge);
        user_uncharge(&arena->count);
        user_release(arena->user);
        free(arena);
}

Arena *arena_find(const Engine *engine, uint64_t id) {
        Arena *arena;

        HASH_FIND(hh, engine->arenas.by_id, &id, sizeof(id), arena);
        return arena;
}

Arena *arena_ref(Arena *arena) {
        arena->n_refs++;
        return arena;
}

Arena *arena_unref(Arena *arena) {
        if (arena && --arena->n_refs == 0)
                arena_free(arena);
        return NULL;
}

static Submitter *arena_take_maker(Arena *arena) {
        Submitter *maker = arena->maker;

        if (maker)
                LIST_REMOVE(arena, maker_link);
        arena->maker = NULL;
        return maker;
}

static int arena_map(Arena *arena, Executor *executor) {
        Mapping *mapping;

        mapping = calloc(1, sizeof(*mapping));
        if (!mapping)
                return -ENOMEM;

        mapping->id = arena->id;
        mapping->executor = executor;
        HASH_ADD(hh, executor->mappings, id, sizeof(mapping->id), mapping);
        if (!mapping->hh.tbl) {
                free(mapping);
                return -ENOMEM;
        }
        LIST_INSERT_HEAD(&arena->mappings, mapping, link);
        return 0;
}

int arena_give(Arena *arena, Executor *executor) {
        Mapping *mapping = LIST_FIRST(&arena->mappings);
        int r;

        /* Most arenas are in one executor only. */
        if (mapping && mapping->executor == executor)
                return 0;
        HASH_FIND(hh, executor->mappings, &arena->id, sizeof(arena->id), mapping);
        if (mapping)
                return 0;

        r = executor->engine->executor_ops->push_arena(executor, arena, false);
        if (r < 0)
                return r;
        return arena_map(arena, executor);
}

int arena_ask(Arena *arena, Executor *executor) {
        int r;

        if (arena->asked_worker == executor->id)
                return 0;
        r = arena->address ? 0 : arena_take_address(arena);
        if (r)
                return r;
        r = executor->engine->executor_ops->push_arena(executor, arena, true);
        if (r == 0)
                arena->asked_worker = executor->id;
        return r;
}

Failure *arena_ask_failure(const Arena *arena, int r) {
        if (r == ARENA_E_ADDRESSES)
                return arena_addresses_failure(arena);
        return failure_new(FAILURE_MEMORY, "gpuqd has no memory to request the arena");
}

int arena_made(Arena *arena, Executor *executor, uint64_t address, int fd) {
        Submitter *maker = arena_take_maker(arena);
        int r;

        if (address != arena->address) {
                arena_give_address(arena);
                arena->address = 0;
        }
        arena->device = executor->device;
        executor->device->arena_bytes += arena->size;
        arena_adopt_fd(arena, fd);
        r = arena_map(arena, executor);
        if (maker)
                maker->ops->arena_ready(maker, arena);
        return r;
}

void arena_failed(Arena *arena, Failure *failure) {
        Submitter *maker = arena_take_maker(arena);

        if (maker)
                maker->ops->arena_failed(maker, arena, failure);
        failure_free(failure);
}

void arena_set_maker(Arena *arena, Submitter *submitter) {
        arena->maker = submitter;
        LIST_INSERT_HEAD(&submitter->making, arena, maker_link);
}

bool arena_is_sealed_image(const Arena *arena) {
        const int wanted = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
        int seals;

        if (arena->place != ARENA_IMAGE)
                return false;
        seals = fcntl(arena->fd, F_GET_SEALS);
        return seals >= 0 && (seals & wanted) == wanted;
}
