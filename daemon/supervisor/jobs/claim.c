/* SPDX-License-Identifier: Apache-2.0 */
#include "claim.h"

#include "device_ops.h"
#include "engine.h"
#include "provision.h"
#include "util/log.h"

/* A check costs the device's users a context. About ten in ten minutes, if none is right. */
static const AllowanceRule claim_disproved = {
        .every_ns = 2000000000,
        .most_ns = 600000000000,
        .forget_ns = 600000000000,
};

bool claim_make(Slot *slot, Claim claim, const char *why) {
        Engine *engine = slot->engine;

        slot_set_problem(slot, why);
        if (allowance_until(&slot->allowances->disproved, &claim_disproved, uv_hrtime()))
                return false;

        if (limit_log(&engine->log_limit))
                log_warning("device %u: the worker of uid %u reports that it failed: %s",
                            slot->device->index, slot->key.domain, why);
        slot->claim = claim;
        engine->device_ops->doubt(slot->device);
        return true;
}

static void claim_disprove(Slot *slot) {
        allowance_use(&slot->allowances->disproved, &claim_disproved, uv_hrtime());
        if (limit_log(&slot->engine->log_limit))
                log_notice(
                        "device %u passed its health check: the failure that the worker of uid %u "
                        "reported affects only that user",
                        slot->device->index, slot->key.domain);
}

void claim_settle(Slot *slot, HealthFinding finding) {
        Claim claim = slot->claim;

        slot->claim = CLAIM_NONE;
        if (finding == HEALTH_FOUND_WELL)
                claim_disprove(slot);
        if (claim == CLAIM_FULL && finding == HEALTH_FOUND_FULL)
                slot->engine->executor_ops->make_room(slot);
        if (claim == CLAIM_BROKEN && finding != HEALTH_FOUND_BROKEN)
                provision_device_is_well(slot);
        else
                provision_slot(slot);
}

void claim_drop(Slot *slot) {
        slot->claim = CLAIM_NONE;
        provision_slot(slot);
}
