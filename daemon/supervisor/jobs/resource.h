/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_RESOURCE_H
#define GPUQ_SUPERVISOR_RESOURCE_H

/*
 * Resource
 *
 * What users are charged for, and how much of it there is for all of them.
 */

#include "policy.h"

#define RESOURCE_QUEUED_PART                                                                       \
        8u /* this part of the machine's memory is for all users' unfinished jobs */
#define RESOURCE_WORKERS_PART                                                                      \
        2u /* of the keeper's processes; the others are ending, or look at devices */
/* This part of the descriptors that the kernel lets the supervisor send is for all users' clients. */
#define RESOURCE_TRANSIT_PART 8u
/*
 * A session takes two descriptors, a socket and that of its process, and arenas may take half of all:
 * with this part the sessions of all users leave some for workers.
 */
#define RESOURCE_SESSION_PART 4u
#define RESOURCE_SPARE                                                                             \
        16u /* records that nobody may take: a change needs another one for a moment */

typedef enum UserResource {
        USER_SESSIONS,
        USER_JOBS,
        USER_QUEUED_BYTES, /* of memory for unfinished jobs */
        USER_ARENAS,
        USER_ARENA_BYTES,
        USER_DEVICE_BYTES,
        USER_MODULES,
        USER_PREPARED_BYTES,
        USER_DETACHED_JOBS,
        USER_DETACHED_BYTES, /* on disk */
        USER_BUFFER_BYTES,   /* of messages that are half received or not read yet */
        USER_RING_BYTES,     /* of shared memory for messages */
        USER_RECORD_BYTES,   /* of texts, and of records without a limit of their own */
        USER_WAITS,          /* requests that are answered when a job ends */
        USER_WORKERS,        /* processes: a person's subordinate uids have one each */
        USER_TRANSIT_FDS,    /* descriptors that were sent and not read */
        _USER_RESOURCE_N,
} UserResource;

/** resource_divide_arenas() - @n_bytes of host memory among all users' arenas; UINT64_MAX: it is not divided. */
void resource_divide_arenas(Quota quotas[_USER_RESOURCE_N], uint64_t n_bytes);
/** resource_quotas_init() - divide what the ledger, the keeper and the machine's memory can hold. */
void resource_quotas_init(Quota quotas[_USER_RESOURCE_N]);
/** resource_set_transit_room() - the kernel lets the supervisor send fewer descriptors than its limit says. */
void resource_set_transit_room(Quota quotas[_USER_RESOURCE_N], uint64_t room);

#endif
