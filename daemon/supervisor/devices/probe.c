/* SPDX-License-Identifier: Apache-2.0 */
#include "probe.h"

#include <string.h>

#include "drain.h"
#include "util/list.h"
#include "jobs.h"
#include "loop.h"
#include "restart.h"
#include "workers.h"
#include "util/log.h"

#define PROBE_DEVICES_MAX 1024u

static void probe_on_timer(uv_timer_t *timer) {
        probe_start(timer->data);
}

void probe_start(Supervisor *supervisor) {
        Worker *worker;
        int r;

        if (supervisor->engine.n_devices || supervisor->engine.is_closing)
                return;

        r = worker_new(supervisor, NULL, NULL, &worker);
        if (r < 0)
                probe_failed(supervisor, strerror(-r));
}

void probe_failed(Supervisor *supervisor, const char *why) {
        if (supervisor->engine.n_devices || supervisor->engine.is_closing)
                return;

        /* One line for each new reason, not one every two seconds. */
        if (strcmp(engine_state(&supervisor->engine), why) != 0) {
                free(supervisor->engine.problem);
                supervisor->engine.problem = strdup(why);
                log_warning("no device yet: %s", engine_state(&supervisor->engine));
        }
        uv_timer_start(&supervisor->probe_timer, probe_on_timer, PROBE_RETRY_MS, 0);
}

/* Return: whether there are devices, whose texts have an end. */
static bool probe_is_whole(const WorkerMessage *probed) {
        const WorkerDevice *devices = probed->items;

        for (uint32_t i = 0; i < probed->head.n_items; ++i)
                if (!memchr(devices[i].name, '\0', sizeof(devices[i].name)) ||
                    !memchr(devices[i].uuid, '\0', sizeof(devices[i].uuid)) ||
                    !memchr(devices[i].pci, '\0', sizeof(devices[i].pci)))
                        return false;
        return probed->head.n_items > 0 && probed->head.n_items <= PROBE_DEVICES_MAX;
}

/* Devices stay where they are from now on: timers and lanes point to them. */
static int probe_make_devices(Supervisor *supervisor, const WorkerMessage *probed) {
        const WorkerDevice *devices = probed->items;
        size_t n_devices = probed->head.n_items;
        int r;

        supervisor->engine.devices = calloc(n_devices, sizeof(*supervisor->engine.devices));
        if (!supervisor->engine.devices)
                return -ENOMEM;

        for (size_t i = 0; i < n_devices; ++i) {
                const WorkerDevice *info = &devices[i];

                r = device_init(&supervisor->engine.devices[i], &supervisor->engine, (unsigned)i,
                                info->name, info->uuid, info->pci, info->memory_total);
                supervisor->engine.n_devices = i + 1;
                if (r < 0)
                        return r;
                log_info("device %zu: %s", i, info->name);
        }
        pace_init(&supervisor->pace, engine_is_on_cpu(&supervisor->engine));
        return 0;
}

static void probe_serve_waiting(Supervisor *supervisor) {
        Module *module;

        while ((module = TAILQ_FIRST(&supervisor->engine.unplaced_modules)))
                module_load(module);
        scheduler_place_all(&supervisor->engine);
}

void probe_done(Supervisor *supervisor, const WorkerMessage *probed) {
        int r;

        if (supervisor->engine.n_devices)
                return;
        if (probed->head.code) {
                probe_failed(supervisor, probed->text);
                return;
        }
        if (!probe_is_whole(probed)) {
                probe_failed(supervisor, "the driver shows no device");
                return;
        }

        r = probe_make_devices(supervisor, probed);
        if (r < 0) {
                /* Half a table cannot be mended: the keeper starts a fresh supervisor. */
                supervisor->r = r;
                uv_stop(&supervisor->loop);
                return;
        }
        supervisor->engine.driver_version = strdup(probed->more);
        free(supervisor->engine.problem);
        supervisor->engine.problem = NULL;
        drain_adopt(supervisor);
        if (supervisor->takeover)
                takeover_on_devices(supervisor->takeover);
        probe_serve_waiting(supervisor);
}

/* ---- one device ------------------------------------------------------------ */

void probe_look(Device *device) {
        Worker *worker;
        int r;

        if (device->engine->is_closing)
                return;
        health_look(&device->health);
        r = worker_new(supervisor_of(device->engine), NULL, device, &worker);
        if (r < 0)
                drain_looked(device, HEALTH_FOUND_NOTHING, strerror(-r));
}

void probe_looked(const Worker *worker, const WorkerMessage *probed) {
        HealthFinding finding = HEALTH_FOUND_WELL;

        if (probed->head.code)
                finding = probed->head.detail ? HEALTH_FOUND_BROKEN : HEALTH_FOUND_NOTHING;
        drain_looked(worker->look, finding, probed->text);
}

void probe_look_failed(const Worker *worker, const char *why) {
        if (worker->supervisor->engine.is_closing)
                return;
        drain_looked(worker->look, worker->pid ? HEALTH_FOUND_BROKEN : HEALTH_FOUND_NOTHING, why);
}
