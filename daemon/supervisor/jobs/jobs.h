/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_JOBS_ROOM_H
#define GPUQ_SUPERVISOR_JOBS_ROOM_H

/*
 * Jobs: the room's public header
 *
 * Owns users and their charges, devices as the scheduler sees them, arenas, modules, and jobs from
 * submission to their one end: dependencies, order, placement, fair share, and recovery of jobs
 * whose worker ended. It calls policy/ and base/. It knows a client as a Submitter and a worker
 * process as an Executor, and reaches the rooms above through tables of callbacks: SubmitterOps,
 * ExecutorOps, DeviceOps, and EndObserver. It promises that only this room changes a job, that every job ends
 * exactly once, and that every charge is undone.
 *
 * Its modules from the bottom, each of which includes only those before it:
 *
 *     limit, history, delivery, device_ops, end_observer, lookup
 *     engine: what all share      device and lane       user      submitter
 *     executor: a worker          arena      slot       module    job
 *     cursor     dependency: edges           inflight   gate       choice: a device
 *     express: a slot's second executor
 *     place: where a job is       follow: later jobs     trace      ending
 *     provision: workers, arenas, modules of a slot
 *     overtaken, recovery         offer      retire     scheduler  submission           reason
 *     lease: jobs that a worker takes by itself
 *     backlog: what is left for later turns
 *     claim: what a worker says of its device
 */

#include "arena.h"
#include "backlog.h"
#include "choice.h"
#include "cursor.h"
#include "claim.h"
#include "device.h"
#include "device_ops.h"
#include "end_observer.h"
#include "ending.h"
#include "engine.h"
#include "executor.h"
#include "express.h"
#include "gate.h"
#include "inflight.h"
#include "job.h"
#include "lease.h"
#include "limit.h"
#include "lookup.h"
#include "module.h"
#include "offer.h"
#include "place.h"
#include "provision.h"
#include "reason.h"
#include "recovery.h"
#include "retire.h"
#include "scheduler.h"
#include "slot.h"
#include "submission.h"
#include "submitter.h"
#include "trace.h"
#include "trim.h"
#include "user.h"

/** jobs_configure() - apply another configuration, which stays the caller's. */
void jobs_configure(Engine *engine, const Config *config);
/** jobs_fini() - asserts that no job, arena or module is left. */
void jobs_fini(Engine *engine);

#endif
