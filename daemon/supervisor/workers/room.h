/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ROOM_H
#define GPUQ_SUPERVISOR_ROOM_H

/*
 * Room
 *
 * What happens when a device has no memory for one more context beside those of other
 * domains: seen on an H200 with driver 580, with some dozens of them. Work
 * that may run on a device with room goes there. Of the others' workers without work
 * the one that has been idle for longest ends, one at a time, and nothing is lost with
 * it. Where all have work, the newcomer's waits until one has none; it is not given up.
 *
 * A user can have his worker claim that there is no room. That ends others' idle
 * contexts, two in each ROOM_RETRY_MAX_MS, and costs them a start when they come back.
 */

#include <stdbool.h>
#include <stdint.h>

typedef struct Device Device;
typedef struct Slot Slot;

#define ROOM_RETRY_MS     250u /* before the second try; doubles */
#define ROOM_RETRY_MAX_MS 2000u
#define ROOM_YIELD_MS     1000u /* before who made room starts again, should work come */
#define ROOM_ENDING_MS    5000u /* so long one that makes room may take to end before another does */
#define ROOM_FORGET_MS    10000u /* after a try in vain: from then on the device may have room again */

/* Of a slot. Zeroed: it never lacked room. */
typedef struct Room {
        unsigned n_others; /* that were there at the last try, if that found none */
        unsigned n_tries;  /* in a row that found none */
        uint64_t since_ns; /* the first of them, */
        uint64_t tried_ns; /* and the last */
        bool was_woken;    /* the next try is because a worker ended */
        bool was_in_vain; /* the last one was, and in vain: the next one has to wait for its time */
} Room;

/** room_lacks() - the worker of @slot found none: it has none now, and is started again by and by. @why: its words. */
void room_lacks(Slot *slot, const char *why);
/** room_found() - it came up, or failed for another reason. */
void room_found(Room *room);
/** room_made() - a worker's process on @device has ended: who waits there for longest tries at once. */
void room_made(Device *device);
/** room_is_short() - lately there was none. */
bool room_is_short(const Room *room, uint64_t now_ns);

#endif
