/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SESSION_DISPATCH_H
#define GPUQ_SESSION_DISPATCH_H

/*
 * Dispatch
 *
 * What comes in: replies go to their calls, completions to their jobs, a last
 * error ends the connection; an end without one may be a daemon that is started
 * again, which is resume.c's. Anything that does not fit the protocol ends it
 * too, with GPUQ_E_PROTOCOL: a stream that lies once cannot be trusted again.
 */

#include "client.h"

/** dispatch_frame() - one that was read; consumes its descriptor. */
void dispatch_frame(gpuq_client *client, const WireFrame *frame);

#endif
