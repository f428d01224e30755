/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_JOBS_ROOM_H
#define GPUQ_SUPERVISOR_JOBS_ROOM_H

/*
 * Jobs: the room's public header
 *
 * Owns users and what they are charged, devices as the scheduler sees them, arenas, modules,
 * and jobs from submission to their one end: dependencies, order, placement, fair share, what
 * happens to jobs whose worker ended. It calls policy/ and base/. It knows a client as a
 * Submitter and a worker process as an Executor, and reaches the rooms above through tables of
 * callbacks: SubmitterOps, ExecutorOps, DeviceOps. It promises that only this room changes a
 * job, that every job ends exactly once, and that every charge is undone.
 */

#include "arena.h"
#include "dependency.h"
#include "device.h"
#include "device_ops.h"
#include "ending.h"
#include "engine.h"
#include "executor.h"
#include "job.h"
#include "limit.h"
#include "module.h"
#include "recovery.h"
#include "scheduler.h"
#include "slot.h"
#include "submitter.h"
#include "user.h"

#endif
