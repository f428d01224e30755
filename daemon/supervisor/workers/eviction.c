/* SPDX-License-Identifier: Apache-2.0 */
#include "eviction.h"

#include "jobs.h"
#include "pool.h"
#include "spares.h"
#include "worker.h"
#include "util/log.h"

#define MS_NS UINT64_C(1000000)

/* A worker whose process has not ended counts, because its context exists until then; a starting
 * worker may not have one yet. */
static bool eviction_counts(const Worker *worker, const Slot *slot) {
        return worker->executor.device == slot->device &&
               (worker->executor.slot != slot || worker->executor.is_express) &&
               worker->state != WORKER_STARTING && !worker->lacked_memory;
}

static unsigned eviction_count_others(const Slot *slot) {
        Worker *worker;
        unsigned n = 0;

        for (worker = slot->engine->workers->table; worker; worker = worker->hh.next)
                n += eviction_counts(worker, slot);
        return n;
}

static const AllowanceRule eviction_rule = {
        .n_free = EVICTION_FREE,
        .every_ns = EVICTION_EVERY_MS * MS_NS,
        .most_ns = EVICTION_EVERY_MS * MS_NS,
};

/* ---- elsewhere --------------------------------------------------------------- */

static bool eviction_is_pressed_on(const Slot *slot, const Device *device, uint64_t now_ns) {
        const Slot *other;

        for (other = slot->engine->slots; other; other = other->hh.next)
                if (other->device == device && other->key.domain == slot->key.domain)
                        return pressure_is_on(&other->pressure, now_ns);
        return false;
}

/* Otherwise its work would move in circles between devices that all lack memory. */
static bool eviction_has_alternative(const Slot *slot, uint64_t now_ns) {
        const Engine *engine = slot->engine;

        for (size_t i = 0; i < engine->n_devices; ++i) {
                const Device *device = &engine->devices[i];

                if (device != slot->device && health_takes_jobs(&device->health) &&
                    !eviction_is_pressed_on(slot, device, now_ns))
                        return true;
        }
        return false;
}

/* ---- here -------------------------------------------------------------------- */

/* None of its users may run anything yet. */
static bool eviction_is_held(const Slot *slot, uint64_t now_ns) {
        const Lane *lane;

        LIST_FOREACH (lane, &slot->lanes, slot_link)
                if (user_over_seconds(lane->user, now_ns) <= 0)
                        return false;
        return !LIST_EMPTY(&slot->lanes);
}

static bool eviction_is_wanted(const Slot *slot, uint64_t now_ns) {
        return slot_has_work(slot) && !eviction_is_held(slot, now_ns);
}

/* A worker that was asked recently: one that the driver holds for ever does not count. */
static bool eviction_is_under_way(const Worker *worker, uint64_t now_ns) {
        return worker->evicted_ns && now_ns < worker->evicted_ns + EVICTION_ENDING_MS * MS_NS;
}

/* An express worker may go at any time: its work goes back to the main worker. */
static bool eviction_may_take(const Worker *worker, uint64_t now_ns) {
        if (worker->state == WORKER_SPARE)
                return true;
        if (worker->executor.is_express)
                return worker->executor.is_ready;
        return provision_is_idle(&worker->executor) &&
               !eviction_is_wanted(worker->executor.slot, now_ns);
}

static unsigned eviction_rank(const Worker *worker) {
        if (worker->state == WORKER_SPARE)
                return 0;
        return worker->executor.is_express ? 1 : 2;
}

/* Spare workers go first, then express workers, idle ones before busy ones, then the one that has been
 * idle for longest. */
static bool eviction_is_better(const Worker *worker, const Worker *best) {
        bool is_busy = worker->executor.n_inflight > 0;

        if (!best || eviction_rank(worker) != eviction_rank(best))
                return !best || eviction_rank(worker) < eviction_rank(best);
        if (is_busy != (best->executor.n_inflight > 0))
                return !is_busy;
        return worker->executor.idle_ns < best->executor.idle_ns;
}

/* Return: NULL: all have work, or one is about to end. */
static Worker *eviction_choose(const Slot *slot, uint64_t now_ns) {
        Worker *worker, *best = NULL;

        for (worker = slot->engine->workers->table; worker; worker = worker->hh.next) {
                if (!eviction_counts(worker, slot))
                        continue;
                if (eviction_is_under_way(worker, now_ns))
                        return NULL;
                if (eviction_may_take(worker, now_ns) && eviction_is_better(worker, best))
                        best = worker;
        }
        return best;
}

static Worker *eviction_find(const Slot *slot, uint64_t now_ns) {
        if (!eviction_is_wanted(slot, now_ns) ||
            allowance_until(&slot->evictions, &eviction_rule, now_ns))
                return NULL;
        return eviction_choose(slot, now_ns);
}

/* If the evicted domain gets work at this moment, the waiting slot still starts first. A busy express
 * worker is stopped as soon as it is idle. */
static void eviction_take(Worker *worker, uint64_t now_ns) {
        Slot *slot = worker->executor.slot;

        worker->evicted_ns = now_ns;
        if (worker->state == WORKER_SPARE) {
                spares_give_way(worker);
                return;
        }
        if (worker->executor.is_express)
                express_retire(slot);
        else
                slot->retry_ns = MAX(slot->retry_ns, now_ns + EVICTION_YIELD_MS * MS_NS);
        if (provision_is_idle(&worker->executor))
                worker_stop(worker);
}

void eviction_make_room(Slot *slot) {
        uint64_t now_ns = uv_hrtime();
        Worker *worker = eviction_find(slot, now_ns);

        if (!worker)
                return;
        allowance_use(&slot->evictions, &eviction_rule, now_ns);
        if (worker->state == WORKER_SPARE)
                log_info(
                        "device %u has no memory for a worker of uid %u: a spare worker is stopped",
                        slot->device->index, slot->key.domain);
        else
                log_info("device %u has no memory for a worker of uid %u: the %s worker of uid %u "
                         "is stopped",
                         slot->device->index, slot->key.domain,
                         worker->executor.is_express ? "express" : "idle", worker->domain);
        eviction_take(worker, now_ns);
}

void eviction_begin(Slot *slot, const char *why) {
        unsigned n_others = eviction_count_others(slot);
        uint64_t now_ns = uv_hrtime();

        if (!n_others) { /* programs other than gpuq's use the memory */
                provision_worker_failed(slot, why);
                return;
        }

        slot_lose_executor(slot);
        pressure_note(&slot->pressure, n_others, now_ns);
        slot->retry_ns = now_ns + pressure_delay_ns(&slot->pressure);
        if (eviction_has_alternative(slot, now_ns))
                offer_slot(slot);
        if (eviction_find(slot, now_ns))
                (void)claim_make(slot, CLAIM_FULL, why);
        provision_slot(slot);
}

void eviction_freed(Device *device) {
        uint64_t now_ns = uv_hrtime();
        Slot *slot, *first = NULL;

        for (slot = device->engine->slots; slot; slot = slot->hh.next) {
                if (slot->device != device || slot->executor || !slot->pressure.n_others ||
                    slot->pressure.was_in_vain || !eviction_is_wanted(slot, now_ns))
                        continue;
                if (!first || slot->pressure.since_ns < first->pressure.since_ns)
                        first = slot;
        }
        if (!first)
                return;

        first->pressure.was_woken = true;
        first->retry_ns = 0;
        provision_slot(first);
}
