/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SESSION_DISPATCH_H
#define GPUQ_SESSION_DISPATCH_H

/*
 * Dispatch
 *
 * Dispatches received frames: replies go to their calls, completions to their jobs,
 * and an error without a request ends the connection. A connection that ends without
 * such an error may be a restart of the daemon, which resume.c handles. A frame that
 * violates the protocol ends the connection with GPUQ_E_PROTOCOL.
 */

#include "client.h"

/** dispatch_frame() - handle a frame; consumes its descriptor. */
void dispatch_frame(gpuq_client *client, const WireFrame *frame);

#endif
