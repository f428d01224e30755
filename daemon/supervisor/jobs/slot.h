/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SLOT_H
#define GPUQ_SUPERVISOR_SLOT_H

/*
 * Slot
 *
 * The place of one trust domain on one device: what its worker is to do, while
 * workers come and go. provision.h starts the workers.
 */

#include <stdint.h>
#include <sys/queue.h>

#include <uv.h>

#include "device.h"
#include "executor.h"
#include "policy.h"
#include "user.h"
#include "util/table.h"

typedef struct SlotKey {
        uint32_t
                domain; /* uid; 0 with isolation=shared, as for root: the keeper knows who that is */
        uint32_t device;
} SlotKey;

struct Slot {
        SlotKey key;
        Engine *engine;
        Device *device;
        uint32_t gid;
        UT_hash_handle hh; /* engine->slots */

        Executor *executor;              /* NULL: none; else starting, ready or stopping */
        QuantaDomain domain;             /* of device->quanta */
        LIST_HEAD(, Lane) lanes;         /* one; with isolation=shared one for each user */
        TAILQ_HEAD(SlotJobs, Job) alone; /* to be run with nothing beside them */
        TAILQ_HEAD(, Arena) making;      /* device arenas */
        TAILQ_HEAD(, Module) loading;    /* modules that load for the first time */

        unsigned n_failures; /* to start a executor, in a row */
        Pressure pressure;   /* of the device's memory */
        uint64_t retry_ns;   /* not before */
        Crashes crashes;     /* of workers that came up */
        uv_timer_t retry;
};

/** slot_find() - Return: the slot, or NULL. */
Slot *slot_find(Engine *engine, const User *user, const Device *device);
/** slot_get() - found or made. Return: NULL: no memory. */
Slot *slot_get(Engine *engine, const User *user, Device *device);
/** slot_get_domain() - the same for a domain of which no user has come yet. */
Slot *slot_get_domain(Engine *engine, uint32_t domain, uint32_t gid, Device *device);
/** slot_abandon() - at the end of the program: what it was still to make or load is not wanted. */
void slot_abandon(Slot *slot);
/** slot_close() - at the end of the program: its lanes go, its timer closes and frees it. */
void slot_close(Slot *slot);

/** slot_has_work() - there is something for a worker to do that it was not given yet. */
bool slot_has_work(const Slot *slot);
/** slot_wake() - jobs may be dispatched to it again. */
void slot_wake(Slot *slot);
/** slot_add_arena() - a DEVICE arena that its worker is to make; takes a reference until it is made. */
void slot_add_arena(Slot *slot, Arena *arena);
/** slot_forget_arena() - made, or given up: lets the reference go. */
void slot_forget_arena(Slot *slot, Arena *arena);
/** slot_is_making() - a worker that lives was asked for this arena. */
bool slot_is_making(const Slot *slot, const Arena *arena);
/** slot_lane() - this user's on the device; made when missing. Return: NULL: no memory. */
Lane *slot_lane(Device *device, User *user);
/** slot_crash_wait_s() - until its next worker may start, for those before it died too often; 0: now. */
double slot_crash_wait_s(const Slot *slot);

#endif
