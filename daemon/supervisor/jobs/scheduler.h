/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SCHEDULER_H
#define GPUQ_SUPERVISOR_SCHEDULER_H

/*
 * Scheduler
 *
 * Chooses the next job on each device: a user by fair share, then the highest priority, then sessions
 * in turn. It dispatches while the worker has capacity and the device's gate is open. The cost of a
 * decision does not depend on how many jobs wait.
 */

#include <stdint.h>

#include "engine.h"

/** scheduler_run() - dispatch all jobs that can run now. */
void scheduler_run(Engine *engine);
/** scheduler_tick() - called periodically: users whose GPU seconds are below their limit again may go on. */
void scheduler_tick(Engine *engine, uint64_t now_ns);

#endif
