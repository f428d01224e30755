/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_XID_CATALOG_H
#define GPUQ_SUPERVISOR_XID_CATALOG_H

/*
 * Xid catalog
 *
 * The meaning of Xid numbers and the action they need, after NVIDIA's catalog,
 * https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, of October 2025: the column
 * "Resolution Bucket (Immediate Action)". If that is a reset of the GPU or a restart of the machine,
 * the Xid is fatal. WORKFLOW_XID_48 results in a reset, alone or with 63 or 64 beside it. The workflows
 * of NVLink (74, 144 to 150) depend on more than the number; the driver reports their result itself
 * with Xid 154, whose text has the action.
 */

#include <stdbool.h>

#include "xid.h"

typedef enum XidAction {
        XID_NO_ACTION, /* none for the device: the job ends, or nothing does */
        XID_RESET_GPU,
        XID_RESTART_VM,
        XID_RESTART_BM, /* the machine itself */
} XidAction;

/** xid_meaning() - for display. Never NULL. */
const char *xid_meaning(const Xid *xid);
/** xid_action() - the action it needs; XID_NO_ACTION for an unknown number. */
XidAction xid_action(const Xid *xid);
/** xid_action_name() - for display: "reset the GPU"; NULL for no action. */
const char *xid_action_name(XidAction action);
/** xid_is_fatal() - the device must not take more jobs. */
static inline bool xid_is_fatal(const Xid *xid) {
        return xid_action(xid) != XID_NO_ACTION;
}
/** xid_is_hardware() - memory or bus failed: no job is to blame. */
bool xid_is_hardware(const Xid *xid);
/** xid_is_sequel() - it follows another Xid that says more. */
bool xid_is_sequel(const Xid *xid);

#endif
