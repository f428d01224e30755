/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_ARGUMENT_H
#define GPUQ_WORKER_ARGUMENT_H

/*
 * Argument
 *
 * Whether a client's argument fits a kernel's parameter: always by size, and by kind where both are
 * known.
 */

#include "util/texture.h"
#include "worker/image.h"

/* Space for a scalar of any type. */
typedef union ArgumentSlot {
        uint8_t bytes[16];
        _Alignas(16) uint64_t word;
} ArgumentSlot;

/** argument_slots() - the number of slots that an argument fills; 0 for a buffer. */
size_t argument_slots(const Gpuq__V1__Argument *argument);
/** argument_texture() - what an argument that is a texture says about it. */
TextureShape argument_texture(const Gpuq__V1__Texture *message);
/** argument_check() - for parameter @i, which exists. Return: 0 or FAILURE_E_SET. */
int argument_check(const Function *function, unsigned i, const Gpuq__V1__Argument *argument,
                   Failure *failure);

#endif
