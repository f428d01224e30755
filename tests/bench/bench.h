/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_BENCH_H
#define GPUQ_BENCH_H

/*
 * Bench
 *
 * The small job, c = a + b on float32, kept in flight by several processes,
 * each through one contender: its own CUDA context, or gpuq. The loop, the
 * clock and the checks are the same for all; a contender only runs jobs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_SLOTS_MAX 64

typedef struct BenchOptions {
        const char *driver;  /* own: path of the CUDA driver library */
        const char *kernels; /* own: folder of the built-in kernels */
        const char *socket;  /* gpuq: NULL for the default */
        bool on_device;      /* data stays on the device; else host memory, copied each time */
        unsigned n_slots;    /* jobs in flight of one process */
        size_t n;            /* floats */
} BenchOptions;

typedef struct Contender {
        const char *name;
        /** open() - make everything ready; a and b of each slot hold what fill() writes. */
        int (*open)(const BenchOptions *options, void **ret_state);
        /** inputs() - host pointers of a slot to fill before the first start(). */
        void (*inputs)(void *state, unsigned slot, float **ret_a, float **ret_b);
        /** ready() - inputs are filled: move them to where they are wanted. */
        int (*ready)(void *state);
        /** start() - run the job of a slot, without waiting. */
        int (*start)(void *state, unsigned slot);
        /** next() - wait until some slot's job ended. */
        int (*next)(void *state, unsigned *ret_slot);
        /** result() - c of a slot, on the host; NULL on failure. */
        const float *(*result)(void *state, unsigned slot);
        void (*close)(void *state);
} Contender;

extern const Contender contender_own;
extern const Contender contender_gpuq;

#endif
