/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_XID_CATALOG_H
#define GPUQ_SUPERVISOR_XID_CATALOG_H

/*
 * Xid catalog
 *
 * What the numbers mean and what is to be done, after NVIDIA's catalog,
 * https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, of October 2025:
 * the column "Resolution Bucket (Immediate Action)". Where that is a reset of the GPU or a
 * restart of the machine the Xid is fatal. WORKFLOW_XID_48 comes to a reset, alone or with
 * 63 or 64 beside it. The workflows of NVLink (74, 144 to 150) depend on more than the
 * number; what they come to the driver says itself with Xid 154, whose text has the action.
 */

#include <stdbool.h>

#include "xid.h"

typedef enum XidAction {
        XID_NO_ACTION, /* for the device: the job ends, or nothing does */
        XID_RESET_GPU,
        XID_RESTART_VM,
        XID_RESTART_BM, /* the machine itself */
} XidAction;

/** xid_meaning() - for people. Never NULL. */
const char *xid_meaning(const Xid *xid);
/** xid_action() - what it asks for; XID_NO_ACTION of one that is not known. */
XidAction xid_action(const Xid *xid);
/** xid_action_name() - for people: "reset the GPU"; NULL of none. */
const char *xid_action_name(XidAction action);
/** xid_is_fatal() - the device is to take no more jobs. */
static inline bool xid_is_fatal(const Xid *xid) {
        return xid_action(xid) != XID_NO_ACTION;
}
/** xid_is_hardware() - memory or bus failed: no job is to blame. */
bool xid_is_hardware(const Xid *xid);
/** xid_is_sequel() - comes behind another that says more. */
bool xid_is_sequel(const Xid *xid);

#endif
