/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LIB_RINGING_H
#define GPUQ_LIB_RINGING_H

/*
 * Ringing
 *
 * A client that has seen some jobs end asks the daemon for rings in shared memory,
 * if it has any, and goes on with the socket until they are there: nobody waits.
 */

#include <stdbool.h>

#include "proto/gpuq.pb-c.h"

#define RINGING_AFTER 32 /* jobs that ended: a short-lived process asks for nothing */

typedef struct gpuq_client gpuq_client;

typedef struct Ringing {
        bool is_offered; /* the daemon has rings */
        bool is_asked;   /* for them */
} Ringing;

/** ringing_init() - of a new connection, on which the daemon said this. */
void ringing_init(Ringing *ringing, const Gpuq__V1__Welcome *welcome);
/** ringing_consider() - ask, if it is time. */
void ringing_consider(gpuq_client *client);
/** ringing_answered() - the daemon said something of rings; @fd stays the caller's. Return: false: it was none of that. */
bool ringing_answered(gpuq_client *client, const Gpuq__V1__Reply *reply, int fd);

#endif
