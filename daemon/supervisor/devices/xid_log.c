/* SPDX-License-Identifier: Apache-2.0 */
#include "xid_log.h"

#include <stdio.h>
#include <string.h>

#include "drain.h"
#include "kmsg.h"
#include "monitor.h"
#include "xid_catalog.h"
#include "util/log.h"

#define XID_LOG_KEPT      64u  /* the latest records, for faults reported later */
#define XID_LOG_LINES_MAX 512u /* per read */
#define XID_LOG_OWN_NS                                                                             \
        60000000000ull /* a worker that hangs afterwards reports late, or is killed */
#define XID_LOG_ANY_NS                                                                             \
        2000000000ull /* a record that names no process counts only close to the fault */

/* A record about one of the daemon's devices. */
typedef struct XidSeen {
        Xid xid;
        uint64_t seen_ns;
        bool is_told; /* it has explained a fault, or came with one that did */
} XidSeen;

struct XidLog {
        Kmsg *kmsg;
        XidSeen seen[XID_LOG_KEPT]; /* a ring */
        uint64_t n_seen;            /* in all */
        uint64_t n_lost;            /* already logged */
        bool is_reading;            /* handling a record may call this function again */
};

int xid_log_new(int fd, XidLog **ret_log) {
        XidLog *log;
        int r;

        log = calloc(1, sizeof(*log));
        if (!log)
                return -ENOMEM;
        r = kmsg_new(fd, &log->kmsg);
        if (r < 0) {
                free(log);
                return r;
        }
        *ret_log = log;
        return 0;
}

XidLog *xid_log_free(XidLog *log) {
        if (!log)
                return NULL;

        kmsg_free(log->kmsg);
        free(log);
        return NULL;
}

/* ---- in -------------------------------------------------------------------- */

/* Without the driver's own text, because all users see why a device is drained. */
static void xid_log_drain(Device *device, const Xid *xid) {
        char why[HEALTH_REASON_MAX];

        snprintf(why, sizeof(why), "Xid %u, %s: %s", xid->number, xid_meaning(xid),
                 xid_action_name(xid_action(xid)));
        drain_condemn(device, why);
}

static void xid_log_tell(const Device *device, const Xid *xid) {
        char fields[96], process[32] = "";

        if (!limit_log(&device->engine->log_limit))
                return;
        if (xid->pid)
                snprintf(process, sizeof(process), ", process %d", xid->pid);
        snprintf(fields, sizeof(fields), "GPUQ_DEVICE=%u GPUQ_XID=%u", device->index, xid->number);
        log_full(LOG_NOTICE, fields, "device %u: Xid %u (%s)%s: %s", device->index, xid->number,
                 xid_meaning(xid), process, xid->text);
}

static void xid_log_take(DeviceMonitor *monitor, const Xid *xid) {
        XidLog *log = monitor->xid_log;
        bool is_ours = false;

        /* All parts of a divided GPU have one address. */
        for (size_t i = 0; i < monitor->engine->n_devices; ++i) {
                Device *device = &monitor->engine->devices[i];

                if (!xid_is_at(xid, device->pci))
                        continue;
                is_ours = true;
                device->n_xids++;
                xid_log_tell(device, xid);
                if (xid_is_fatal(xid))
                        xid_log_drain(device, xid);
        }
        if (is_ours)
                log->seen[log->n_seen++ % XID_LOG_KEPT] =
                        (XidSeen){.xid = *xid, .seen_ns = uv_hrtime()};
}

static void xid_log_count_lost(XidLog *log) {
        uint64_t n_lost = kmsg_n_lost(log->kmsg);

        if (n_lost != log->n_lost)
                log_warning("part of the kernel log was lost: it was written faster than gpuqd "
                            "read it");
        log->n_lost = n_lost;
}

void xid_log_read(DeviceMonitor *monitor) {
        const Engine *engine = monitor->engine;
        XidLog *log = monitor->xid_log;
        const char *line;
        int r = 1;
        Xid xid;

        if (!log || log->is_reading || !engine->n_devices || engine->is_closing)
                return;

        log->is_reading = true;
        for (unsigned i = 0; i < XID_LOG_LINES_MAX && r > 0; ++i) {
                r = kmsg_read(log->kmsg, &line);
                if (r > 0 && xid_parse(line, &xid))
                        xid_log_take(monitor, &xid);
        }
        log->is_reading = false;
        xid_log_count_lost(log);
        if (r < 0) {
                log_warning("cannot read Xids from the kernel log any more: %s", strerror(-r));
                monitor->xid_log = xid_log_free(log);
                monitor->engine->reads_kernel_log = false;
        }
}

/* ---- out ------------------------------------------------------------------- */

static bool xid_log_is_about(const XidSeen *seen, const Device *device, int32_t pid,
                             uint64_t now_ns) {
        uint64_t within_ns = pid ? XID_LOG_OWN_NS : XID_LOG_ANY_NS;

        return !seen->is_told && seen->xid.pid == pid && now_ns - seen->seen_ns <= within_ns &&
               xid_is_at(&seen->xid, device->pci);
}

/* The first record, because the others follow from it; known sequels are considered last. Return:
 * NULL: there is none. */
static const XidSeen *xid_log_find(XidLog *log, const Device *device, int32_t pid) {
        uint64_t n = MIN(log->n_seen, XID_LOG_KEPT), now_ns = uv_hrtime();
        const XidSeen *found = NULL;

        for (uint64_t i = log->n_seen - n; i < log->n_seen; ++i) {
                XidSeen *seen = &log->seen[i % XID_LOG_KEPT];

                if (!xid_log_is_about(seen, device, pid, now_ns))
                        continue;
                seen->is_told = true;
                if (!found || (xid_is_sequel(&found->xid) && !xid_is_sequel(&seen->xid)))
                        found = seen;
        }
        return found;
}

Failure *xid_log_explain(XidLog *log, const Device *device, int32_t pid, const Failure *failure,
                         bool *ret_is_hardware) {
        const char *said = failure ? failure->text : "the worker process died";
        int code = failure ? failure->code : FAILURE_INTERNAL;
        const XidSeen *found;
        bool is_own;

        if (!log || !device || !pid)
                return NULL;
        found = xid_log_find(log, device, pid);
        is_own = found != NULL;
        if (!found)
                found = xid_log_find(log, device, 0);
        if (!found)
                return NULL;

        *ret_is_hardware = xid_is_hardware(&found->xid);
        /* Only the process's owner may see the driver's text. */
        if (is_own && found->xid.text[0])
                return failure_new(code, "%s; Xid %u (%s): %s", said, found->xid.number,
                                   xid_meaning(&found->xid), found->xid.text);
        return failure_new(code, "%s; Xid %u (%s)%s", said, found->xid.number,
                           xid_meaning(&found->xid),
                           is_own ? "" : ", for which the kernel log names no process");
}
