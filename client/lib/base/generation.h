/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_BASE_GENERATION_H
#define GPUQ_BASE_GENERATION_H

/*
 * Generation
 *
 * Tells a process from the one that forked it, without a system call where the
 * kernel can, so that every call can ask.
 */

/** generation_get() - a number that differs from the one seen before a fork(). */
unsigned generation_get(void);

#endif
