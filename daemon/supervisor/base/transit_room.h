/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_TRANSIT_ROOM_H
#define GPUQ_SUPERVISOR_TRANSIT_ROOM_H

/*
 * Transit room
 *
 * How many descriptors the kernel lets this uid send now, beside those that others have not read.
 * It does not tell, so they are sent to ourselves, and taken back. What clients of an earlier
 * supervisor left unread still counts against the same limit; a part of the rest, instead of a part
 * of the limit, leaves something to the daemon however often it is restarted.
 */

#include <stdint.h>

#define TRANSIT_ROOM_BATCHES 256u /* of so many: the result is off by one of them at most */

/**
 * transit_room_measure() - takes 70 ms for 500,000; other processes of this uid are refused meanwhile. If there is almost
 * none, it tries again for up to 0.2 s, as another process may measure
 * @limit: RLIMIT_NOFILE, the kernel's limit
 *
 * Return: at most @limit, at least 1.
 */
uint64_t transit_room_measure(uint64_t limit);

#endif
