/* SPDX-License-Identifier: Apache-2.0 */
#include "offer.h"

#include "arena.h"
#include "choice.h"
#include "engine.h"
#include "module.h"
#include "place.h"
#include "provision.h"
#include "util/list.h"

static bool offer_any_takes_jobs(const Engine *engine) {
        for (size_t i = 0; i < engine->n_devices; ++i)
                if (health_takes_jobs(&engine->devices[i].health))
                        return true;
        return false;
}

static bool offer_is_waiting(const Job *job, const Slot *slot) {
        if (job->device != slot->device ||
            (job->place != JOB_QUEUED && job->place != JOB_ALONE && job->place != JOB_PARKED))
                return false;
        return job_lane(job)->slot == slot;
}

/* Jobs that cannot go elsewhere return to their old position. */
static void offer_move_jobs(Slot *slot) {
        const Lane *lane;
        Job *job, *next;

        LIST_FOREACH (lane, &slot->lanes, slot_link)
                TAILQ_FOREACH_SAFE (job, &lane->user->jobs, user_link, next) {
                        if (!offer_is_waiting(job, slot))
                                continue;
                        place_withdraw(job);
                        place_consider(job);
                }
}

/* In these lists, an entry that cannot move goes back to the end: the loop visits each entry once. */
static void offer_move_arenas(Slot *slot) {
        Arena *arena, *next;
        size_t n = 0;

        TAILQ_FOREACH (arena, &slot->making, wait_link)
                ++n;
        for (arena = TAILQ_FIRST(&slot->making); arena && n > 0; arena = next, --n) {
                next = TAILQ_NEXT(arena, wait_link);
                if (arena->wanted_device < 0 && !slot_is_making(slot, arena))
                        provision_arena(arena);
        }
}

static void offer_move_modules(Slot *slot) {
        Module *module;
        size_t n = 0;

        TAILQ_FOREACH (module, &slot->loading, wait_link)
                ++n;
        for (; n > 0 && (module = TAILQ_FIRST(&slot->loading)); --n)
                provision_module(module);
}

void offer_slot(Slot *slot) {
        if (slot->engine->n_devices < 2 || !offer_any_takes_jobs(slot->engine))
                return;
        offer_move_arenas(slot);
        offer_move_modules(slot);
        offer_move_jobs(slot);
}
