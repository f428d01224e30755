/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ORDER_RANGES_H
#define GPUQ_SUPERVISOR_ORDER_RANGES_H

/*
 * Order ranges
 *
 * Merges the accesses of a job with many buffers. Ranges of one object and one direction that overlap
 * or touch become one range, which changes no order. If more than ORDERRANGES_MAX are left, they are
 * rounded to blocks, as small as possible, whose neighbours become one range too. This only adds order,
 * and bounds what one job costs: a range that Order does not know takes it about a microsecond.
 */

#include <stddef.h>

#include "order_access.h"

#define ORDERRANGES_FEW 32u  /* accesses of a job that are taken as they are */
#define ORDERRANGES_MAX 256u /* ranges of a job, or two for each of its objects if those are more */

/** orderranges_merge() - sort and merge @accesses in their place. Return: how many are left. */
size_t orderranges_merge(OrderAccess *accesses, size_t n);

#endif
