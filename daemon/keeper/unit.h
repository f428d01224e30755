/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_UNIT_H
#define GPUQ_KEEPER_UNIT_H

/*
 * Unit
 *
 * What systemd is about to do with the unit that we are. Asked of systemd itself over its
 * own socket, so without a message bus, and only of the machine's: a private gpuqd, and one that
 * systemd did not start, are told to end and nothing else.
 */

#include <stdbool.h>

/** unit_is_restarting() - it is being stopped to be started again, and systemd holds descriptors for the next. */
bool unit_is_restarting(void);

#endif
