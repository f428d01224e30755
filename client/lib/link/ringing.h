/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LINK_RINGING_H
#define GPUQ_LINK_RINGING_H

/*
 * Ringing
 *
 * A client that has seen some jobs end asks the daemon for rings in shared memory, if the daemon
 * offers them. It uses the socket until it has them.
 */

#include "client.h"

#define RINGING_AFTER 32 /* jobs that must end first, so that a short-lived process does not ask */

/** ringing_init() - for a new connection and its Welcome. */
void ringing_init(gpuq_client *client, const Gpuq__V1__Welcome *welcome);
/** ringing_consider() - this many jobs have ended: ask if it is time. */
void ringing_consider(gpuq_client *client, uint64_t n_ended);
/** ringing_answered() - handle a message about rings; @fd stays the caller's. Return: false: it
 * is another message. */
bool ringing_answered(gpuq_client *client, const Gpuq__V1__Reply *reply, int fd);

#endif
