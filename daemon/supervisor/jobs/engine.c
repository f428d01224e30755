/* SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

void engine_init(Engine *engine) {
        TAILQ_INIT(&engine->ending);
        TAILQ_INIT(&engine->unplaced);
        TAILQ_INIT(&engine->unplaced_modules);
}

uint64_t engine_now(Engine *engine) {
        if (!engine->now_ns)
                engine->now_ns = uv_hrtime();
        return engine->now_ns;
}

void engine_event(Engine *engine) {
        engine->is_eventful = true;
}

const char *engine_state(const Engine *engine) {
        if (engine->n_devices)
                return "ready";
        return engine->problem ? engine->problem : "looking for devices";
}
