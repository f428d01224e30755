/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ORDER_H
#define GPUQ_SUPERVISOR_ORDER_H

/*
 * Order
 *
 * Order within one session: which unfinished earlier jobs a job must run after, because their
 * accesses overlap and at least one of the two writes. Pure; knows ids and ranges only. The caller
 * numbers the objects: arenas by bytes, a module's variables as one byte.
 *
 * It reports the necessary predecessors only: waiting for the last writer and the readers since
 * then implies waiting for their predecessors too. An access that meets many segments and jobs (see
 * order_object.h) counts as a write of all of them. This only adds order, and keeps the cost of an
 * access near O(log n) on average, in any order of accesses.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "order_access.h"
#include "util/macro.h"

#define ORDER_ACCESS_BYTES                                                                         \
        256u /* of memory that one access may take: an access splits two segments at most */

typedef struct Order Order;
typedef struct OrderNode OrderNode; /* a job in it, until it is removed */

/** order_new() - no jobs. Return: 0, or -ENOMEM. */
int order_new(Order **ret_order);
/** order_free() - frees all remaining jobs too; NULL is fine. Return: NULL. */
Order *order_free(Order *order);
DEFINE_CLEANUP(Order, order_free)
/**
 * order_sweep_freed() - free a part of what large objects of any order leave behind
 *
 * Return: how many segments were freed, at most @n_max.
 */
size_t order_sweep_freed(size_t n_max);
/** order_has_freed() - something is left for order_sweep_freed(). */
bool order_has_freed(void);

/**
 * order_add() - add a job behind all jobs added before
 * @job: its id
 * @accesses: many are merged in their place
 *
 * Return: 0, or -ENOMEM: nothing was added.
 */
int order_add(Order *order, uint64_t job, OrderAccess *accesses, size_t n_accesses,
              OrderNode **ret_node);
/**
 * order_remove() - the job ended: done, failed or cancelled; NULL is fine
 *
 * A job may end before its predecessors (cancelled while it waited). Its successors then follow its
 * predecessors, so do not count down the result of order_predecessors(): call it again when it
 * matters.
 */
void order_remove(Order *order, OrderNode *node);

/** order_is_free() - no predecessor of this job is left. Cheap. */
bool order_is_free(Order *order, OrderNode *node);
/**
 * order_predecessors() - the jobs that this job has to run after now
 * @ret_predecessors: a fresh array of ids, no duplicates, the caller's to free(); NULL: there are none
 *
 * Return: 0, or -ENOMEM.
 */
int order_predecessors(Order *order, OrderNode *node, uint64_t **ret_predecessors, size_t *ret_n);
/** order_n_jobs() - added and not removed. */
size_t order_n_jobs(const Order *order);

#endif
