/* SPDX-License-Identifier: Apache-2.0 */
#include "xid_catalog.h"

#include <stdlib.h>
#include <string.h>

#include "util/macro.h"

#define XID_RECOVERY_ACTION 154

enum {
        XID_HARDWARE = 1 << 0,
        XID_SEQUEL = 1 << 1,
};

typedef struct XidEntry {
        unsigned number;
        const char *meaning;
        XidAction action;
        unsigned flags;
} XidEntry;

/* Numbers that the catalog does not call unused, except those of engines that compute no kernels. */
static const XidEntry xid_entries[] = {
        {8, "GPU stopped processing", XID_NO_ACTION, 0},
        {11, "invalid or corrupted push buffer stream", XID_NO_ACTION, 0},
        {13, "graphics engine exception", XID_NO_ACTION, 0},
        {25, "invalid or illegal push buffer stream", XID_NO_ACTION, 0},
        {31, "GPU memory page fault", XID_NO_ACTION, 0},
        {32, "invalid or corrupted push buffer stream", XID_NO_ACTION, 0},
        {37, "driver firmware error", XID_NO_ACTION, 0},
        {38, "driver firmware error", XID_NO_ACTION, 0},
        {39, "copy engine exception", XID_NO_ACTION, 0},
        {40, "copy engine exception", XID_NO_ACTION, 0},
        {41, "copy engine exception", XID_NO_ACTION, 0},
        {43, "GPU stopped processing", XID_NO_ACTION, XID_SEQUEL},
        {44, "graphics engine fault during context switch", XID_NO_ACTION, 0},
        {45, "preemptive cleanup after an earlier error", XID_NO_ACTION, XID_SEQUEL},
        {46, "GPU stopped processing", XID_RESET_GPU, 0},
        {48, "double bit ECC error", XID_RESET_GPU, XID_HARDWARE},
        {54, "auxiliary power is not connected", XID_NO_ACTION, 0},
        {62, "internal micro-controller halt", XID_RESET_GPU, 0},
        {63, "GPU memory remapping", XID_NO_ACTION, 0},
        {64, "GPU memory remapping failure", XID_RESET_GPU, XID_HARDWARE},
        {66, "illegal access by driver", XID_NO_ACTION, 0},
        {67, "illegal access by driver", XID_NO_ACTION, 0},
        {69, "graphics engine class error", XID_NO_ACTION, 0},
        {70, "copy engine error", XID_NO_ACTION, 0},
        {71, "copy engine error", XID_NO_ACTION, 0},
        {72, "copy engine error", XID_NO_ACTION, 0},
        {74, "NVLink error", XID_NO_ACTION, 0},
        {75, "copy engine error", XID_NO_ACTION, 0},
        {76, "copy engine error", XID_NO_ACTION, 0},
        {77, "copy engine error", XID_NO_ACTION, 0},
        {79, "GPU has fallen off the bus", XID_RESTART_BM, XID_HARDWARE},
        {80, "corrupted data sent to GPU", XID_NO_ACTION, 0},
        {85, "copy engine error", XID_NO_ACTION, 0},
        {92, "high single-bit ECC error rate", XID_NO_ACTION, 0},
        {93, "InfoROM wear limit", XID_NO_ACTION, 0},
        {94, "contained memory error", XID_NO_ACTION, XID_HARDWARE},
        {95, "uncontained memory error", XID_RESET_GPU, XID_HARDWARE},
        {109, "context switch timeout", XID_RESET_GPU, 0},
        {110, "security fault", XID_RESET_GPU, 0},
        {119, "GSP RPC timeout", XID_RESET_GPU, 0},
        {120, "GSP error", XID_RESET_GPU, 0},
        {121, "C2C error", XID_NO_ACTION, 0},
        {126, "copy engine error", XID_NO_ACTION, 0},
        {127, "copy engine error", XID_NO_ACTION, 0},
        {128, "copy engine error", XID_NO_ACTION, 0},
        {129, "copy engine error", XID_NO_ACTION, 0},
        {130, "copy engine error", XID_NO_ACTION, 0},
        {131, "copy engine error", XID_NO_ACTION, 0},
        {132, "copy engine error", XID_NO_ACTION, 0},
        {133, "copy engine error", XID_NO_ACTION, 0},
        {134, "copy engine error", XID_NO_ACTION, 0},
        {135, "copy engine error", XID_NO_ACTION, 0},
        {136, "link training failed", XID_RESET_GPU, 0},
        {137, "NVLink privilege error", XID_NO_ACTION, 0},
        {140, "unrecovered ECC error", XID_RESET_GPU, XID_HARDWARE},
        {141, "CUDA fast path error", XID_NO_ACTION, 0},
        {143, "GPU initialization error", XID_RESET_GPU, 0},
        {144, "NVLink SAW error", XID_NO_ACTION, 0},
        {145, "NVLink RLW error", XID_NO_ACTION, 0},
        {146, "NVLink TLW error", XID_NO_ACTION, 0},
        {147, "NVLink TREX error", XID_NO_ACTION, 0},
        {148, "NVLink NVLPW_CTRL error", XID_NO_ACTION, 0},
        {149, "NVLink NETIR error", XID_NO_ACTION, 0},
        {150, "NVLink MSE error", XID_NO_ACTION, 0},
        {151, "key rotation error", XID_RESTART_VM, 0},
        {XID_RECOVERY_ACTION, "GPU recovery action changed", XID_NO_ACTION, XID_SEQUEL},
        {155, "NVLink error defined by software", XID_RESET_GPU, 0},
        {156, "resource retirement", XID_RESET_GPU, 0},
        {157, "resource retirement failure", XID_NO_ACTION, 0},
        {158, "GPU fatal timeout", XID_RESET_GPU, 0},
        {160, "channel retirement", XID_NO_ACTION, 0},
        {161, "channel retirement failure", XID_NO_ACTION, 0},
        {171, "uncorrectable DRAM error", XID_NO_ACTION, XID_HARDWARE},
        {172, "uncorrectable SRAM error", XID_NO_ACTION, XID_HARDWARE},
};

static const XidEntry *xid_find(unsigned number) {
        for (size_t i = 0; i < ARRAY_SIZE(xid_entries); ++i)
                if (xid_entries[i].number == number)
                        return &xid_entries[i];
        return NULL;
}

/*
 * "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)": the numbers are NVML's,
 * nvmlDeviceGpuRecoveryAction_t; the words differ between drivers. Draining peer-to-peer copies only
 * (3) concerns no gpuq job.
 */
static XidAction xid_told_action(const char *text) {
        static const XidAction actions[] = {
                [1] = XID_RESET_GPU,
                [2] = XID_RESTART_BM,
                [4] = XID_RESET_GPU,
        };
        const char *to = strstr(text, " to 0x");
        unsigned long action;

        if (!to)
                return XID_NO_ACTION;
        action = strtoul(to + strlen(" to 0x"), NULL, 16);
        return action < ARRAY_SIZE(actions) ? actions[action] : XID_RESET_GPU;
}

const char *xid_meaning(const Xid *xid) {
        const XidEntry *entry = xid_find(xid->number);

        return entry ? entry->meaning : "not in the catalog";
}

XidAction xid_action(const Xid *xid) {
        const XidEntry *entry = xid_find(xid->number);

        if (xid->number == XID_RECOVERY_ACTION)
                return xid_told_action(xid->text);
        return entry ? entry->action : XID_NO_ACTION;
}

const char *xid_action_name(XidAction action) {
        switch (action) {
                case XID_NO_ACTION:
                        break;
                case XID_RESET_GPU:
                        return "reset the GPU";
                case XID_RESTART_VM:
                        return "restart the virtual machine";
                case XID_RESTART_BM:
                        return "restart the machine";
        }
        return NULL;
}

bool xid_is_hardware(const Xid *xid) {
        const XidEntry *entry = xid_find(xid->number);

        return entry && entry->flags & XID_HARDWARE;
}

bool xid_is_sequel(const Xid *xid) {
        const XidEntry *entry = xid_find(xid->number);

        return entry && entry->flags & XID_SEQUEL;
}
