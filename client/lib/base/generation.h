/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_BASE_GENERATION_H
#define GPUQ_BASE_GENERATION_H

/*
 * Generation
 *
 * Detects that this process is a forked child. Where the kernel supports it this
 * takes no system call, so that every public function can check.
 */

/** generation_get() - a number that changes in the child after fork(). */
unsigned generation_get(void);

#endif
