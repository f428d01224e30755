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
        _USER_RESOURCE_N,
} UserResource;

/** resource_quotas_init() - divide what the ledger, the keeper and the machine's memory can hold. */
void resource_quotas_init(Quota quotas[_USER_RESOURCE_N]);

#endif
