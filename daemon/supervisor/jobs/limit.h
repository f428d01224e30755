/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_LIMIT_H
#define GPUQ_SUPERVISOR_LIMIT_H

/*
 * Limit
 *
 * Limits of one client request, and of the log lines that a client can cause.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMIT_JOB_BUFFERS    4096u
#define LIMIT_JOB_KERNELS    4096u
#define LIMIT_JOB_AFTER      1024u
#define LIMIT_JOB_OPERATIONS (1u << 20) /* bytes */
#define LIMIT_JOB_DEVICE     4096u      /* far more than exist, and fits an int */
#define LIMIT_JOB_LABEL      64u        /* bytes */
#define LIMIT_CLIENT_NAME    64u        /* bytes, of a client's program */
#define LIMIT_DRAIN_REASON   200u       /* bytes */
#define LIMIT_MESSAGE_PARTS  (1u << 18) /* messages and texts within one message of a worker */
#define LIMIT_REQUEST_PARTS  (1u << 14) /* the same of a client: more than any job has */
#define LIMIT_KERNEL_NAME    1024u      /* bytes; C++ names are long */
#define LIMIT_WATCHES        1024u      /* of one session */
#define LIMIT_USER_WAITS     16384u     /* of a person: a job may end for all of them in one turn */
#define LIMIT_LOG_BURST      10u
#define LIMIT_LOG_NS         1000000000ull /* one more line for each of these */

typedef struct LimitLog {
        uint64_t credit_ns;
        uint64_t last_ns;
} LimitLog;

/** limit_log() - whether one more line that a peer caused may be logged. */
bool limit_log(LimitLog *limit);

#endif
