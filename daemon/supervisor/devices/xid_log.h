/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_XID_LOG_H
#define GPUQ_SUPERVISOR_XID_LOG_H

/*
 * Xid log
 *
 * Reads the kernel's log for what NVIDIA's driver says of our devices: counts it, drains a
 * device for a fatal one, and names the reason in the error of the job whose worker it was.
 * The keeper opens the log and hands it to each supervisor anew: all read from one
 * position, so a takeover loses no record.
 *
 * It is read now and then (SUPERVISOR_TICK_MS), so that not each line that others log wakes
 * us, and whenever a worker tells a fault: the driver reports an error when it finds it, and
 * a worker notices only when it asks for its stream. Should a record still come later it
 * counts, drains and is logged, but no error is held up for it.
 */

#include "base.h"
#include "policy.h"

typedef struct Device Device;
typedef struct DeviceMonitor DeviceMonitor;
typedef struct XidLog XidLog;

/** xid_log_new() - of the kernel's log, consumed on success. Return: 0 or -ENOMEM. */
int xid_log_new(int fd, XidLog **ret_log);
/** xid_log_free() - NULL is fine. Return: NULL. */
XidLog *xid_log_free(XidLog *log);
/** xid_log_read() - what is new in it; nothing before the devices are known. */
void xid_log_read(DeviceMonitor *monitor);
/**
 * xid_log_explain() - the worker @pid on @device faulted: what does the log say of it? @log: NULL: nothing
 * @cause:   becomes FAULT_HARDWARE where that is what failed
 * @failure: what the worker said; may be NULL
 *
 * Each record explains one fault. Return: the caller's, the same with the Xid; NULL: the log says nothing.
 */
Failure *xid_log_explain(XidLog *log, const Device *device, int32_t pid, FaultCause *cause,
                         const Failure *failure);

#endif
