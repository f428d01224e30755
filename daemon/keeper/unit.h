/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_UNIT_H
#define GPUQ_KEEPER_UNIT_H

/*
 * Unit
 *
 * Whether systemd is stopping or restarting gpuqd's unit. Queries the system manager over
 * its own socket, without a message bus. A private gpuqd, or one that systemd did not start,
 * is never restarted this way.
 */

#include <stdbool.h>

/** unit_is_restarting() - the unit is being restarted, and systemd keeps its descriptors for the next gpuqd. */
bool unit_is_restarting(void);

#endif
