/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_EVICTION_H
#define GPUQ_SUPERVISOR_EVICTION_H

/*
 * Eviction
 *
 * What happens when a device has no memory for one more context beside those of other domains (seen
 * on an H200 with driver 580, with some dozens of contexts). Work that may run on another device goes
 * there. A spare worker is stopped first. Of the other domains' idle workers, the one that has been
 * idle longest is stopped, one at a time; its end loses nothing. If all have work, the new domain's
 * work waits until one is idle.
 *
 * A user can make their worker claim that there is no memory. So a worker is stopped only if a health
 * check finds none either (claim.h), and no more than a few for one domain, then one in each
 * EVICTION_EVERY_MS.
 */

typedef struct Device Device;
typedef struct Slot Slot;

#define EVICTION_YIELD_MS  1000u /* before the evicted domain starts a worker again */
#define EVICTION_ENDING_MS 5000u /* for an evicted worker to end before another is evicted */
#define EVICTION_FREE      2u    /* workers stopped for one domain at once */
#define EVICTION_EVERY_MS  5000u /* then one in this time */

/** eviction_begin() - the worker of @slot found no memory and is gone. @why: its error text. */
void eviction_begin(Slot *slot, const char *why);
/** eviction_make_room() - a check has found no memory for the worker of @slot: stop an idle worker. */
void eviction_make_room(Slot *slot);
/** eviction_freed() - a worker's process on @device has ended: the slot that has waited longest retries at once. */
void eviction_freed(Device *device);

#endif
