/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SPARES_H
#define GPUQ_SUPERVISOR_SPARES_H

/*
 * Spares
 *
 * Keeps `spare_workers` workers for each device that have a CUDA context and no user yet
 * (worker/spare.h). The next slot that needs a worker gets one, which takes milliseconds instead of
 * the time to make a context. A spare belongs to nobody and is charged to nobody.
 *
 * A context is made for all SMs of the device or for a part of them, so a user with a share (sms in
 * gpuqd.conf) gets no spare.
 *
 * One starts only while no other worker of the device is starting, and SPARES_LATER_NS after one was
 * taken: the driver makes contexts and serves other processes in turns, and the first job comes now.
 * A spare ends if the device is drained, if too little of the device's memory is free, or for a
 * context of a user (eviction.h). After the latter two, or after a failed start, the next one starts
 * only SPARES_RETRY_NS later.
 */

#include <stdint.h>

#include "base.h"
#include "pool.h"

typedef struct Slot Slot;

#define SPARES_RETRY_NS  600000000000ull /* 10 min */
#define SPARES_LATER_NS  2000000000ull   /* 2 s */
#define SPARES_WAIT_NS   5000000000ull /* 5 s: for another worker of the device that is starting */
#define SPARES_FREE_PART 8u            /* of the device's memory that must be free beside a spare */

/** spares_tick() - called periodically: starts and ends them. */
void spares_tick(Workers *workers, uint64_t now_ns);
/** spares_take() - one becomes the slot's worker. Return: NULL: there is none. */
Worker *spares_take(Workers *workers, Slot *slot);
/** spares_ready() - a spare has its context. @n_free: bytes of the device's memory; 0: unknown. */
void spares_ready(Worker *worker, uint64_t n_free);
/** spares_lost() - a spare has ended. @failure: why it had no context; may be NULL. */
void spares_lost(Worker *worker, const Failure *failure);
/** spares_give_way() - another domain needs its memory: end it. */
void spares_give_way(Worker *worker);
/** spares_restart() - they were started by another configuration. */
void spares_restart(Workers *workers);

#endif
