/* SPDX-License-Identifier: Apache-2.0 */
#include "retire.h"

#include "device.h"
#include "engine.h"
#include "slot.h"
#include "user.h"

#define RETIRE_USE_NS 1000000.0 /* of a device: less is forgotten */

/* ---- what a user has --------------------------------------------------------- */

static bool retire_is_forgotten(const Allowance *allowance, uint64_t now_ns) {
        return !allowance->paid_ns || now_ns > allowance->paid_ns + RETIRE_NS;
}

/* What a user brought about is remembered for a while. */
static bool retire_slot_is_empty(const Slot *slot, uint64_t now_ns) {
        if (slot->allowances == &slot->shared)
                return true; /* it stays */
        return !slot->executor && !slot->express && !slot_has_work(slot) && !slot->claim &&
               retire_is_forgotten(&slot->evictions, now_ns);
}

static bool retire_lane_is_empty(const Lane *lane, uint64_t now_ns) {
        const FairShare *share = lane->device->share;

        if (lane->is_awake || lane->queue.n_entries || !TAILQ_EMPTY(&lane->awake))
                return false;
        return lane->payer != lane || fairshare_usage(share, &lane->share, now_ns) <= RETIRE_USE_NS;
}

static bool retire_has_device(const User *user, Device *device, uint64_t now_ns) {
        const Lane *lane = user_lane(user, device->index);
        const Slot *slot = slot_find(device->engine, user, device);

        return (lane && !retire_lane_is_empty(lane, now_ns)) ||
               (slot && !retire_slot_is_empty(slot, now_ns));
}

static bool retire_has_use(const User *user, uint64_t now_ns) {
        return user->person == user && user_window_seconds(user, now_ns) * 1e9 > RETIRE_USE_NS;
}

static bool retire_has_charge(const User *user) {
        for (size_t i = 0; i < _USER_RESOURCE_N; ++i)
                if (user->used[i])
                        return true;
        return false;
}

static bool retire_is_idle(const Engine *engine, const User *user, uint64_t now_ns) {
        if (user->n_sessions || user->n_held || !LIST_EMPTY(&user->sessions) ||
            !TAILQ_EMPTY(&user->jobs) || user->loads.n_running ||
            !TAILQ_EMPTY(&user->loads.waiting))
                return false;
        if (retire_has_charge(user) || retire_has_use(user, now_ns) ||
            !retire_is_forgotten(&user->allowances.disproved, now_ns) ||
            !retire_is_forgotten(&user->allowances.restarts, now_ns))
                return false;
        for (size_t i = 0; i < engine->n_devices; ++i)
                if (retire_has_device(user, &engine->devices[i], now_ns))
                        return false;
        return true;
}

/* ---- the end ------------------------------------------------------------------- */

static void retire_user(Engine *engine, User *user) {
        for (size_t i = 0; i < engine->n_devices; ++i) {
                Slot *slot = slot_find(engine, user, &engine->devices[i]);

                if (slot)
                        slot_drop_user(slot, user);
        }
        if (engine->ledger)
                ledger_forget(engine->ledger, user->uid);
        HASH_DEL(engine->users, user);
        user_leave_person(user);
        user_free(user);
}

void retire_users(Engine *engine, uint64_t now_ns) {
        User *user, *next;

        HASH_ITER (hh, engine->users, user, next) {
                if (!retire_is_idle(engine, user, now_ns))
                        user->idle_ns = 0;
                else if (!user->idle_ns)
                        user->idle_ns = now_ns;
                else if (now_ns - user->idle_ns >= RETIRE_NS)
                        retire_user(engine, user);
        }
}

/* Some may stay because of their workers. */
static void retire_parts(Engine *engine, const User *but, uint64_t now_ns) {
        User *user, *next;

        HASH_ITER (hh, engine->users, user, next)
                if (user != but && user->person != user && user->person == but->person &&
                    retire_is_idle(engine, user, now_ns))
                        retire_user(engine, user);
}

bool retire_make_room(Engine *engine, User *user, uint64_t now_ns) {
        const User *person = user->person;

        if (person == user || person->n_parts <= USER_PARTS_MAX)
                return true;
        retire_parts(engine, user, now_ns);
        if (person->n_parts <= USER_PARTS_MAX || !retire_is_idle(engine, user, now_ns))
                return true;
        retire_user(engine, user);
        return false;
}
