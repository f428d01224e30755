/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/room.h"

#include "supervisor/drain.h"
#include "supervisor/slot.h"
#include "supervisor/supervisor.h"
#include "supervisor/worker.h"
#include "util/log.h"

/* Those whose process has not ended count: its context is there until then. */
static bool room_takes(const Worker *worker, const Slot *slot) {
        return worker->device == slot->device && worker->slot != slot && !worker->found_no_room;
}

static unsigned room_count_others(const Slot *slot) {
        Worker *worker;
        unsigned n = 0;

        for (worker = slot->supervisor->workers; worker; worker = worker->hh.next)
                n += room_takes(worker, slot);
        return n;
}

/* The one that is idle for longest, of those without work before all others. Return: NULL: none may go. */
static Worker *room_choose(const Slot *slot, bool may_have_work) {
        Worker *worker, *best = NULL;
        bool best_works = true;

        for (worker = slot->supervisor->workers; worker; worker = worker->hh.next) {
                bool works;

                if (!room_takes(worker, slot) || !worker_is_spare(worker))
                        continue;
                works = slot_has_work(worker->slot);
                if (works && (!may_have_work || (best && !best_works)))
                        continue;
                if (best && best_works == works && worker->idle_ns >= best->idle_ns)
                        continue;
                best = worker;
                best_works = works;
        }
        return best;
}

static void room_take(Slot *slot, Worker *worker, uint64_t now_ns) {
        log_info("device %u has no room for a worker of uid %u: the idle one of uid %u ends",
                 slot->device->index, slot->key.domain, worker->domain);
        slot_not_before(worker->slot, now_ns + ROOM_TURN_MS * UINT64_C(1000000));
        worker_stop(worker);
}

static uint64_t room_delay_ns(const Room *room) {
        uint64_t delay_ms = ROOM_RETRY_MS;

        for (unsigned i = 1; i < room->n_tries && delay_ms < ROOM_RETRY_MAX_MS; ++i)
                delay_ms *= 2;
        return delay_ms * 1000000;
}

void room_lacks(Slot *slot, const char *why) {
        Room *room = &slot->room;
        uint64_t now_ns = uv_hrtime();
        Worker *worker;

        room->n_others = room_count_others(slot);
        if (!room->n_others) { /* programs that are not ours have it */
                slot_worker_failed(slot, why);
                return;
        }

        slot->worker = NULL;
        if (!room->n_tries++)
                room->since_ns = now_ns;
        slot_not_before(slot, now_ns + room_delay_ns(room));
        worker = room_choose(slot, now_ns - room->since_ns >= ROOM_TURN_MS * UINT64_C(1000000));
        if (worker)
                room_take(slot, worker, now_ns);
        drain_offer(slot);
        slot_poke(slot);
}

void room_found(Room *room) {
        *room = (Room){0};
}

void room_made(Device *device) {
        Slot *slot, *next;

        HASH_ITER(hh, device->supervisor->slots, slot, next) {
                if (slot->device != device || !slot->room.n_others || slot->worker)
                        continue;
                slot->retry_ns = 0;
                slot_poke(slot);
        }
}
