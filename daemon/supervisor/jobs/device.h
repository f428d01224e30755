/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DEVICE_H
#define GPUQ_SUPERVISOR_DEVICE_H

/*
 * Device
 *
 * One GPU: who shares it, how much is expected to run on it, the quanta in which
 * one trust domain after the other runs on it, and the gate that bounds what is in
 * flight on it by expected time, whichever user's it is, so that the next pick
 * counts. A job that outlasts its time holds neither any longer: others then run
 * beside it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <uv.h>

#include "policy.h"
#include "job.h"

#define DEVICE_GRACE_MAX_NS 50000000ull /* how long a long job may hold the gate */
#define DEVICE_START_NS     20000000ull /* what starting a worker counts when a device is chosen */
#define DEVICE_BROKEN_NS    86400000000000ull /* and what a device counts on which none started */
#define DEVICE_DRAINED_NS   (366 * DEVICE_BROKEN_NS) /* and one that takes no jobs, if none does */

typedef struct Device Device;
typedef struct Slot Slot;
typedef struct Engine Engine;

/* One user on one device. */
struct Lane {
        User *user;
        Device *device;
        Slot *slot;
        ShareUser share;
        Queue queue;
        LIST_ENTRY(Lane) slot_link; /* slot->lanes */
};

struct Device {
        Engine *engine;
        unsigned index;
        char *name;
        char *uuid;
        char *pci;
        uint64_t memory_total; /* bytes */
        uint64_t arena_bytes;
        char *problem; /* why no worker of a user started there; NULL: one did */
        Health health;

        FairShare *share;
        Quanta quanta;
        uint64_t load_ns;    /* expected, of jobs that could run or do */
        uint64_t counted_ns; /* of it, what is in the gate */
        uint32_t n_queued;
        uint32_t n_running;
        uint64_t gpu_ns; /* all users together, in all */
        uint64_t n_xids; /* that the kernel's log told of it */
        bool is_dirty;   /* something may be dispatched */

        uv_timer_t gate;  /* when the first job in it has outlasted its quantum */
        uv_timer_t turn;  /* when a quantum has ended, or its domain did not drain */
        uint64_t turn_ns; /* what that is set to */
        bool has_timers;
};

/** device_init() - in zeroed memory; names are copied. Return: 0, or a negative errno. */
int device_init(Device *device, Engine *engine, unsigned index, const char *name, const char *uuid,
                const char *pci, uint64_t memory_total);
/** device_fini() - its timer was closed by device_close(). */
void device_fini(Device *device);
/** device_configure() - take from the configuration what concerns its users' shares. */
void device_configure(Device *device);
/** device_close() - end its timers; the loop must run once more. */
void device_close(Device *device);
/** device_state() - "ready", or what is wrong with it; the device's, until it changes. */
const char *device_state(const Device *device);
/** device_set_problem() - NULL: it is well. */
void device_set_problem(Device *device, const char *problem);

/** device_choose() - the least loaded that takes jobs, seen by this user; if none does, one that will. */
Device *device_choose(Engine *engine, User *user);
/** device_lane() - this user's; made when missing. Return: NULL: no memory. */
Lane *device_lane(Device *device, User *user);

/** device_gate_is_open() - may one more job go? Else the gate will say when. */
bool device_gate_is_open(Device *device);
/** device_turn() - whose job goes next: @pick's, to whom fair share points and who has one that
 * could go now, or that of the user whose quantum it is. Return: NULL: nobody's; it will be said when. */
Lane *device_turn(Device *device, Lane *pick, uint64_t now_ns);
/** device_enter() - a job is dispatched. */
void device_enter(Device *device, Job *job);
/** device_leave() - it ended, or went back. Twice is harmless. */
void device_leave(Device *device, Job *job, uint64_t now_ns);

#endif
