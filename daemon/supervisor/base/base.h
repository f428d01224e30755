/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_BASE_ROOM_H
#define GPUQ_SUPERVISOR_BASE_ROOM_H

/*
 * Base: the room's public header
 *
 * Owns what every other room needs: typed failures, the link to the keeper, the ledger
 * (what the next supervisor must know, in memory that the keeper holds too), watches over
 * processes, and the watch over calls that stall the loop. It calls policy/, util/ and proto/
 * only. It promises that a failure can always be made, that what was sent to the keeper
 * arrives in order without blocking the loop, and that a damaged ledger is never used.
 */

#include "failure.h"
#include "keeper_link.h"
#include "ledger.h"
#include "process_age.h"
#include "process_watch.h"
#include "stall.h"

#endif
