/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <assert.h>
#include <string.h>

#include "device_ops.h"
#include "engine.h"
#include "util/list.h"
#include "util/log.h"

#define DEVICE_PEERS_MAX 64u /* bits in Device.peers */

static int device_init_timers(Device *device) {
        int r;

        r = uv_timer_init(device->engine->loop, &device->gate);
        if (r < 0)
                return r;
        r = uv_timer_init(device->engine->loop, &device->turn);
        if (r < 0) {
                uv_close((uv_handle_t *)&device->gate, NULL);
                return r;
        }
        device->gate.data = device->turn.data = device;
        device->has_timers = true;
        return 0;
}

int device_init(Device *device, Engine *engine, unsigned index, const DeviceInfo *info) {
        int r;

        device->engine = engine;
        device->index = index;
        device->memory_total = info->memory_total;
        device->peers = info->peers;
        device->near = info->near;
        device->name = strdup(info->name);
        device->uuid = strdup(info->uuid);
        device->pci = strdup(info->pci);
        if (!device->name || !device->uuid || !device->pci)
                return -ENOMEM;

        r = fairshare_new(&device->share);
        if (r < 0)
                return r;
        device_configure(device);
        return device_init_timers(device);
}

bool device_reaches(const Device *device, unsigned other) {
        if (other == device->index)
                return true;
        return other < DEVICE_PEERS_MAX && device->peers >> other & 1;
}

/* Devices of one kind run the same code of a module. */
bool device_is_near(const Device *device, const Device *other) {
        return device_reaches(device, other->index) && device->near >> other->index & 1 &&
               strcmp(device->name, other->name) == 0;
}

void device_configure(Device *device) {
        const Config *config = device->engine->config;

        fairshare_configure(device->share, config->usage_half_life_s * 1000000000ull,
                            config->limits.weight);
        /* One context needs no switches. */
        device->quanta.quantum_ns = config->isolation.shared ? 0 : config->quantum_ms * 1000000ull;
        device->is_dirty = true;
}

void device_close(Device *device) {
        if (!device->has_timers)
                return;
        uv_close((uv_handle_t *)&device->gate, NULL);
        uv_close((uv_handle_t *)&device->turn, NULL);
        device->has_timers = false;
}

void device_fini(Device *device) {
        assert(!device->has_timers);
        fairshare_free(device->share);
        free(device->pci);
        free(device->uuid);
        free(device->name);
}

const char *device_state(const Device *device) {
        const char *reason = health_reason(&device->health);

        return reason ? reason : "ready";
}

/* With device=auto the keeper chose the driver. The devices show which: the CPU driver puts its
 * devices in a PCI domain that no real device is in. */
bool device_is_on_cpu(const Engine *engine) {
        switch (engine->config->device) {
                case CONFIG_DRIVER_CPU:
                        return true;
                case CONFIG_DRIVER_GPU:
                        return false;
                case CONFIG_DRIVER_AUTO:
                        break;
        }
        return engine->n_devices && strncmp(engine->devices[0].pci, "ffff:", 5) == 0;
}

const char *device_driver(const Engine *engine) {
        return device_is_on_cpu(engine) ? "cpu" : "cuda";
}

/* ---- lanes ----------------------------------------------------------------- */

void lane_wake(Lane *lane) {
        Device *device = lane->device;

        device->is_dirty = true;
        if (lane->is_awake)
                return;
        if (fairshare_wake(device->share, &lane->payer->share) < 0) {
                log_warning(
                        "device %u: gpuqd is out of memory: the jobs of one user wait for a retry",
                        device->index);
                device->engine->has_missed_wake = true;
                return;
        }
        lane->is_awake = true;
        device->n_awake++;
        TAILQ_INSERT_TAIL(&lane->payer->awake, lane, awake_link);
}

void lane_sleep(Lane *lane) {
        if (!lane->is_awake)
                return;
        lane->is_awake = false;
        lane->device->n_awake--;
        TAILQ_REMOVE(&lane->payer->awake, lane, awake_link);
        if (TAILQ_EMPTY(&lane->payer->awake))
                fairshare_sleep(lane->device->share, &lane->payer->share);
}

Lane *lane_pick(const Device *device) {
        ShareUser *share = fairshare_pick(device->share);

        return share ? TAILQ_FIRST(&container_of(share, Lane, share)->awake) : NULL;
}

void lane_took_turn(Lane *lane) {
        if (!lane->is_awake || !TAILQ_NEXT(lane, awake_link))
                return;
        TAILQ_REMOVE(&lane->payer->awake, lane, awake_link);
        TAILQ_INSERT_TAIL(&lane->payer->awake, lane, awake_link);
}
