/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DEVICE_OPS_H
#define GPUQ_SUPERVISOR_DEVICE_OPS_H

/*
 * What workers/ reports to the device monitor, and what clients/ asks of it. Provided by devices/.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base.h"
#include "policy.h"

typedef struct Device Device;
typedef struct DeviceMonitor DeviceMonitor;

/* One device that a probe found. */
typedef struct DeviceInfo {
        const char *name;
        const char *uuid;
        const char *pci;
        uint64_t memory_total; /* bytes */
        uint64_t peers;        /* a bit for each device, by its index, whose memory it can access */
        uint64_t near; /* those of them on whose memory its atomic operations work as on its own */
} DeviceInfo;

/* The result of a probe. Valid during the call. */
typedef struct ProbeResult {
        const char *error;  /* NULL: devices were found, or the device that was checked is well */
        bool device_failed; /* the error is the device's */
        bool lacks_memory;  /* the error is that there was none for a context */
        const char *driver_version;
        const DeviceInfo *devices;
        size_t n_devices;
} ProbeResult;

typedef struct DeviceOps {
        /** probed() - the result of a probe of @check, or of all devices if NULL. */
        void (*probed)(DeviceMonitor *monitor, Device *check, const ProbeResult *result);
        /** probe_failed() - the probe ended without a result. @blames_device: it hung, or crashed. */
        void (*probe_failed)(DeviceMonitor *monitor, Device *check, bool blames_device,
                             const char *why);
        /** doubt() - a worker blames the device, which may be false: check it, and settle the claims of its slots. */
        void (*doubt)(Device *device);
        /** fault() - the kernel's log says that the hardware failed under a worker. */
        void (*fault)(Device *device);
        /**
         * explain() - what the kernel's log says about the end of worker @pid on @device
         * @failure: what the worker reported; may be NULL
         * @ret_is_hardware: the log says that the hardware failed; written only with a result
         *
         * Return: @failure with the Xid, the caller's; NULL: the log says nothing.
         */
        Failure *(*explain)(DeviceMonitor *monitor, const Device *device, int32_t pid,
                            const Failure *failure, bool *ret_is_hardware);
        /** drain() - an administrator drains the device. Return: true: it took jobs until now. */
        bool (*drain)(Device *device, const char *by, const char *reason);
        /** undrain() - an administrator returns the device to service. Return: true: it was drained. */
        bool (*undrain)(Device *device);
} DeviceOps;

#endif
