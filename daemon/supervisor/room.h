/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ROOM_H
#define GPUQ_SUPERVISOR_ROOM_H

/*
 * Room
 *
 * What happens when a device has no memory for one more context beside those of other
 * domains: an H200 with driver 580 takes about fifty of them, whatever is free. Work
 * that may run elsewhere goes there. Of the other workers the one that has been idle
 * for longest ends, and nothing is lost with it. Where each has something to do, one
 * that is between two jobs ends once in a while, and its domain waits for its own turn
 * then: so contexts go round as GPU time does. Until then work waits, and is not given up.
 *
 * A user can have his worker claim that there is no room. That ends others' idle
 * contexts, one at each of his tries, which grow rarer, and costs them a start.
 */

#include <stdint.h>

typedef struct Device Device;
typedef struct Slot Slot;

#define ROOM_RETRY_MS     250u /* before the second try; doubles */
#define ROOM_RETRY_MAX_MS 2000u
#define ROOM_TURN_MS                                                                               \
        1000u /* for so long one waits before another that has work makes room; who made room, before it starts again */

/* Of a slot. Zeroed: it never lacked room. */
typedef struct Room {
        unsigned n_others; /* that were there at the last try, if that found none */
        unsigned n_tries;  /* in a row that found none */
        uint64_t since_ns; /* the first of them */
} Room;

/** room_lacks() - the worker of @slot found none: it has none now, and is started again by and by. @why: its words. */
void room_lacks(Slot *slot, const char *why);
/** room_found() - it came up, or waits for it no longer. */
void room_found(Room *room);
/** room_made() - a worker's process on @device has ended: who waits for room there tries at once. */
void room_made(Device *device);

#endif
