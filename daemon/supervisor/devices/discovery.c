/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery.h"

#include <string.h>

#include "drain.h"
#include "jobs.h"
#include "util/list.h"
#include "util/log.h"

#define DISCOVERY_DEVICES_MAX 1024u

static void discovery_on_timer(uv_timer_t *timer) {
        discovery_start(timer->data);
}

void discovery_start(DeviceMonitor *monitor) {
        Engine *engine = monitor->engine;
        int r;

        if (engine->n_devices || engine->is_closing)
                return;

        r = engine->executor_ops->probe(engine->workers, NULL);
        if (r < 0)
                discovery_failed(monitor, strerror(-r));
}

/* Places it, or fails what does not wait for a device. */
static void discovery_settle_waiting(Engine *engine) {
        provision_unplaced(engine);
        place_consider_all(engine);
}

void discovery_failed(DeviceMonitor *monitor, const char *why) {
        Engine *engine = monitor->engine;

        if (engine->n_devices || engine->is_closing)
                return;

        /* Logs each new reason once, not every two seconds. */
        if (strcmp(engine_state(engine), why) != 0) {
                free(engine->problem);
                engine->problem = strdup(why);
                log_warning("no device found yet: %s", engine_state(engine));
                discovery_settle_waiting(engine);
        }
        uv_timer_start(&monitor->retry, discovery_on_timer, DISCOVERY_RETRY_MS, 0);
}

/* From now on devices do not move in memory: timers and lanes point to them. */
static int discovery_make_devices(Engine *engine, const ProbeResult *result) {
        int r;

        engine->devices = calloc(result->n_devices, sizeof(*engine->devices));
        if (!engine->devices)
                return -ENOMEM;

        for (size_t i = 0; i < result->n_devices; ++i) {
                const DeviceInfo *info = &result->devices[i];

                r = device_init(&engine->devices[i], engine, (unsigned)i, info);
                engine->n_devices = i + 1;
                if (r < 0)
                        return r;
                log_info("device %zu: %s", i, info->name);
        }
        return 0;
}

void discovery_found(DeviceMonitor *monitor, const ProbeResult *result) {
        Engine *engine = monitor->engine;
        int r;

        if (engine->n_devices)
                return;
        if (result->error) {
                discovery_failed(monitor, result->error);
                return;
        }
        if (!result->n_devices || result->n_devices > DISCOVERY_DEVICES_MAX) {
                discovery_failed(monitor, "the GPU driver lists no device");
                return;
        }

        r = discovery_make_devices(engine, result);
        if (r < 0) {
                monitor->owner->failed(monitor->userdata, r);
                return;
        }
        engine->driver_version = strdup(result->driver_version);
        free(engine->problem);
        engine->problem = NULL;
        drain_adopt(monitor);
        monitor->owner->found(monitor->userdata);
        discovery_settle_waiting(engine);
}
