/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_EXPRESS_H
#define GPUQ_SUPERVISOR_EXPRESS_H

/*
 * Express
 *
 * A slot's second executor. Kernels of one context that fill the device run one after the other,
 * while the driver gives several contexts slices of 2 ms. So while a long job holds up the main
 * executor, short jobs and first loads of modules go to a worker with a context of its own on the
 * same arenas.
 *
 * The main executor is held up while a long job (JobCost.is_long) is in flight in it, or while its
 * jobs have made no progress for express_short_ns(). The express executor starts only for a hold-up
 * of at least EXPRESS_START_NS, because a start takes longer. It ends like any other.
 *
 * A job of unknown duration may go there: if it is long, it holds up the express executor alone.
 * scheduler.c says which jobs may not.
 */

#include "engine.h"
#include "executor.h"
#include "job.h"
#include "slot.h"

#define EXPRESS_START_NS 20000000ull    /* the least hold-up that starts an express worker */
#define EXPRESS_LOOK_NS  10000000ull    /* how often waiting work is looked at again */
#define EXPRESS_IDLE_NS  10000000000ull /* an idle express worker ends */
#define EXPRESS_RETRY_NS 30000000000ull /* none starts after one failed or was evicted */
#define EXPRESS_QUOTA_NS 1000000000ull  /* or while its person has too many workers */

/** express_short_ns() - the express executor takes jobs that are expected to take no longer. */
static inline uint64_t express_short_ns(const Engine *engine) {
        return MIN(engine_inflight_ns(engine), EXPRESS_START_NS);
}

/** express_is_stalled() - the executor has made no progress for @at_least_ns. */
static inline bool express_is_stalled(const Executor *executor, uint64_t at_least_ns) {
        const Job *first = TAILQ_FIRST(&executor->inflight);

        return first &&
               engine_now(executor->engine) - MAX(first->clock.started_ns, executor->last_end_ns) >=
                       at_least_ns;
}

/** express_is_worth() - the main executor is held up for so long that an express one should start. */
static inline bool express_is_worth(const Slot *slot) {
        const Executor *main = slot->executor;

        return main && main->is_ready &&
               ((main->n_long && main->long_ns >= EXPRESS_START_NS) ||
                express_is_stalled(main, EXPRESS_START_NS));
}

/** express_may_help() - there is an express executor, or should be one. */
static inline bool express_may_help(const Slot *slot) {
        return slot->express || (slot->engine->config->express && express_is_worth(slot));
}

/**
 * express_is_used() - work that the express executor may take waits for it
 *
 * Also while the main executor is not ready, as after a fault.
 */
bool express_is_used(const Slot *slot);
/** express_may_start() - there is none, and there should be one if work waits for it. */
bool express_may_start(const Slot *slot);
/** express_start() - work waits for it: start it if there is none and there may be one. */
void express_start(Slot *slot);
/** express_retire() - it gets no more jobs, so that it ends soon. */
void express_retire(Slot *slot);
/** express_lost() - it is gone. @has_failed: and another one would probably fail too. */
void express_lost(Slot *slot, bool has_failed);
/** express_idle_ns() - how long it may stay without work. */
uint64_t express_idle_ns(const Slot *slot);

#endif
