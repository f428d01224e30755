/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LINK_RECEIVE_H
#define GPUQ_LINK_RECEIVE_H

/*
 * Receive
 *
 * Reads frames and passes each to the rooms above. The end of the socket ends the client, unless
 * the daemon is being restarted (resume.h); that is decided here.
 */

#include "client.h"

/** client_receive() - read once what the socket has, and the ring, and act on it. */
void client_receive(gpuq_client *client);
/** client_look() - read the ring only, without a system call. */
void client_look(gpuq_client *client);

#endif
