/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DECAY_H
#define GPUQ_SUPERVISOR_DECAY_H

/*
 * Decay
 *
 * A sum that decays by half in each half-life. Pure. Adding costs an addition, and now and then a
 * power: the sum is brought up to date only when a DECAY_STEPS-th of the half-life has passed. The
 * error is less than one in a thousand. Links with libm.
 */

#include <stdint.h>

#define DECAY_STEPS 1024u

/* Zeroed: empty. */
typedef struct Decay {
        double sum; /* at time at_ns */
        uint64_t at_ns;
} Decay;

/** decay_add() - add @amount at @now_ns. With a half-life of 0 nothing is kept. */
void decay_add(Decay *decay, uint64_t half_life_ns, double amount, uint64_t now_ns);
/** decay_sum() - Return: what is left of it at @now_ns. */
double decay_sum(const Decay *decay, uint64_t half_life_ns, uint64_t now_ns);

#endif
