/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_CLAIM_H
#define GPUQ_SUPERVISOR_CLAIM_H

/*
 * Claim
 *
 * What a worker says of its device: that it is broken, or that it has no memory for one more
 * context. A worker's user may have forged it, so it counts for that user alone: the slot waits, and
 * a health check by a process of the daemon's own decides whether anybody else is affected. A slot
 * whose claims were not true is checked ever more rarely.
 */

#include <stdbool.h>

#include "policy.h"
#include "slot.h"

/**
 * claim_make() - the slot's worker says so, and is gone: have the device checked
 * @why: its words
 *
 * Return: false: the slot's latest claims were not true, so it is not checked now.
 */
bool claim_make(Slot *slot, Claim claim, const char *why);
/** claim_settle() - its device was checked, and the check found something. */
void claim_settle(Slot *slot, HealthFinding finding);
/** claim_drop() - the device is as an administrator says. */
void claim_drop(Slot *slot);

#endif
