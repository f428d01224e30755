/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_GATE_H
#define GPUQ_SUPERVISOR_GATE_H

/*
 * Gate
 *
 * Limits what is in flight on one device. The gate bounds the expected time in flight of all users
 * together, so that the next fair-share decision takes effect soon. Quanta let one trust domain run
 * after the other. A job that outlasts its expected time blocks neither: others run beside it.
 */

#include "device.h"
#include "job.h"

/** gate_is_open() - whether one more job may go. If not, the gate's timer asks again. */
bool gate_is_open(Device *device);
/**
 * gate_turn() - which lane's job goes next
 * @pick: the lane that fair share picked, with a job that could go now
 *
 * Return: @pick, or the lane whose quantum it is; NULL: none, and a timer asks again.
 */
Lane *gate_turn(Device *device, Lane *pick, uint64_t now_ns);
/** gate_tick() - at each tick: the user of the jobs in flight pays for their time until now, as their end may be far. */
void gate_tick(Executor *executor);
/** gate_enter() - a job is dispatched. */
void gate_enter(Device *device, Job *job);
/** gate_leave() - the job ended, or went back. */
void gate_leave(Device *device, Job *job, uint64_t now_ns);

#endif
