/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_FUZZ_LIAR_H
#define GPUQ_FUZZ_LIAR_H

/*
 * Liar
 *
 * A daemon without a thread, for libgpuq: whenever the library would sleep it does what comes
 * next in the input: answers well, or as nobody would, or not at all, or ends. With the
 * input's end nobody listens any more, so every wait must end; one that does not is a fault.
 */

#include "input.h"

/** liar_start() - it listens, and goes on by @input. */
void liar_start(Input *input);
/** liar_path() - where. */
const char *liar_path(void);
/** liar_stop() - all that it holds goes. */
void liar_stop(void);

#endif
