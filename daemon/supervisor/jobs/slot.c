/* SPDX-License-Identifier: Apache-2.0 */
#include "slot.h"

#include <assert.h>

#include "ending.h"
#include "util/list.h"
#include "scheduler.h"
#include "engine.h"
#include "executor.h"
#include "util/log.h"

static SlotKey slot_key(const Engine *engine, const User *user, const Device *device) {
        return (SlotKey){
                .domain = engine->config->isolation_shared ? 0 : user->uid,
                .device = device->index,
        };
}

static Slot *slot_of(Engine *engine, SlotKey key) {
        Slot *slot;

        HASH_FIND(hh, engine->slots, &key, sizeof(key), slot);
        return slot;
}

static void slot_on_close(uv_handle_t *handle) {
        free(handle->data);
}

Slot *slot_find(Engine *engine, const User *user, const Device *device) {
        return slot_of(engine, slot_key(engine, user, device));
}

Slot *slot_get_domain(Engine *engine, uint32_t domain, uint32_t gid, Device *device) {
        const SlotKey key = {.domain = domain, .device = device->index};
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
        slot->gid = gid;
        slot->retry.data = slot;
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

Slot *slot_get(Engine *engine, const User *user, Device *device) {
        uint32_t gid = engine->config->isolation_shared ? 0 : user->gid;

        return slot_get_domain(engine, slot_key(engine, user, device).domain, gid, device);
}

void slot_close(Slot *slot) {
        Lane *lane;

        assert(!slot->executor);
        assert(TAILQ_EMPTY(&slot->alone));
        while ((lane = LIST_FIRST(&slot->lanes))) {
                assert(lane->queue.n_entries == 0);
                fairshare_sleep(lane->device->share, &lane->share);
                lane->user->lanes[lane->device->index] = NULL;
                LIST_REMOVE(lane, slot_link);
                free(lane);
        }
        quanta_forget(&slot->device->quanta, &slot->domain);
        HASH_DEL(slot->engine->slots, slot);
        uv_close((uv_handle_t *)&slot->retry, slot_on_close);
}

void slot_abandon(Slot *slot) {
        Arena *arena;

        while ((arena = TAILQ_FIRST(&slot->making)))
                slot_forget_arena(slot, arena);
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
                        scheduler_wake(lane);
}

static void slot_serve_arenas(Slot *slot) {
        Arena *arena, *next;

        TAILQ_FOREACH_SAFE (arena, &slot->making, slot_link, next) {
                if (executor_make_arena(slot->executor, arena) == 0)
                        continue;
                arena_failed(arena, failure_new(FAILURE_MEMORY, "no memory to ask for the arena"));
                slot_forget_arena(slot, arena);
        }
}

static void slot_serve_modules(Slot *slot) {
        Module *module, *next;

        TAILQ_FOREACH_SAFE (module, &slot->loading, wait_link, next)
                if (!executor_find_instance(slot->executor, module) &&
                    !executor_add_instance(slot->executor, module))
                        module_failed(module, failure_new(FAILURE_MEMORY, "no memory to load %s",
                                                          module->name));
}

static void slot_on_retry(uv_timer_t *timer) {
        slot_poke(timer->data);
}

/* One that failed there does not try again before it is known whether the device is well. */
static bool slot_may_start(const Slot *slot) {
        const Health *health = &slot->device->health;

        if (slot->engine->is_closing || slot->engine->is_paused || !slot_has_work(slot))
                return false;
        return !(health->state == HEALTH_DOUBTED && slot->n_failures);
}

static void slot_start(Slot *slot) {
        uint64_t now_ns = uv_hrtime(), from_ns;
        int r;

        if (!slot_may_start(slot))
                return;
        from_ns = MAX(slot->retry_ns, crashes_until(&slot->crashes, now_ns));
        if (now_ns < from_ns) {
                uv_timer_start(&slot->retry, slot_on_retry, (from_ns - now_ns) / 1000000 + 1, 0);
                return;
        }

        r = slot->engine->executor_ops->start(slot->engine->workers, slot, &slot->executor);
        if (r < 0)
                slot_worker_failed(slot, strerror(-r));
}

double slot_crash_wait_s(const Slot *slot) {
        uint64_t now_ns = uv_hrtime(), until_ns = crashes_until(&slot->crashes, now_ns);

        return until_ns > now_ns ? (double)(until_ns - now_ns) / 1e9 : 0;
}

void slot_poke(Slot *slot) {
        if (!health_takes_jobs(&slot->device->health))
                return;
        if (!slot->executor) {
                slot_start(slot);
                return;
        }
        if (!slot->executor->is_ready)
                return;

        slot_serve_arenas(slot);
        slot_serve_modules(slot);
        slot_wake(slot);
}

bool slot_is_making(const Slot *slot, const Arena *arena) {
        return slot->executor && arena->asked_worker == slot->executor->id;
}

void slot_make_arena(Slot *slot, Arena *arena) {
        arena->slot = slot;
        arena_ref(arena);
        TAILQ_INSERT_TAIL(&slot->making, arena, slot_link);
        slot_poke(slot);
}

void slot_forget_arena(Slot *slot, Arena *arena) {
        TAILQ_REMOVE(&slot->making, arena, slot_link);
        arena->slot = NULL;
        arena_unref(arena);
}

/* ---- workers come and go --------------------------------------------------- */

void slot_worker_ready(Slot *slot) {
        pressure_clear(&slot->pressure);
        device_set_problem(slot->device, NULL);
        slot_poke(slot);
}

void slot_worker_lost(Slot *slot, bool crashed) {
        slot->executor = NULL;
        if (crashed)
                crashes_add(&slot->crashes, uv_hrtime());
        slot_poke(slot);
}

static void slot_give_up_jobs(Slot *slot, const char *why) {
        QueueEntry *entry;
        Lane *lane;
        Job *job;

        while ((job = TAILQ_FIRST(&slot->alone)))
                ending_fail(job, failure_new(FAILURE_NO_DEVICE, "device %u: %s",
                                             slot->device->index, why));
        LIST_FOREACH (lane, &slot->lanes, slot_link)
                while ((entry = queue_pick(&lane->queue, NULL, NULL)))
                        ending_fail(container_of(entry, Job, entry),
                                    failure_new(FAILURE_NO_DEVICE, "device %u: %s",
                                                slot->device->index, why));
}

static void slot_give_up(Slot *slot, const char *why) {
        Arena *arena;
        Module *module;

        log_warning("device %u, uid %u: no worker after %u tries: %s", slot->device->index,
                    slot->key.domain, slot->n_failures, why);
        device_set_problem(slot->device, why);

        while ((arena = TAILQ_FIRST(&slot->making))) {
                arena_failed(arena, failure_new(FAILURE_NO_DEVICE, "device %u: %s",
                                                slot->device->index, why));
                slot_forget_arena(slot, arena);
        }
        while ((module = TAILQ_FIRST(&slot->loading)))
                module_failed(module, failure_new(FAILURE_NO_DEVICE, "device %u: %s",
                                                  slot->device->index, why));
        slot_give_up_jobs(slot, why);
}

static bool slot_is_hopeless(const Slot *slot) {
        return slot->n_failures >= SLOT_TRIES_MAX && health_takes_jobs(&slot->device->health);
}

void slot_worker_failed(Slot *slot, const char *why) {
        uint64_t delay_ms = SLOT_RETRY_MS;

        slot->executor = NULL;
        slot->n_failures++;
        pressure_clear(&slot->pressure);
        for (unsigned i = 1; i < slot->n_failures && delay_ms < SLOT_RETRY_MAX_MS; ++i)
                delay_ms *= 2;
        slot->retry_ns = uv_hrtime() + MIN(delay_ms, (uint64_t)SLOT_RETRY_MAX_MS) * 1000000;

        /* Where the device is to blame, what is to be done there waits for it. */
        if (slot_is_hopeless(slot) && slot->device->health.state == HEALTH_WELL)
                slot_give_up(slot, why);
        slot_poke(slot);
}

void slot_device_is_well(Slot *slot, const char *why) {
        if (slot_is_hopeless(slot))
                slot_give_up(slot, why);
        slot_poke(slot);
}
