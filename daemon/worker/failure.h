/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_FAILURE_H
#define GPUQ_WORKER_FAILURE_H

/*
 * Failure
 *
 * An error as its user reads it: a code of the protocol and a text. A function that can fail so takes a
 * Failure, sets it and returns FAILURE_E_SET, or FAILURE_E_FAULT if the context is unusable.
 */

#include <stdbool.h>

#include "proto/gpuq.pb-c.h"
#include "proto/text.h"
#include "util/macro.h"
#include "worker/protocol.h"

enum {
        _FAILURE_E_SUCCESS,
        FAILURE_E_SET,        /* the failure says why; no other job is affected */
        FAILURE_E_FAULT,      /* the failure says why; the context is unusable */
        FAILURE_E_WAIT,       /* not now: call again when something in flight has ended */
        FAILURE_E_WAIT_ALONE, /* likewise, and others need not wait */
};

typedef struct Failure {
        Gpuq__V1__Code code; /* OK: none */
        char *text;
        bool is_device; /* the device is to blame, not its work */
} Failure;

/** failure_set() - replace the failure. Return: FAILURE_E_SET. */
int failure_set(Failure *failure, Gpuq__V1__Code code, const char *format, ...) _printf_(3, 4);
/** failure_clear() - clear the failure. */
void failure_clear(Failure *failure);
/** failure_copy() - replace @to by a copy of @from. */
void failure_copy(Failure *to, const Failure *from);
/** failure_is_set() */
static inline bool failure_is_set(const Failure *failure) {
        return failure->code != GPUQ__V1__CODE__OK;
}
/** failure_tell() - as the error of a message, which borrows the text; without a failure it has none. */
void failure_tell(const Failure *failure, WorkerMessage *message);

#endif
