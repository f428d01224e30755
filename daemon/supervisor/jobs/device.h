/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DEVICE_H
#define GPUQ_SUPERVISOR_DEVICE_H

/*
 * Device
 *
 * One GPU: its health, the users that share it, and the expected time of its jobs. A Lane is one
 * user on one device. gate.h decides what may be in flight on a device, choice.h which device a job
 * gets.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <uv.h>

#include "policy.h"

typedef struct Device Device;
typedef struct DeviceInfo DeviceInfo;
typedef struct Lane Lane;
typedef struct Slot Slot;
typedef struct User User;
typedef struct Engine Engine;

/*
 * One user on one device. The lanes of one person have one share of the device, that of their payer,
 * and take turns in it.
 */
struct Lane {
        User *user;
        Device *device;
        Slot *slot;
        Lane *payer;                  /* the lane of the user's person; often itself */
        ShareUser share;              /* of a payer */
        TAILQ_HEAD(, Lane) awake;     /* of a payer: its lanes that may have a job to dispatch */
        TAILQ_ENTRY(Lane) awake_link; /* payer->awake */
        bool is_awake;
        Queue queue;
        uint64_t load_ns;           /* its part of the device's load */
        uint32_t n_unknown;         /* jobs of unknown duration in it */
        uint32_t n_homes;           /* of its user's submitters */
        uint64_t busy_ns;           /* when a job came while its user had no other */
        LIST_ENTRY(Lane) slot_link; /* slot->lanes */
};

struct Device {
        Engine *engine;
        unsigned index;
        char *name;
        char *uuid;
        char *pci;
        uint64_t memory_total; /* bytes */
        uint64_t peers;        /* a bit for each device, by its index, whose memory it can access */
        uint64_t near; /* those of them on whose memory its atomic operations work as on its own */
        uint64_t arena_bytes;
        uint64_t used_bytes; /* by all programs, as a worker measured last; 0: none has */
        Health health;

        FairShare *share;
        Quanta quanta;
        uint64_t load_ns;    /* expected time of jobs that are queued or running, see placement.h */
        uint64_t late_at_ns; /* when `late_ns` was computed; 0: a long job has ended since */
        int64_t late_ns;     /* by how much the load differs from what is left, see choice.c */
        uint64_t counted_ns; /* the part of it that is in the gate */
        uint32_t n_queued;
        uint32_t n_awake; /* lanes */
        uint32_t n_running;
        uint64_t gpu_ns;   /* of all users, since the start */
        uint64_t n_xids;   /* reported by the kernel's log */
        bool is_dirty;     /* something may be dispatched */
        uint64_t spare_ns; /* before this time no spare worker starts */

        uv_timer_t gate;  /* fires when the first job in the gate has outlasted its expected time */
        uv_timer_t turn;  /* fires when a quantum has ended, or its jobs are overdue */
        uint64_t turn_ns; /* the time that `turn` is set to */
        bool has_timers;
};

/** device_init() - in zeroed memory; @info is copied. Return: 0, or a negative errno. */
int device_init(Device *device, Engine *engine, unsigned index, const DeviceInfo *info);
/** device_fini() - device_close() must have closed its timers. */
void device_fini(Device *device);
/** device_configure() - apply the configured shares of its users. */
void device_configure(Device *device);
/** device_close() - close its timers; the loop must run once more. */
void device_close(Device *device);
/** device_state() - "ready", or why it is drained; valid until it changes. */
const char *device_state(const Device *device);

/** device_reaches() - can its jobs access memory of device @other? */
bool device_reaches(const Device *device, unsigned other);
/** device_is_near() - do kernels give the same results on @device with their data on @other, or there? */
bool device_is_near(const Device *device, const Device *other);

/** device_driver() - "cuda" or "cpu", as far as known. */
const char *device_driver(const Engine *engine);
/** device_is_on_cpu() - the devices belong to the CPU driver, as far as known. */
bool device_is_on_cpu(const Engine *engine);

/** lane_wake() - its user may have a job to dispatch there. */
void lane_wake(Lane *lane);
/** lane_sleep() - its user has none now. Repeating it is harmless. */
void lane_sleep(Lane *lane);
/** lane_pick() - the lane whose turn it is. Return: NULL: all sleep. */
Lane *lane_pick(const Device *device);
/** lane_took_turn() - the other lanes of the same person come first now. */
void lane_took_turn(Lane *lane);

#endif
