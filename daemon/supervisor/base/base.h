/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_BASE_ROOM_H
#define GPUQ_SUPERVISOR_BASE_ROOM_H

/*
 * Base: the room's public header
 *
 * Owns what every other room needs: typed failures, the link to the keeper, the ledger, watches
 * over processes, the watch over turns and system calls that stall the loop, threads for the disk, and
 * the number of descriptors that the kernel lets it send. The ledger holds what the next supervisor must know, in
 * memory that the keeper holds too. The room calls policy/, util/ and proto/ only. It promises that
 * making a failure never fails, that messages to the keeper arrive in order (except the status)
 * without blocking the loop, and that a damaged ledger is never used.
 */

#include "disk.h"
#include "failure.h"
#include "keeper_link.h"
#include "ledger.h"
#include "process_age.h"
#include "process_watch.h"
#include "slurm_job.h"
#include "stall.h"
#include "transit_room.h"

#endif
