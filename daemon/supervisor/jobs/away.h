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
 * Only kernels that cannot tell the difference go away: between devices of one kind, with atomic operations on each
 * other's memory, and without variables of modules. A job behind another one, by buffers, that is in flight where the
 * data are stays there; one behind a job that went away waits for that one's end. If the other device fails it, by its worker, its memory, or a fault, it goes back to its data.
 */

#include "device.h"
#include "job.h"

/** away_device() - where a job runs whose device memory is on @home. Return: @home, or the device that it goes to. */
Device *away_device(const Job *job, Device *home);
/** away_expected_ns() - its expected time on a device that is not the one of its data. */
uint64_t away_expected_ns(const Job *job, const Device *device);

#endif
