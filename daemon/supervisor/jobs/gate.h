/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_GATE_H
#define GPUQ_SUPERVISOR_GATE_H

/*
 * Gate
 *
 * What may be in flight on one device. The gate bounds it by expected time, all users
 * together, so that the next pick counts; by quanta one trust domain runs after the
 * other. A job that outlasts its expected time holds up neither: others then run
 * beside it.
 */

#include "device.h"
#include "job.h"

/** gate_is_open() - may one more job go? Else the gate's timer asks again. */
bool gate_is_open(Device *device);
/**
 * gate_turn() - whose job goes next
 * @pick: to whom fair share points, with a job that could go now
 *
 * Return: @pick, or the lane whose quantum it is; NULL: nobody's, and a timer asks again.
 */
Lane *gate_turn(Device *device, Lane *pick, uint64_t now_ns);
/** gate_enter() - a job is dispatched. */
void gate_enter(Device *device, Job *job);
/** gate_leave() - it ended, or went back. */
void gate_leave(Device *device, Job *job, uint64_t now_ns);

#endif
