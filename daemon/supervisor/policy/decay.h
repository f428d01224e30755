/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DECAY_H
#define GPUQ_SUPERVISOR_DECAY_H

/*
 * Decay
 *
 * A sum that forgets: half of it is gone after each half-life. Pure. Adding to it
 * costs an addition, and now and then a power: the sum is brought up to date only
 * when a DECAY_STEPS-th of the half-life has passed, which is wrong by less than
 * one in a thousand. Links with libm.
 */

#include <stdint.h>

#define DECAY_STEPS 1024u

/* Zeroed: nothing was added yet. */
typedef struct Decay {
        double sum; /* as it was at at_ns */
        uint64_t at_ns;
} Decay;

/** decay_add() - @amount, at @now_ns. With a half-life of 0 nothing is remembered. */
void decay_add(Decay *decay, uint64_t half_life_ns, double amount, uint64_t now_ns);
/** decay_sum() - Return: what is left of it at @now_ns. */
double decay_sum(const Decay *decay, uint64_t half_life_ns, uint64_t now_ns);

#endif
