/* SPDX-License-Identifier: Apache-2.0 */
#include "choice.h"

#include "engine.h"
#include "job.h"
#include "slot.h"
#include "util/list.h"

#define CHOICE_START_NS 20000000ull /* the cost of starting a worker */
#define CHOICE_BROKEN_NS                                                                           \
        86400000000000ull /* the cost of a device on which the user's worker does not start */
#define CHOICE_DRAINED_NS                                                                          \
        (366 * CHOICE_BROKEN_NS) /* a device that takes no jobs, chosen only if all are drained */

static Slot *choice_slot(Device *device, User *user) {
        const Lane *lane = device->index < user->n_lanes ? user->lanes[device->index] : NULL;

        return lane ? lane->slot : slot_find(device->engine, user, device);
}

/* The cost of starting a worker counts, so that short jobs do not start workers on every device of
 * the machine. */
static uint64_t choice_cost(Device *device, User *user, uint64_t now_ns) {
        Slot *slot = choice_slot(device, user);
        uint64_t cost_ns = device->load_ns;
        Executor *executor;

        if (slot && (slot->claim || pressure_is_on(&slot->pressure, now_ns)))
                return cost_ns + CHOICE_BROKEN_NS;
        if (!slot || !slot->executor)
                return cost_ns + CHOICE_START_NS + (slot && slot->problem ? CHOICE_BROKEN_NS : 0);

        executor = slot->executor;
        if (!TAILQ_EMPTY(&executor->inflight))
                cost_ns += now_ns - TAILQ_FIRST(&executor->inflight)->clock.started_ns;
        return cost_ns;
}

static uint64_t choice_penalty_ns(const Device *device) {
        return health_takes_jobs(&device->health) ? 0 : CHOICE_DRAINED_NS;
}

Device *choice_device(Engine *engine, User *user) {
        uint64_t now_ns, best_ns = UINT64_MAX;
        Device *best = &engine->devices[0];

        if (engine->n_devices == 1)
                return best;
        now_ns = engine_now(engine);
        for (size_t i = 0; i < engine->n_devices; ++i) {
                Device *device = &engine->devices[i];
                uint64_t cost_ns = choice_cost(device, user, now_ns) + choice_penalty_ns(device);

                if (cost_ns < best_ns) {
                        best = device;
                        best_ns = cost_ns;
                }
        }
        return best;
}
