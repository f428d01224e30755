/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LINK_RINGING_H
#define GPUQ_LINK_RINGING_H

/*
 * Ringing
 *
 * A client that has seen some jobs end asks the daemon for rings in shared memory,
 * if it has any, and goes on with the socket until they are there.
 */

#include "client.h"

#define RINGING_AFTER 32 /* jobs that ended: a short-lived process asks for nothing */

/** ringing_init() - for a new connection and its Welcome. */
void ringing_init(gpuq_client *client, const Gpuq__V1__Welcome *welcome);
/** ringing_consider() - so many jobs have ended: ask, if it is time. */
void ringing_consider(gpuq_client *client, uint64_t n_ended);
/** ringing_answered() - the daemon said something of rings; @fd stays the caller's. Return: false: it was none of that. */
bool ringing_answered(gpuq_client *client, const Gpuq__V1__Reply *reply, int fd);

#endif
