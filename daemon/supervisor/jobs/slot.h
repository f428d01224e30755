/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SLOT_H
#define GPUQ_SUPERVISOR_SLOT_H

/*
 * Slot
 *
 * One trust domain on one device: the work for its worker, which outlives single workers.
 * provision.h starts the workers.
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
                domain; /* uid; 0 with isolation=shared, as for root: the keeper maps it to a uid */
        uint32_t device;
} SlotKey;

typedef enum Claim {
        CLAIM_NONE,
        CLAIM_BROKEN, /* the device is broken */
        CLAIM_FULL,   /* the device has no memory for a context */
} Claim;

struct Slot {
        SlotKey key;
        Engine *engine;
        Device *device;
        UT_hash_handle hh; /* engine->slots */

        Executor *executor; /* the main one. NULL: none; else starting, ready or stopping */
        UserCharge worker;  /* while it has one; not with isolation=shared */
        Executor *express;  /* for short jobs while that is held up (express.h); or NULL */
        UserCharge express_worker;
        uint64_t express_ns;             /* before this time none starts, and none gets work */
        QuantaDomain domain;             /* of device->quanta */
        LIST_HEAD(, Lane) lanes;         /* one; with isolation=shared one per user */
        TAILQ_HEAD(SlotJobs, Job) alone; /* jobs that must run alone */
        TAILQ_HEAD(, Arena) making;      /* device arenas */
        TAILQ_HEAD(, Module) loading;    /* modules that load for the first time */

        unsigned n_failures; /* consecutive failures to start an executor */
        char *problem;       /* why the latest one failed, for its users; NULL: one did start */
        Pressure pressure;   /* of the device's memory */
        uint64_t retry_ns;   /* no start before this time */
        uv_timer_t retry;

        size_t n_giving_up; /* jobs that fail because its worker does not start; it starts none meanwhile */
        TAILQ_ENTRY(Slot) giving_up_link; /* engine->giving_up */

        Claim claim; /* what its worker said of the device and no check has settled yet */
        Allowances *allowances; /* of its user's person, or `shared` */
        Allowances shared;      /* of its domain, if it has all users */
        Allowance evictions;    /* of other domains' workers */
};

/** slot_charge_worker() - before it gets an executor, with that one's charge. Return: NULL, or why there may be none now. */
Failure *slot_charge_worker(const Slot *slot, UserCharge *charge);
/** slot_sms() - the share of the SMs that the kernels of its next worker may use. */
Sms slot_sms(const Slot *slot);
/** slot_lose_executor() - it has no main executor any more. */
void slot_lose_executor(Slot *slot);
/** slot_find() - Return: the slot, or NULL. */
Slot *slot_find(Engine *engine, const User *user, const Device *device);
/** slot_get() - find or make it. Return: NULL: out of memory. */
Slot *slot_get(Engine *engine, const User *user, Device *device);
/** slot_abandon() - at the end of the program: fail what it still should create or load. */
void slot_abandon(Slot *slot);
/** slot_close_all() - at the end of the program: free all lanes, and close the slots' timers, which frees them. */
void slot_close_all(Engine *engine);

/** slot_has_work() - a worker has work that was not handed over yet. */
bool slot_has_work(const Slot *slot);
/** slot_wake() - jobs may be dispatched to it again. */
void slot_wake(Slot *slot);
/**
 * slot_add_arena() - its worker must create a DEVICE arena, which has one reference more until slot_forget_arena()
 * @slot: NULL: no device is known yet
 */
void slot_add_arena(Slot *slot, Arena *arena);
/** slot_forget_arena() - it was created or given up, or goes to another slot. Repeating it is harmless. */
void slot_forget_arena(Arena *arena);
/** slot_is_making() - a live worker was asked for this arena. */
bool slot_is_making(const Slot *slot, const Arena *arena);
/** slot_lane() - this user's lane on the device, made if missing. Return: NULL: out of memory. */
Lane *slot_lane(Device *device, User *user);
/** slot_drop_user() - the user, who has nothing on this device, is about to be freed: its lane, and a slot of its own. */
void slot_drop_user(Slot *slot, User *user);
/** slot_set_problem() - why its worker did not start; NULL: no problem. */
void slot_set_problem(Slot *slot, const char *problem);
/** slot_note_restart() - its worker has to start again because of what its users did. */
void slot_note_restart(Slot *slot);
/** slot_restart_ns() - when its next worker may start after too many such ends; 0: at once. */
uint64_t slot_restart_ns(const Slot *slot, uint64_t now_ns);

#endif
