/* SPDX-License-Identifier: Apache-2.0 */
#include "room.h"

#include "devices.h"
#include "jobs.h"
#include "loop.h"
#include "worker.h"
#include "util/log.h"

#define MS_NS UINT64_C(1000000)

/* @now_ns may be that of the turn's begin, before the try. */
bool room_is_short(const Room *room, uint64_t now_ns) {
        return room->n_others && now_ns < room->tried_ns + ROOM_FORGET_MS * MS_NS;
}

void room_found(Room *room) {
        *room = (Room){0};
}

/* One whose process has not ended counts, for its context is there until then; one that starts may be without yet. */
static bool room_is_taken_by(const Worker *worker, const Slot *slot) {
        return worker->device == slot->device && worker->slot != slot &&
               worker->state != WORKER_STARTING && !worker->found_no_room;
}

static unsigned room_count_others(const Slot *slot) {
        Worker *worker;
        unsigned n = 0;

        for (worker = supervisor_of(slot->engine)->workers; worker; worker = worker->hh.next)
                n += room_is_taken_by(worker, slot);
        return n;
}

/* ---- elsewhere --------------------------------------------------------------- */

static bool room_is_short_on(const Slot *slot, const Device *device, uint64_t now_ns) {
        const Slot *other;

        for (other = slot->engine->slots; other; other = other->hh.next)
                if (other->device == device && other->key.domain == slot->key.domain)
                        return room_is_short(&other->room, now_ns);
        return false;
}

/* Or else its work would go round between devices that all lack it. */
static bool room_is_elsewhere(const Slot *slot, uint64_t now_ns) {
        const Engine *engine = slot->engine;

        for (size_t i = 0; i < engine->n_devices; ++i) {
                const Device *device = &engine->devices[i];

                if (device != slot->device && health_takes_jobs(&device->health) &&
                    !room_is_short_on(slot, device, now_ns))
                        return true;
        }
        return false;
}

/* ---- here -------------------------------------------------------------------- */

/* Of its users none may run anything yet. */
static bool room_is_held(const Slot *slot, uint64_t now_ns) {
        const Lane *lane;

        LIST_FOREACH (lane, &slot->lanes, slot_link)
                if (!lane->user->limits.gpu_seconds || user_over_seconds(lane->user, now_ns) <= 0)
                        return false;
        return !LIST_EMPTY(&slot->lanes);
}

static bool room_is_wanted(const Slot *slot, uint64_t now_ns) {
        return slot_has_work(slot) && !room_is_held(slot, now_ns);
}

/* One that was asked to, and does so yet: not one that the driver holds for ever. */
static bool room_is_being_made(const Worker *worker, uint64_t now_ns) {
        return worker->made_room_ns && now_ns < worker->made_room_ns + ROOM_ENDING_MS * MS_NS;
}

/* Return: NULL: all have work, or one is about to end. */
static Worker *room_choose(const Slot *slot, uint64_t now_ns) {
        Worker *worker, *best = NULL;

        for (worker = supervisor_of(slot->engine)->workers; worker; worker = worker->hh.next) {
                if (!room_is_taken_by(worker, slot))
                        continue;
                if (room_is_being_made(worker, now_ns))
                        return NULL;
                if (worker_is_spare(worker) && !room_is_wanted(worker->slot, now_ns) &&
                    (!best || worker->idle_ns < best->idle_ns))
                        best = worker;
        }
        return best;
}

/* Should there be work for it just then, the one that waits starts first. */
static void room_take(const Slot *slot, uint64_t now_ns) {
        Worker *worker = room_choose(slot, now_ns);

        if (!worker)
                return;
        log_info("device %u has no room for a worker of uid %u: the idle one of uid %u ends",
                 slot->device->index, slot->key.domain, worker->domain);
        worker->made_room_ns = now_ns;
        worker->slot->retry_ns = MAX(worker->slot->retry_ns, now_ns + ROOM_YIELD_MS * MS_NS);
        worker_stop(worker);
}

static uint64_t room_delay_ns(const Room *room) {
        uint64_t delay_ms = ROOM_RETRY_MS;

        for (unsigned i = 1; i < room->n_tries && delay_ms < ROOM_RETRY_MAX_MS; ++i)
                delay_ms *= 2;
        return delay_ms * MS_NS;
}

static void room_note_try(Room *room, unsigned n_others, uint64_t now_ns) {
        if (!room_is_short(room, now_ns))
                *room = (Room){.since_ns = now_ns};
        room->n_others = n_others;
        room->n_tries++;
        room->tried_ns = now_ns;
        room->was_in_vain = room->was_woken;
        room->was_woken = false;
}

void room_lacks(Slot *slot, const char *why) {
        unsigned n_others = room_count_others(slot);
        uint64_t now_ns = uv_hrtime();

        if (!n_others) { /* programs that are not ours have it */
                slot_worker_failed(slot, why);
                return;
        }

        slot->worker = NULL;
        room_note_try(&slot->room, n_others, now_ns);
        slot->retry_ns = now_ns + room_delay_ns(&slot->room);
        if (room_is_elsewhere(slot, now_ns))
                drain_offer(slot);
        if (room_is_wanted(slot, now_ns))
                room_take(slot, now_ns);
        slot_poke(slot);
}

void room_made(Device *device) {
        uint64_t now_ns = uv_hrtime();
        Slot *slot, *first = NULL;

        for (slot = device->engine->slots; slot; slot = slot->hh.next) {
                if (slot->device != device || slot->worker || !slot->room.n_others ||
                    slot->room.was_in_vain || !room_is_wanted(slot, now_ns))
                        continue;
                if (!first || slot->room.since_ns < first->room.since_ns)
                        first = slot;
        }
        if (!first)
                return;

        first->room.was_woken = true;
        first->retry_ns = 0;
        slot_poke(first);
}
