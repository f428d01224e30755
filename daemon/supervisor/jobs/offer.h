/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_OFFER_H
#define GPUQ_SUPERVISOR_OFFER_H

/*
 * Offer
 *
 * Moves a slot's waiting work to another device.
 */

#include "slot.h"

/** offer_slot() - move its waiting work that may run on another device to one that takes jobs. */
void offer_slot(Slot *slot);

#endif
