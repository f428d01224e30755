/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_FAILURE_H
#define GPUQ_SUPERVISOR_FAILURE_H

/*
 * Failure
 *
 * An error as a client receives it: a code of the protocol and a text for a person.
 * Making one never fails: without memory it is a constant that says so.
 */

#include <stdbool.h>
#include <stdint.h>

#include "proto/gpuq.pb-c.h"
#include "util/macro.h"

#define FAILURE_TEXT_MAX (256u << 10) /* bytes; a compiler's log may be long, but not endless */

#define FAILURE_BRIEF_MAX                                                                          \
        1024u /* bytes of it in the failures of jobs that end because of another's: there may be many */

/* The protocol's codes under short names. */
enum {
        FAILURE_PROTOCOL = GPUQ__V1__CODE__E_PROTOCOL,
        FAILURE_VERSION = GPUQ__V1__CODE__E_VERSION,
        FAILURE_INVALID = GPUQ__V1__CODE__E_INVALID,
        FAILURE_NOT_FOUND = GPUQ__V1__CODE__E_NOT_FOUND,
        FAILURE_DENIED = GPUQ__V1__CODE__E_DENIED,
        FAILURE_QUOTA = GPUQ__V1__CODE__E_QUOTA,
        FAILURE_NO_DEVICE = GPUQ__V1__CODE__E_NO_DEVICE,
        FAILURE_IMAGE = GPUQ__V1__CODE__E_IMAGE,
        FAILURE_DEPENDENCY = GPUQ__V1__CODE__E_DEPENDENCY,
        FAILURE_CYCLE = GPUQ__V1__CODE__E_CYCLE,
        FAILURE_FAULT = GPUQ__V1__CODE__E_FAULT,
        FAILURE_TIMEOUT = GPUQ__V1__CODE__E_TIMEOUT,
        FAILURE_CANCELLED = GPUQ__V1__CODE__E_CANCELLED,
        FAILURE_HALF_WRITTEN = GPUQ__V1__CODE__E_HALF_WRITTEN,
        FAILURE_VARIABLES_LOST = GPUQ__V1__CODE__E_VARIABLES_LOST,
        FAILURE_MEMORY = GPUQ__V1__CODE__E_MEMORY,
        FAILURE_SHUTDOWN = GPUQ__V1__CODE__E_SHUTDOWN,
        FAILURE_INTERNAL = GPUQ__V1__CODE__E_INTERNAL,
};

typedef struct Failure {
        int code;
        uint32_t root; /* of DEPENDENCY: where the text names the job that failed first */
        char text[];
} Failure;

/** failure_new() - Return: the caller's failure, never NULL. */
Failure *failure_new(int code, const char *format, ...) _printf_(2, 3);
/**
 * failure_depends() - DEPENDENCY: job @id, on which this job depends, did not succeed
 * @code, @root, @text: of that job's failure; a chain names its first job, not each one between, and
 *                      only the beginning of a long text
 */
Failure *failure_depends(uint64_t id, bool was_cancelled, int code, uint32_t root,
                         const char *text);
/**
 * failure_from_worker() - copy the failure that a worker reported;
 *
 * NULL if @code is 0. Unknown codes become INTERNAL.
 */
Failure *failure_from_worker(uint32_t code, const char *text);
/** failure_copy() - NULL stays NULL. */
Failure *failure_copy(const Failure *failure);
/** failure_brief() - the same with the beginning of its text. Return: the caller's failure. */
Failure *failure_brief(const Failure *failure);
/** failure_free() - NULL is fine. Return: NULL. */
Failure *failure_free(Failure *failure);
DEFINE_CLEANUP(Failure, failure_free)

/** failure_to_proto() - a view of the failure, valid as long as the failure is. */
Gpuq__V1__Error failure_to_proto(const Failure *failure);

#endif
