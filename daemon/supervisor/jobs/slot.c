/* SPDX-License-Identifier: Apache-2.0 */
#include "slot.h"

#include <assert.h>
#include <string.h>

#include "arena.h"
#include "engine.h"
#include "util/list.h"

static SlotKey slot_key(const Engine *engine, const User *user, const Device *device) {
        return (SlotKey){
                .domain = engine->config->isolation.shared ? 0 : user->uid,
                .device = device->index,
        };
}

static Slot *slot_of(Engine *engine, SlotKey key) {
        Slot *slot;

        HASH_FIND(hh, engine->slots, &key, sizeof(key), slot);
        return slot;
}

/* A burst, as when a user debugs; then it costs the others too many starts of contexts. */
static const AllowanceRule slot_restarts = {
        .n_free = 8,
        .every_ns = 1000000000,
        .most_ns = 4000000000,
        .forget_ns = 10000000000,
};

static void slot_on_close(uv_handle_t *handle) {
        Slot *slot = handle->data;

        free(slot->problem);
        free(slot);
}

Slot *slot_find(Engine *engine, const User *user, const Device *device) {
        return slot_of(engine, slot_key(engine, user, device));
}

Slot *slot_get(Engine *engine, const User *user, Device *device) {
        const SlotKey key = slot_key(engine, user, device);
        Slot *slot = slot_of(engine, key);

        if (slot)
                return slot;

        slot = calloc(1, sizeof(*slot));
        if (!slot)
                return NULL;
        if (uv_timer_init(engine->loop, &slot->retry) < 0) {
                free(slot);
                return NULL;
        }

        slot->key = key;
        slot->engine = engine;
        slot->device = device;
        slot->retry.data = slot;
        slot->allowances =
                engine->config->isolation.shared ? &slot->shared : &user->person->allowances;
        LIST_INIT(&slot->lanes);
        TAILQ_INIT(&slot->alone);
        TAILQ_INIT(&slot->making);
        TAILQ_INIT(&slot->loading);
        HASH_ADD(hh, engine->slots, key, sizeof(slot->key), slot);
        if (!slot->hh.tbl) {
                uv_close((uv_handle_t *)&slot->retry, slot_on_close);
                return NULL;
        }
        return slot;
}

/* NULL: its domain is all users. */
static User *slot_user(const Slot *slot) {
        const Engine *engine = slot->engine;
        User *user = NULL;

        if (!engine->config->isolation.shared)
                HASH_FIND(hh, engine->users, &slot->key.domain, sizeof(slot->key.domain), user);
        return user;
}

Sms slot_sms(const Slot *slot) {
        const User *user = slot_user(slot);

        return user ? user->person->limits.sms : (Sms){};
}

Failure *slot_charge_worker(const Slot *slot, UserCharge *charge) {
        User *user = slot_user(slot);

        if (!user || user_charge(user, charge, USER_WORKERS, 1) == 0)
                return NULL;
        return user_quota_failure(user, USER_WORKERS, 1);
}

void slot_lose_executor(Slot *slot) {
        slot->executor = NULL;
        user_uncharge(&slot->worker);
}

static void slot_close(Slot *slot) {
        Lane *lane;

        assert(!slot->executor && !slot->express);
        assert(TAILQ_EMPTY(&slot->alone));
        while ((lane = LIST_FIRST(&slot->lanes))) {
                assert(lane->queue.n_entries == 0);
                lane->user->lanes[lane->device->index] = NULL;
                LIST_REMOVE(lane, slot_link);
                free(lane);
        }
        quanta_forget(&slot->device->quanta, &slot->domain);
        HASH_DEL(slot->engine->slots, slot);
        uv_close((uv_handle_t *)&slot->retry, slot_on_close);
}

void slot_close_all(Engine *engine) {
        Slot *slot, *next;
        Lane *lane;

        /* A payer may be freed before the other lanes of its person. */
        for (slot = engine->slots; slot; slot = slot->hh.next)
                LIST_FOREACH (lane, &slot->lanes, slot_link)
                        lane_sleep(lane);
        HASH_ITER (hh, engine->slots, slot, next)
                slot_close(slot);
}

void slot_abandon(Slot *slot) {
        Arena *arena;

        while ((arena = TAILQ_FIRST(&slot->making)))
                slot_forget_arena(arena);
}

static int slot_grow_lanes(Device *device, User *user) {
        size_t n_lanes = device->engine->n_devices;
        Lane **lanes;

        if (user->n_lanes >= n_lanes)
                return 0;
        lanes = realloc(user->lanes, n_lanes * sizeof(*lanes));
        if (!lanes)
                return -ENOMEM;

        memset(lanes + user->n_lanes, 0, (n_lanes - user->n_lanes) * sizeof(*lanes));
        user->lanes = lanes;
        user->n_lanes = n_lanes;
        return 0;
}

Lane *slot_lane(Device *device, User *user) {
        Lane *payer = NULL, *lane;
        Slot *slot;

        if (slot_grow_lanes(device, user) < 0)
                return NULL;
        if (user->lanes[device->index])
                return user->lanes[device->index];

        if (user->person != user) {
                payer = slot_lane(device, user->person);
                if (!payer)
                        return NULL;
        }
        slot = slot_get(device->engine, user, device);
        if (!slot)
                return NULL;
        lane = calloc(1, sizeof(*lane));
        if (!lane)
                return NULL;

        lane->user = user;
        lane->device = device;
        lane->slot = slot;
        lane->payer = payer ? payer : lane;
        TAILQ_INIT(&lane->awake);
        queue_init(&lane->queue);
        shareuser_init(&lane->share, user->limits.weight);
        LIST_INSERT_HEAD(&slot->lanes, lane, slot_link);
        user->lanes[device->index] = lane;
        return lane;
}

static void slot_drop_lane(Lane *lane) {
        assert(!lane->is_awake && lane->queue.n_entries == 0);
        lane->user->lanes[lane->device->index] = NULL;
        LIST_REMOVE(lane, slot_link);
        free(lane);
}

void slot_drop_user(Slot *slot, User *user) {
        unsigned index = slot->device->index;

        if (index < user->n_lanes && user->lanes[index])
                slot_drop_lane(user->lanes[index]);
        if (slot->allowances != &slot->shared)
                slot_close(slot);
}

/* ---- work ------------------------------------------------------------------ */

bool slot_has_work(const Slot *slot) {
        const Lane *lane;

        if (!TAILQ_EMPTY(&slot->alone) || !TAILQ_EMPTY(&slot->making) ||
            !TAILQ_EMPTY(&slot->loading))
                return true;
        LIST_FOREACH (lane, &slot->lanes, slot_link)
                if (lane->queue.n_entries)
                        return true;
        return false;
}

void slot_wake(Slot *slot) {
        Lane *lane;

        slot->device->is_dirty = true;
        LIST_FOREACH (lane, &slot->lanes, slot_link)
                if (lane->queue.n_entries || !TAILQ_EMPTY(&slot->alone))
                        lane_wake(lane);
}

void slot_set_problem(Slot *slot, const char *problem) {
        char *copy = problem ? strdup(problem) : NULL;

        free(slot->problem); /* freed last: it may be the argument */
        slot->problem = copy;
}

void slot_note_restart(Slot *slot) {
        allowance_use(&slot->allowances->restarts, &slot_restarts, uv_hrtime());
}

uint64_t slot_restart_ns(const Slot *slot, uint64_t now_ns) {
        return allowance_until(&slot->allowances->restarts, &slot_restarts, now_ns);
}

bool slot_is_making(const Slot *slot, const Arena *arena) {
        return slot->executor && arena->asked_worker == slot->executor->id;
}

void slot_add_arena(Slot *slot, Arena *arena) {
        arena_ref(arena);
        arena->slot = slot;
        arena->is_waiting = true;
        if (slot)
                TAILQ_INSERT_TAIL(&slot->making, arena, wait_link);
        else
                TAILQ_INSERT_TAIL(&arena->engine->unplaced.arenas, arena, wait_link);
}

void slot_forget_arena(Arena *arena) {
        if (!arena->is_waiting)
                return;
        if (arena->slot)
                TAILQ_REMOVE(&arena->slot->making, arena, wait_link);
        else
                TAILQ_REMOVE(&arena->engine->unplaced.arenas, arena, wait_link);
        arena->is_waiting = false;
        arena->slot = NULL;
        arena_unref(arena);
}
