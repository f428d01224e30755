/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ORDER_H
#define GPUQ_SUPERVISOR_ORDER_H

/*
 * Order
 *
 * Order within one session: which unfinished earlier jobs a job must run after,
 * because an access of theirs overlaps one of its own and one of both writes.
 * Pure; knows ids and ranges only. Objects are whatever the caller numbers:
 * arenas by bytes, a module's variables as one byte.
 *
 * It tells the necessary ones: with the last writer and the readers since then,
 * whatever those wait for is waited for too. Two things keep the cost near
 * O(log n) a job, both only ever more cautious: a job with more than
 * ORDER_DIRECT_MAX predecessors counts as a writer of all it touches, and an
 * object that splinters is seen as a whole again.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "order_access.h"
#include "util/macro.h"

#define ORDER_DIRECT_MAX 1024

typedef struct Order Order;
typedef struct OrderNode OrderNode; /* a job in it, until it is removed */

/** order_new() - no jobs. Return: 0, or -ENOMEM. */
int order_new(Order **ret_order);
/** order_free() - whatever it still holds; NULL is fine. Return: NULL. */
Order *order_free(Order *order);
DEFINE_CLEANUP(Order, order_free)

/**
 * order_add() - a job, behind all that were added before
 * @job: its id
 *
 * Return: 0, or -ENOMEM: nothing was added.
 */
int order_add(Order *order, uint64_t job, const OrderAccess *accesses, size_t n_accesses,
              OrderNode **ret_node);
/**
 * order_remove() - it ended: done, failed or cancelled; NULL is fine
 *
 * A job may end before its predecessors did (cancelled while it waited). Those
 * that were behind it are then behind its predecessors, so do not count down
 * what order_predecessors() told: ask it again when it matters.
 */
void order_remove(Order *order, OrderNode *node);

/** order_is_free() - no predecessor of this job is left. Cheap. */
bool order_is_free(Order *order, OrderNode *node);
/**
 * order_predecessors() - those it has to run after now
 * @ret_predecessors: a fresh array of ids, no duplicates, the caller's to free(); NULL: there are none
 *
 * Return: 0, or -ENOMEM.
 */
int order_predecessors(Order *order, OrderNode *node, uint64_t **ret_predecessors, size_t *ret_n);
/** order_n_jobs() - added and not removed. */
size_t order_n_jobs(const Order *order);

#endif
