/* SPDX-License-Identifier: Apache-2.0 */
#include "executor.h"

#include "engine.h"

void executor_init(Executor *executor, Engine *engine, uint32_t id, Slot *slot, Device *device) {
        executor->id = id;
        executor->engine = engine;
        executor->slot = slot;
        executor->device = device;
        executor->idle_ns = engine_now(engine);
        TAILQ_INIT(&executor->inflight);
        TAILQ_INIT(&executor->leases);
}
