/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_AWAY_H
#define GPUQ_SUPERVISOR_AWAY_H

/*
 * Away
 *
 * A job runs where its device memory is, unless its client named another device. But if much work waits there, and
 * another device is nearly idle, a job whose client named none may run on that one, and use its data by peer access:
 * the data stay where they are. policy/placement.h says when that pays.
 *
 * A job moves only if its results stay the same: between devices of one model, with native atomic operations on each
 * other's memory, and without variables of modules. A job that depends by buffers on a job in flight on the home device
 * stays; one that depends on a job that went away waits for that job's end. If the other device fails a job, by its
 * worker, its memory, or a fault, the job goes back to its data.
 */

#include "device.h"
#include "job.h"

/** away_device() - where a job runs whose device memory is on @home. Return: @home, or the device that it goes to. */
Device *away_device(const Job *job, Device *home);
/** away_expected_ns() - its expected time on a device that is not the one of its data. */
uint64_t away_expected_ns(const Job *job, const Device *device);

#endif
