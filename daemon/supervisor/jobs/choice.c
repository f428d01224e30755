/* SPDX-License-Identifier: Apache-2.0 */
#include "choice.h"

#include "engine.h"
#include "job.h"
#include "slot.h"
#include "util/list.h"

#define CHOICE_START_NS 20000000ull /* the cost of starting a worker */
#define CHOICE_PATIENCE                                                                            \
        8u /* starting is free once the user has been busy for so many start times */
#define CHOICE_HOME_NS                                                                             \
        50000000ull /* the cost of each session of this user that has its memory there */
#define CHOICE_FULL_NS 40000000.0 /* the cost of a device whose memory is full */
#define CHOICE_BROKEN_NS                                                                           \
        86400000000000ull /* the cost of a device on which the user's worker does not start */
#define CHOICE_DRAINED_NS                                                                          \
        (366 * CHOICE_BROKEN_NS) /* a device that takes no jobs, chosen only if all are drained */
#define CHOICE_DENIED_NS                                                                           \
        (2 *                                                                                       \
         CHOICE_DRAINED_NS) /* a device that the user may not use, chosen only if it may use none */

static Slot *choice_slot(Device *device, User *user) {
        const Lane *lane = user_lane(user, device->index);

        return lane ? lane->slot : slot_find(device->engine, user, device);
}

/* Return: false: its worker cannot be there, as far as is known. */
static bool choice_can_start(const Slot *slot, uint64_t now_ns) {
        if (slot->claim || pressure_is_on(&slot->pressure, now_ns))
                return false;
        return slot->executor || !slot->problem;
}

/* Return: for how long the user has always had a job, beside the one that looks for a device. */
static uint64_t choice_pressed_ns(const User *user, uint64_t now_ns) {
        uint64_t since_ns = 0;

        if (user->n_waiting + user->n_running <= 1)
                return 0;
        for (size_t i = 0; i < user->n_lanes; ++i)
                if (user->lanes[i])
                        since_ns = MAX(since_ns, user->lanes[i]->busy_ns);
        return since_ns ? now_ns - since_ns : 0;
}

/*
 * The cost of starting a worker counts, so that a few short jobs do not start workers on every device
 * of the machine. It counts less the longer the user has been busy: a client waits for its short jobs
 * before it submits more, so their load never looks long.
 */
static uint64_t choice_start_ns(const User *user, uint64_t now_ns) {
        uint64_t pressed_ns = choice_pressed_ns(user, now_ns);

        return CHOICE_START_NS - MIN(CHOICE_START_NS, pressed_ns / CHOICE_PATIENCE);
}

/* By how much what is left of its jobs differs from their load, which counts them from their start. */
static int64_t choice_late_ns(const Executor *executor, uint64_t now_ns) {
        const Job *first = executor ? TAILQ_FIRST(&executor->inflight) : NULL;
        uint64_t load_ns, elapsed_ns;
        bool is_known;

        if (!first)
                return 0;
        is_known = !first->cost.is_unknown;
        load_ns = first->cost.expected_ns + (is_known ? 0 : PLACEMENT_UNKNOWN_NS);
        elapsed_ns = now_ns - MAX(first->clock.started_ns, executor->last_end_ns);
        return (int64_t)placement_left_ns(load_ns, elapsed_ns, is_known) - (int64_t)load_ns;
}

/* Once in a turn of the loop, and again if a long job has ended. */
static void choice_look_late(Device *device, uint64_t now_ns) {
        const Slot *slot;

        if (device->late_at_ns == now_ns)
                return;
        device->late_at_ns = now_ns;
        device->late_ns = 0;
        for (slot = device->engine->slots; slot; slot = slot->hh.next)
                if (slot->device == device)
                        device->late_ns += choice_late_ns(slot->executor, now_ns) +
                                           choice_late_ns(slot->express, now_ns);
}

/* What all users' jobs there will probably still take. */
uint64_t choice_work_ns(Device *device, uint64_t now_ns) {
        choice_look_late(device, now_ns);
        return (uint64_t)MAX((int64_t)device->load_ns + device->late_ns, 0);
}

static int64_t choice_late_of_ns(const Executor *executor, const User *user, uint64_t now_ns) {
        const Job *first = executor ? TAILQ_FIRST(&executor->inflight) : NULL;

        return first && first->user == user ? choice_late_ns(executor, now_ns) : 0;
}

uint64_t choice_own_ns(const Device *device, const User *user, uint64_t now_ns) {
        const Lane *lane = user_lane(user, device->index);
        int64_t own_ns;

        if (!lane)
                return 0;
        own_ns = (int64_t)lane->load_ns + choice_late_of_ns(lane->slot->executor, user, now_ns) +
                 choice_late_of_ns(lane->slot->express, user, now_ns);
        return (uint64_t)MAX(own_ns, 0);
}

static uint64_t choice_cost(Device *device, User *user, uint64_t now_ns) {
        Slot *slot = choice_slot(device, user);
        uint64_t cost_ns = choice_work_ns(device, now_ns);

        if (slot && !choice_can_start(slot, now_ns))
                cost_ns += CHOICE_BROKEN_NS;
        if (!slot || !slot->executor)
                cost_ns += choice_start_ns(user, now_ns);
        return cost_ns;
}

static bool choice_may_use(const User *user, size_t device) {
        return device < CONFIG_DEVICES_MAX && user->person->limits.devices >> device & 1;
}

static bool choice_may_use_any(const Engine *engine, const User *user) {
        for (size_t i = 0; i < engine->n_devices; ++i)
                if (choice_may_use(user, i))
                        return true;
        return false;
}

/* Every machine with one device, and most with several. */
static bool choice_is_free(const User *user) {
        return user->person->limits.devices == UINT64_MAX;
}

Failure *choice_check(const Engine *engine, const User *user, int wanted) {
        char allowed[CONFIG_DEVICES_TEXT];

        if (wanted >= (int)engine->n_devices)
                return engine_no_device(engine, (unsigned)wanted);
        if (choice_is_free(user) ||
            (wanted < 0 ? choice_may_use_any(engine, user) : choice_may_use(user, (size_t)wanted)))
                return NULL;

        config_devices_text(user->person->limits.devices, allowed);
        if (wanted < 0)
                return failure_new(
                        FAILURE_DENIED,
                        "gpuqd.conf allows user %s device %s only, which this machine does "
                        "not have; ask its administrator",
                        user->person->name, allowed);
        return failure_new(
                FAILURE_DENIED,
                "user %s may not use device %d: gpuqd.conf allows device %s (key devices)",
                user->person->name, wanted, allowed);
}

static uint64_t choice_penalty_ns(const Device *device, const User *user) {
        if (!choice_is_free(user) && !choice_may_use(user, device->index))
                return CHOICE_DENIED_NS;
        return health_takes_jobs(&device->health) ? 0 : CHOICE_DRAINED_NS;
}

bool choice_takes(Device *device, User *user, uint64_t now_ns) {
        const Slot *slot = choice_slot(device, user);

        return !choice_penalty_ns(device, user) && (!slot || choice_can_start(slot, now_ns));
}

/* Of the user's submitters who have their memory there, and of the memory that anybody has there. */
static uint64_t choice_memory_ns(const Device *device, const User *user) {
        const Lane *lane = user_lane(user, device->index);
        double part = (double)device->arena_bytes / (double)MAX(device->memory_total, 1u);

        return (lane ? lane->n_homes * CHOICE_HOME_NS : 0) +
               (uint64_t)(MIN(part, 1.0) * CHOICE_FULL_NS);
}

static Device *choice_cheapest(Engine *engine, User *user, bool for_memory) {
        uint64_t now_ns, best_ns = UINT64_MAX;
        Device *best = &engine->devices[0];

        if (engine->n_devices == 1)
                return best;
        now_ns = engine_now(engine);
        for (size_t i = 0; i < engine->n_devices; ++i) {
                Device *device = &engine->devices[i];
                uint64_t cost_ns =
                        choice_cost(device, user, now_ns) + choice_penalty_ns(device, user);

                if (for_memory)
                        cost_ns += choice_memory_ns(device, user);
                if (cost_ns < best_ns) {
                        best = device;
                        best_ns = cost_ns;
                }
        }
        return best;
}

Device *choice_device(Engine *engine, User *user) {
        return choice_cheapest(engine, user, false);
}

/* Where some of its memory is, the rest goes too, unless that device takes no jobs. */
static bool choice_may_stay(const Submitter *submitter) {
        const Lane *home = submitter->home;

        if (!home || choice_penalty_ns(home->device, submitter->user) > 0)
                return false;
        return submitter->is_settled || choice_can_start(home->slot, engine_now(submitter->engine));
}

Device *choice_home(Submitter *submitter) {
        Device *device;

        if (choice_may_stay(submitter))
                return submitter->home->device;
        device = choice_cheapest(submitter->engine, submitter->user, true);
        submitter_move(submitter, slot_lane(device, submitter->user));
        return device;
}
