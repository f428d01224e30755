/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SLOT_H
#define GPUQ_SUPERVISOR_SLOT_H

/*
 * Slot
 *
 * The place of one trust domain on one device: what its worker is to do, while
 * workers come and go. Starts one when there is something to do, tries again
 * later when that fails, and gives the work up when it keeps failing.
 */

#include <stdint.h>
#include <sys/queue.h>

#include <uv.h>

#include "arena.h"
#include "policy.h"
#include "device.h"
#include "module.h"
#include "policy.h"
#include "util/table.h"

#define SLOT_TRIES_MAX    3u   /* workers that fail to start before the work is given up */
#define SLOT_RETRY_MS     250u /* before the second try; doubles */
#define SLOT_RETRY_MAX_MS 30000u

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
/** slot_poke() - it has something to do: start a executor, or hand it over. */
void slot_poke(Slot *slot);
/** slot_wake() - jobs may be dispatched to it again. */
void slot_wake(Slot *slot);
/** slot_make_arena() - have a DEVICE arena made; takes a reference until it is. */
void slot_make_arena(Slot *slot, Arena *arena);
/** slot_forget_arena() - made, or given up: lets the reference go. */
void slot_forget_arena(Slot *slot, Arena *arena);

/** slot_offer() - what waits in it, and may run on another device that takes jobs, goes there. */
void slot_offer(Slot *slot);
/** slot_is_making() - a worker that lives was asked for this arena. */
bool slot_is_making(const Slot *slot, const Arena *arena);
/** slot_crash_wait_s() - until its next worker may start, for those before it died too often; 0: now. */
double slot_crash_wait_s(const Slot *slot);

/** slot_worker_ready() - its worker came up. */
void slot_worker_ready(Slot *slot);
/** slot_worker_lost() - its worker is gone, or as good as. @crashed: by a job of it. */
void slot_worker_lost(Slot *slot, bool crashed);
/** slot_device_is_well() - what its workers said of the device, @why, was their own trouble. */
void slot_device_is_well(Slot *slot, const char *why);
/** slot_worker_failed() - the same, and it never came up: @why. */
void slot_worker_failed(Slot *slot, const char *why);

#endif
