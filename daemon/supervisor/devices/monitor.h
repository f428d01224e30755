/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_MONITOR_H
#define GPUQ_SUPERVISOR_MONITOR_H

/*
 * What the parts of the device monitor share.
 */

#include <sys/queue.h>

#include <uv.h>

#include "jobs.h"

typedef struct XidLog XidLog;

/* Callbacks to the owner, each called once. */
typedef struct DeviceMonitorOwner {
        void (*found)(void *userdata); /* the devices are known */
        void (*failed)(void *userdata,
                       int r); /* half a table cannot be repaired: the program must end */
} DeviceMonitorOwner;

struct DeviceMonitor {
        Engine *engine;
        const DeviceMonitorOwner *owner;
        void *userdata;
        uv_timer_t retry;             /* of the discovery */
        LIST_HEAD(, Drained) drained; /* drained before this supervisor; until devices are known */
        XidLog *xid_log;              /* NULL: the kernel's log is not read */
};

#endif
