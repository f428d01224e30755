/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_ARGUMENT_H
#define GPUQ_WORKER_ARGUMENT_H

/*
 * Argument
 *
 * Whether what a client gives for a kernel's parameter fits it: size always,
 * kind where both are known.
 */

#include "worker/image.h"

/* Room for a scalar, aligned for any. */
typedef union ArgumentSlot {
        uint8_t bytes[16];
        _Alignas(16) uint64_t word;
} ArgumentSlot;

/** argument_slots() - how many a given argument fills; 0 for a buffer. */
size_t argument_slots(const Gpuq__V1__Argument *argument);
/** argument_check() - for parameter @i, which exists. Return: 0 or FAILURE_E_SET. */
int argument_check(const Function *function, unsigned i, const Gpuq__V1__Argument *argument,
                   Failure *failure);

#endif
