/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_FAILURE_H
#define GPUQ_WORKER_FAILURE_H

/*
 * Failure
 *
 * Why something did not work, in the words its user reads: a code of the
 * protocol and a text. A function that can fail so takes a Failure, sets it and
 * returns FAILURE_E_SET, or FAILURE_E_FAULT when the whole context is spent.
 */

#include <stdbool.h>

#include "proto/gpuq.pb-c.h"
#include "util/macro.h"
#include "worker/protocol.h"

enum {
        _FAILURE_E_SUCCESS,
        FAILURE_E_SET,   /* the failure says why; nobody else is touched */
        FAILURE_E_FAULT, /* the failure says why; the context is spent */
        FAILURE_E_WAIT,  /* not now: call again when something in flight has ended */
};

typedef struct Failure {
        Gpuq__V1__Code code; /* OK: none */
        char *text;
        bool is_device; /* it is the device, not what runs on it */
} Failure;

/** failure_set() - replaces what was there. Return: FAILURE_E_SET. */
int failure_set(Failure *failure, Gpuq__V1__Code code, const char *format, ...) _printf_(3, 4);
/** failure_clear() - back to none. */
void failure_clear(Failure *failure);
/** failure_copy() - @to replaced by what @from says. */
void failure_copy(Failure *to, const Failure *from);
/** failure_is_set() */
static inline bool failure_is_set(const Failure *failure) {
        return failure->code != GPUQ__V1__CODE__OK;
}
/** failure_tell() - as the error of a message, which borrows the text; none leaves it without one. */
void failure_tell(const Failure *failure, WorkerMessage *message);

/** text_clean() - make foreign text valid UTF-8 in place: other bytes become "?". Return: @text. */
char *text_clean(char *text);

#endif
