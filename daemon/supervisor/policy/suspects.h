/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SUSPECTS_H
#define GPUQ_SUPERVISOR_SUSPECTS_H

/*
 * Suspects
 *
 * The kernels of one user that have faulted and not run well since. Jobs that launch them run
 * alone, so that the next fault costs no other job a retry. Kernels are known by the
 * names of module and kernel, because a restarted client loads the same module anew. Pure, and
 * bounded: the kernel whose fault is oldest is forgotten first.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUSPECTS_MAX 64u

/* Zeroed: none. Touched only by this module. */
typedef struct Suspects {
        uint64_t keys[SUSPECTS_MAX]; /* oldest first */
        size_t n_keys;
} Suspects;

/** suspects_key() - the key of a kernel. */
uint64_t suspects_key(const char *module, const char *kernel);
/** suspects_add() - the kernel faulted. */
void suspects_add(Suspects *suspects, uint64_t key);
/** suspects_has() */
bool suspects_has(const Suspects *suspects, uint64_t key);
/** suspects_clear() - the kernel ran well. */
void suspects_clear(Suspects *suspects, uint64_t key);

#endif
