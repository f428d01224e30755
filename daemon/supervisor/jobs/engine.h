/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ENGINE_H
#define GPUQ_SUPERVISOR_ENGINE_H

/*
 * Engine
 *
 * The tables of everything that jobs need: users, devices, slots, arenas, modules and unfinished
 * jobs, and the handles that the loop gives to this room. One per supervisor; all objects of the
 * room point to it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <uv.h>

#include "base.h"
#include "end_observer.h"
#include "limit.h"
#include "policy.h"
#include "resource.h"
#include "util/config.h"
#include "util/macro.h"

typedef struct Arena Arena;
typedef struct Device Device;
typedef struct DeviceMonitor DeviceMonitor;
typedef struct DeviceOps DeviceOps;
typedef struct Engine Engine;
typedef struct ExecutorOps ExecutorOps;
typedef struct Job Job;
typedef struct Lookups Lookups;
typedef struct Module Module;
typedef struct Slot Slot;
typedef struct Trace Trace;
typedef struct User User;
typedef struct Workers Workers;

TAILQ_HEAD(EngineJobs, Job);
TAILQ_HEAD(EngineModules, Module);
TAILQ_HEAD(EngineSlots, Slot);
TAILQ_HEAD(EngineUnplacedArenas, Arena);
TAILQ_HEAD(EngineUsers, User);
LIST_HEAD(EngineTraces, Trace);

/* What waits until devices are known. */
typedef struct EngineUnplaced {
        struct EngineUnplacedArenas arenas;
        struct EngineJobs jobs;
        struct EngineModules modules;
} EngineUnplaced;

/* The latest numbers given. */
typedef struct EngineIds {
        uint64_t arena;
        uint64_t module;
} EngineIds;

/* What learns of each job's end. */
typedef struct EngineEnds {
        EndObserver *observer; /* NULL: no history is kept */
        struct EngineTraces traces;
        uint64_t last_trace; /* the latest number given */
} EngineEnds;

typedef struct EngineArenas {
        Arena *by_id;
        Addresses addresses; /* of device arenas */
        Regions regions;     /* with fence = yes: instead of those */
} EngineArenas;

struct Engine {
        uv_loop_t *loop;
        const Config *config;
        KeeperLink *keeper; /* NULL: none, for tests */
        Ledger *ledger;     /* what the next supervisor must know */

        const ExecutorOps *executor_ops; /* provided by workers/, called with `workers` */
        Workers *workers;
        const DeviceOps *device_ops; /* provided by devices/, called with `monitor` */
        DeviceMonitor *monitor;
        EngineEnds ends;

        Device *devices;
        size_t n_devices; /* 0: not known yet */
        char *problem;    /* why there is no device; NULL: no problem */
        char *driver_version;
        uint64_t started_ns;
        bool reads_kernel_log; /* for Xids */

        User *users;
        Lookups *lookups;               /* who they are; NULL, for tests: no threads */
        Quota quotas[_USER_RESOURCE_N]; /* what all users share */
        EngineArenas arenas;
        Module *modules;
        Job *jobs; /* unfinished */
        Slot *slots;
        struct EngineUsers backlog;   /* people with work for backlog_run(), in turn */
        struct EngineSlots giving_up; /* slots whose jobs fail */
        EngineUnplaced unplaced;
        EngineIds last;

        Loads loads;        /* of modules */
        LimitLog log_limit; /* of log lines that a peer can cause */
        uint64_t n_steps;   /* of the backlog, ever: a measure of the cost */
        uint64_t now_ns;    /* the clock in this turn of the loop; 0: not read yet */
        bool is_eventful;   /* a job arrived or ended in this turn */
        bool is_paused;     /* no job is dispatched: the next supervisor takes over soon */
        bool is_closing;    /* the program ends: no worker is started any more */
        bool has_new_work;  /* one more turn before the loop sleeps */
        bool has_missed_wake; /* memory was short and a user with work was not woken: the next tick does it */
};

/** engine_init() - empty tables; the caller sets the handles. */
void engine_init(Engine *engine);
/** engine_now() - the time of this turn of the loop, in which the clock is read once. */
static inline uint64_t engine_now(Engine *engine) {
        if (!engine->now_ns)
                engine->now_ns = uv_hrtime();
        return engine->now_ns;
}
/** engine_inflight_ns() - limit of the expected time in flight on a device. */
static inline uint64_t engine_inflight_ns(const Engine *engine) {
        return MAX(engine->config->inflight_ms, 1u) * 1000000ull;
}
/** engine_event() - a job arrived or ended: another may follow soon. */
void engine_event(Engine *engine);

/** engine_state() - "ready", or what the engine waits for. */
const char *engine_state(const Engine *engine);
/** engine_lacks_devices() - no device was found so far; the search goes on. */
static inline bool engine_lacks_devices(const Engine *engine) {
        return !engine->n_devices && engine->problem;
}
/** engine_lack() - the failure of work that would have to wait until a device is found. */
Failure *engine_lack(const Engine *engine);
/** engine_no_device() - the failure of a request that names a device which does not exist. */
Failure *engine_no_device(const Engine *engine, unsigned index);

#endif
