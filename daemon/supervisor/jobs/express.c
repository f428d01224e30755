/* SPDX-License-Identifier: Apache-2.0 */
#include "express.h"

#include "util/list.h"

static bool express_is_held_up(const Executor *main) {
        return !main || !main->is_ready || main->n_long ||
               express_is_stalled(main, express_short_ns(main->engine));
}

static bool express_is_barred(const Slot *slot) {
        return !slot->engine->config->express || engine_now(slot->engine) < slot->express_ns;
}

bool express_is_used(const Slot *slot) {
        return slot->express && !express_is_barred(slot) && express_is_held_up(slot->executor);
}

bool express_may_start(const Slot *slot) {
        const Engine *engine = slot->engine;

        return !slot->express && express_may_help(slot) && !express_is_barred(slot) &&
               !engine->is_closing && !engine->is_paused && !slot->claim &&
               health_takes_jobs(&slot->device->health);
}

void express_start(Slot *slot) {
        _cleanup_(failure_freep) Failure *failure = NULL;
        Engine *engine = slot->engine;
        uint64_t now_ns, from_ns;

        if (!express_may_start(slot))
                return;
        now_ns = engine_now(engine);
        from_ns = slot_restart_ns(slot, now_ns);
        if (from_ns > now_ns) {
                slot->express_ns = from_ns;
                return;
        }

        failure = slot_charge_worker(slot, &slot->express_worker);
        if (failure)
                slot->express_ns = now_ns + EXPRESS_QUOTA_NS;
        else if (engine->executor_ops->start(engine->workers, slot, true, &slot->express) < 0)
                express_lost(slot, true);
}

void express_retire(Slot *slot) {
        slot->express_ns = engine_now(slot->engine) + EXPRESS_RETRY_NS;
}

void express_lost(Slot *slot, bool has_failed) {
        slot->express = NULL;
        user_uncharge(&slot->express_worker);
        if (has_failed)
                express_retire(slot);
}

uint64_t express_idle_ns(const Slot *slot) {
        return express_is_barred(slot) ? 0 : EXPRESS_IDLE_NS;
}
