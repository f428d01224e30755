/* SPDX-License-Identifier: Apache-2.0 */
#include "drain.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jobs.h"
#include "util/list.h"
#include "monitor.h"
#include "util/log.h"

/* The prefix of the device's uuid in the key: why it is drained until an administrator returns it
 * to service. */
#define DRAIN_KEY_HELD      "drain-"
#define DRAIN_KEY_CONDEMNED "condemned-"

/* A device that was drained before this supervisor started; until the devices are known. */
struct Drained {
        char uuid[KEEPER_KEY_MAX];
        char reason[HEALTH_REASON_MAX];
        bool is_condemned;        /* else held */
        LIST_ENTRY(Drained) link; /* monitor->drained */
};

/* ---- to and from the keeper ------------------------------------------------ */

static void drain_key(const Device *device, const char *prefix,
                      char key[static KEEPER_KEY_MAX + 1]) {
        snprintf(key, KEEPER_KEY_MAX + 1, "%s%s", prefix, device->uuid);
}

static void drain_keep(const Device *device, const char *prefix, const char *reason) {
        _cleanup_(closep) int fd = memfd_create("gpuq-drain", MFD_CLOEXEC);
        size_t n_reason = strlen(reason);
        char key[KEEPER_KEY_MAX + 1];

        if (fd < 0 || pwrite(fd, reason, n_reason, 0) != (ssize_t)n_reason) {
                log_warning("device %u: the drain will not survive a restart: %s", device->index,
                            strerror(errno));
                return;
        }
        drain_key(device, prefix, key);
        keeper_link_keep(device->engine->keeper, key, fd);
}

static void drain_forget(const Device *device) {
        char key[KEEPER_KEY_MAX + 1];

        drain_key(device, DRAIN_KEY_HELD, key);
        keeper_link_drop(device->engine->keeper, key);
        drain_key(device, DRAIN_KEY_CONDEMNED, key);
        keeper_link_drop(device->engine->keeper, key);
}

/* Return: the uuid after the prefix; NULL: it is another key. */
static const char *drain_key_uuid(const char *key, const char *prefix) {
        size_t n = strlen(prefix);

        return strncmp(key, prefix, n) == 0 ? key + n : NULL;
}

bool drain_on_held(DeviceMonitor *monitor, const char *key, int fd) {
        const char *held = drain_key_uuid(key, DRAIN_KEY_HELD);
        const char *condemned = drain_key_uuid(key, DRAIN_KEY_CONDEMNED);
        _cleanup_(closep) int owned = -1;
        struct Drained *drained;
        ssize_t n;

        if (!held && !condemned)
                return false;

        owned = fd;
        drained = calloc(1, sizeof(*drained));
        if (!drained)
                return true;
        n = pread(fd, drained->reason, sizeof(drained->reason) - 1, 0);
        if (n < 0)
                drained->reason[0] = '\0';
        snprintf(drained->uuid, sizeof(drained->uuid), "%s", held ? held : condemned);
        drained->is_condemned = condemned != NULL;
        LIST_INSERT_HEAD(&monitor->drained, drained, link);
        return true;
}

static void drain_adopt_one(DeviceMonitor *monitor, const struct Drained *drained) {
        for (size_t i = 0; i < monitor->engine->n_devices; ++i) {
                Device *device = &monitor->engine->devices[i];

                if (strcmp(device->uuid, drained->uuid) != 0)
                        continue;
                if (drained->is_condemned)
                        health_condemn(&device->health, drained->reason, uv_hrtime());
                else
                        health_hold(&device->health, drained->reason);
                log_notice("device %u is still drained: %s", device->index, drained->reason);
        }
}

void drain_adopt(DeviceMonitor *monitor) {
        const struct Drained *drained;

        LIST_FOREACH (drained, &monitor->drained, link)
                drain_adopt_one(monitor, drained);
        drain_free(monitor);
}

void drain_free(DeviceMonitor *monitor) {
        struct Drained *drained;

        while ((drained = LIST_FIRST(&monitor->drained))) {
                LIST_REMOVE(drained, link);
                free(drained);
        }
}

/* ---- what waits for it ----------------------------------------------------- */

static void drain_move(Device *device) {
        Slot *slot, *next;

        HASH_ITER (hh, device->engine->slots, slot, next)
                if (slot->device == device)
                        offer_slot(slot);
}

static void drain_poke(Device *device) {
        Slot *slot, *next;

        HASH_ITER (hh, device->engine->slots, slot, next)
                if (slot->device == device)
                        provision_slot(slot);
        device->is_dirty = true;
}

/* ---- begin and end --------------------------------------------------------- */

static void drain_log(const Device *device, const char *what) {
        char fields[96];

        snprintf(fields, sizeof(fields), "GPUQ_DEVICE=%u", device->index);
        log_full(LOG_NOTICE, fields, "device %u (%s, %s) %s", device->index, device->name,
                 device->pci, what);
}

static void drain_begin(Device *device) {
        char text[HEALTH_REASON_MAX + 32];

        snprintf(text, sizeof(text), "is %s", health_reason(&device->health));
        drain_log(device, text);
        drain_move(device);
}

static void drain_end(Device *device) {
        Engine *engine = device->engine;

        drain_log(device, "accepts jobs again");
        drain_poke(device);
        /* Waiting jobs without a fixed device can use this one. */
        for (size_t i = 0; i < engine->n_devices; ++i)
                if (!health_takes_jobs(&engine->devices[i].health))
                        drain_move(&engine->devices[i]);
}

/* Without a reason of its own a drain does not hide the one before it. */
static void drain_say(const Device *device, const char *by, const char *reason,
                      char text[static HEALTH_REASON_MAX]) {
        const char *before = health_reason(&device->health);

        if (*reason || !before)
                snprintf(text, HEALTH_REASON_MAX, "drained by %s: %s", by,
                         *reason ? reason : "no reason given");
        else
                snprintf(text, HEALTH_REASON_MAX, "drained by %s; before that %s", by, before);
}

bool drain_hold(Device *device, const char *by, const char *reason) {
        bool was_well = health_takes_jobs(&device->health);
        char text[HEALTH_REASON_MAX];

        if (device->health.is_held && !*reason)
                return false;
        drain_say(device, by, reason, text);
        health_hold(&device->health, text);
        drain_keep(device, DRAIN_KEY_HELD, device->health.hold_reason);
        drain_begin(device);
        return was_well;
}

/* No check may be due any more. */
static void drain_drop_claims(Device *device) {
        Slot *slot, *next;

        HASH_ITER (hh, device->engine->slots, slot, next)
                if (slot->device == device && slot->claim)
                        claim_drop(slot);
}

bool drain_release(Device *device) {
        bool was_drained = health_release(&device->health);

        drain_forget(device);
        drain_drop_claims(device);
        if (was_drained)
                drain_end(device);
        return was_drained;
}

/* ---- by itself ------------------------------------------------------------- */

static void drain_check(Device *device) {
        Engine *engine = device->engine;
        int r;

        if (engine->is_closing)
                return;
        health_begin_check(&device->health, uv_hrtime());
        r = engine->executor_ops->probe(engine->workers, device);
        if (r < 0)
                drain_checked(device, HEALTH_FOUND_NOTHING, strerror(-r));
}

void drain_check_failed(Device *device, bool blames_device, const char *why) {
        if (!device->engine->is_closing)
                drain_checked(device, blames_device ? HEALTH_FOUND_BROKEN : HEALTH_FOUND_NOTHING,
                              why);
}

void drain_doubt(Device *device) {
        uint64_t now_ns = uv_hrtime();

        health_doubt(&device->health, now_ns);
        if (health_wants_check(&device->health, now_ns))
                drain_check(device);
}

void drain_fault(Device *device) {
        char why[HEALTH_REASON_MAX];

        snprintf(why, sizeof(why),
                 "its hardware failed under %u jobs in %llu minutes, as the kernel log says",
                 HEALTH_FAULTS_MAX, HEALTH_WINDOW_NS / 60000000000ull);
        if (health_fault(&device->health, why, uv_hrtime()))
                drain_begin(device);
}

void drain_condemn(Device *device, const char *why) {
        if (device->health.is_condemned)
                return;
        health_condemn(&device->health, why, uv_hrtime());
        drain_keep(device, DRAIN_KEY_CONDEMNED, why);
        drain_begin(device);
}

/* Workers that wait for the check may start again. */
static void drain_settle(Device *device, HealthFinding finding) {
        Slot *slot, *next;

        if (finding == HEALTH_FOUND_NOTHING)
                return;
        if (device->health.is_condemned)
                finding = HEALTH_FOUND_BROKEN;
        HASH_ITER (hh, device->engine->slots, slot, next)
                if (slot->device == device && slot->claim)
                        claim_settle(slot, finding);
}

void drain_checked(Device *device, HealthFinding finding, const char *why) {
        bool has_changed = health_end_check(&device->health, finding, why, uv_hrtime());

        drain_settle(device, finding);
        if (!has_changed)
                return;
        if (health_takes_jobs(&device->health))
                drain_end(device);
        else if (device->health.state == HEALTH_WELL)
                drain_log(device, "is healthy again but stays drained");
        else if (device->health.state == HEALTH_BROKEN)
                drain_begin(device);
}

void drain_tick(Engine *engine, uint64_t now_ns) {
        for (size_t i = 0; i < engine->n_devices; ++i)
                if (health_wants_check(&engine->devices[i].health, now_ns))
                        drain_check(&engine->devices[i]);
}
