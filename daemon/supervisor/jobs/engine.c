/* SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

#include <unistd.h>

#include "util/macro.h"

void engine_init(Engine *engine) {
        LIST_INIT(&engine->ends.traces);
        TAILQ_INIT(&engine->backlog);
        TAILQ_INIT(&engine->giving_up);
        TAILQ_INIT(&engine->unplaced.arenas);
        TAILQ_INIT(&engine->unplaced.jobs);
        TAILQ_INIT(&engine->unplaced.modules);
        loads_init(&engine->loads, (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1));
        resource_quotas_init(engine->quotas);
}

void engine_event(Engine *engine) {
        engine->is_eventful = true;
}

const char *engine_state(const Engine *engine) {
        if (engine->n_devices)
                return "ready";
        return engine->problem ? engine->problem : "gpuqd is looking for devices";
}

Failure *engine_lack(const Engine *engine) {
        return failure_new(FAILURE_NO_DEVICE,
                           "no usable device: %s; to wait for one, set GPUQ_WAIT_FOR_DEVICE=1",
                           engine_state(engine));
}

Failure *engine_no_device(const Engine *engine, unsigned index) {
        if (engine->n_devices == 1)
                return failure_new(FAILURE_NOT_FOUND,
                                   "no device %u: this machine has one device, 0", index);
        return failure_new(FAILURE_NOT_FOUND,
                           "no device %u: this machine has %zu devices, 0 to %zu", index,
                           engine->n_devices, engine->n_devices - 1);
}
