/* SPDX-License-Identifier: Apache-2.0 */
#include "devices.h"

#include <errno.h>

#include "discovery.h"
#include "drain.h"
#include "xid_log.h"

/* ---- what workers say ------------------------------------------------------ */

static void monitor_on_probed(DeviceMonitor *monitor, Device *check, const ProbeResult *result) {
        HealthFinding finding = HEALTH_FOUND_WELL;

        if (!check) {
                discovery_found(monitor, result);
                return;
        }
        if (result->error)
                finding = result->device_failed  ? HEALTH_FOUND_BROKEN
                          : result->lacks_memory ? HEALTH_FOUND_FULL
                                                 : HEALTH_FOUND_NOTHING;
        drain_checked(check, finding, result->error ? result->error : "");
}

static void monitor_on_probe_failed(DeviceMonitor *monitor, Device *check, bool blames_device,
                                    const char *why) {
        if (check)
                drain_check_failed(check, blames_device, why);
        else
                discovery_failed(monitor, why);
}

static Failure *monitor_explain(DeviceMonitor *monitor, const Device *device, int32_t pid,
                                const Failure *failure, bool *ret_is_hardware) {
        xid_log_read(monitor);
        return xid_log_explain(monitor->xid_log, device, pid, failure, ret_is_hardware);
}

static const DeviceOps monitor_ops = {
        .probed = monitor_on_probed,
        .probe_failed = monitor_on_probe_failed,
        .doubt = drain_doubt,
        .fault = drain_fault,
        .explain = monitor_explain,
        .drain = drain_hold,
        .undrain = drain_release,
};

/* ---- life ------------------------------------------------------------------ */

void monitor_init(DeviceMonitor *monitor, Engine *engine, const DeviceMonitorOwner *owner,
                  void *userdata) {
        monitor->engine = engine;
        monitor->owner = owner;
        monitor->userdata = userdata;
        LIST_INIT(&monitor->drained);
        uv_timer_init(engine->loop, &monitor->retry);
        monitor->retry.data = monitor;
        engine->monitor = monitor;
        engine->device_ops = &monitor_ops;
}

void monitor_start(DeviceMonitor *monitor) {
        discovery_start(monitor);
}

bool monitor_on_held(DeviceMonitor *monitor, const char *key, int fd) {
        return drain_on_held(monitor, key, fd);
}

int monitor_read_kernel_log(DeviceMonitor *monitor, int fd) {
        int r;

        if (monitor->xid_log)
                return -EALREADY;
        r = xid_log_new(fd, &monitor->xid_log);
        monitor->engine->reads_kernel_log = r >= 0;
        return r;
}

void monitor_tick(DeviceMonitor *monitor, uint64_t now_ns) {
        xid_log_read(monitor);
        drain_tick(monitor->engine, now_ns);
}

void monitor_close(DeviceMonitor *monitor) {
        if (!monitor->engine) /* the supervisor ended during its start */
                return;
        uv_close((uv_handle_t *)&monitor->retry, NULL);
}

void monitor_fini(DeviceMonitor *monitor) {
        drain_free(monitor);
        xid_log_free(monitor->xid_log);
}
