/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_OFFER_H
#define GPUQ_SUPERVISOR_OFFER_H

/*
 * Offer
 *
 * Moves what waits in a slot to another device.
 */

#include "slot.h"

/** offer_slot() - what waits in it, and may run on another device that takes jobs, goes there. */
void offer_slot(Slot *slot);

#endif
