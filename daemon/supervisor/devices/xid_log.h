/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_XID_LOG_H
#define GPUQ_SUPERVISOR_XID_LOG_H

/*
 * Xid log
 *
 * Reads the kernel's log for errors that NVIDIA's driver reports about the daemon's devices. It counts
 * them, drains a device after a fatal one, and adds the reason to the error of the affected worker's
 * job. The keeper opens the log and hands it to each supervisor. All supervisors read from one
 * position, so a takeover loses no record.
 *
 * The log is read periodically (SUPERVISOR_TICK_MS), so that other programs' lines do not wake the
 * supervisor, and whenever a worker reports a fault: the driver logs an error when it finds it, while
 * a worker notices only when it queries its stream. A record that comes still later is counted,
 * drains the device and is logged, but no error waits for it.
 */

#include "base.h"
#include "policy.h"

typedef struct Device Device;
typedef struct DeviceMonitor DeviceMonitor;
typedef struct XidLog XidLog;

/** xid_log_new() - a reader of the kernel's log; @fd is consumed on success. Return: 0 or -ENOMEM. */
int xid_log_new(int fd, XidLog **ret_log);
/** xid_log_free() - NULL is fine. Return: NULL. */
XidLog *xid_log_free(XidLog *log);
/** xid_log_read() - read its new records; nothing before the devices are known. */
void xid_log_read(DeviceMonitor *monitor);
/**
 * xid_log_explain() - what the log says about the fault of worker @pid on @device. @log: NULL:
 * nothing
 * @failure: what the worker reported; may be NULL
 * @ret_is_hardware: the log says that the hardware failed; written only with a result
 *
 * Each record explains one fault. Return: @failure with the Xid, the caller's; NULL: the log says
 * nothing.
 */
Failure *xid_log_explain(XidLog *log, const Device *device, int32_t pid, const Failure *failure,
                         bool *ret_is_hardware);

#endif
