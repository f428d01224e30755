/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_BENCH_H
#define GPUQ_BENCH_H

/*
 * Bench
 *
 * One job, c = a + b on float32, kept in flight by several processes, each through
 * one contender: a CUDA context of its own, gpuq, or gpuq with prepared jobs. As a
 * chain the job adds b so many times, a launch each; as a spin it takes its time
 * first. The loop, the clock and the checks are the same for all; a contender only
 * runs jobs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_SLOTS_MAX     64
#define BENCH_PROCESSES_MAX 256
#define BENCH_PHASES_MAX    16
#define BENCH_BLOCK         256 /* threads */

/* Where the data of a job is when it starts and ends. */
typedef enum BenchData {
        BENCH_COPIES,   /* in host memory, copied to the device and back each time */
        BENCH_IN_PLACE, /* in host memory that the kernel reads and writes itself */
        BENCH_DEVICE,   /* on the device */
        _BENCH_DATA_N,
} BenchData;

typedef struct BenchOptions {
        const char *driver;  /* own: path of the CUDA driver library */
        const char *kernels; /* own: folder of the built-in kernels */
        const char *spins;   /* folder of the bench's own kernels */
        const char *socket;  /* gpuq: NULL for the default */
        size_t n;            /* floats */
        unsigned n_slots;    /* jobs in flight of one process, at most */
        unsigned n_streams;  /* own: so many for all slots; 0: one each */
        unsigned n_launches; /* of one job */
        unsigned n_blocks;   /* of a spin */
        uint64_t spin_ns;    /* 0: no spin */
        bool crowded;        /* there are fewer cores than processes: who polls lets others run */
} BenchOptions;

typedef struct Contender {
        const char *name;
        /** open() - make ready all that jobs on host memory need. */
        int (*open)(const BenchOptions *options, void **ret_state);
        /** inputs() - host pointers of a slot, to be filled before the first prepare(). */
        void (*inputs)(void *state, unsigned slot, float **ret_a, float **ret_b);
        /** prepare() - jobs from here on have their data there; c of each slot is spoilt. */
        int (*prepare)(void *state, BenchData data);
        /** start() - run the job of a slot, without waiting; at the latest with the next next(). */
        int (*start)(void *state, unsigned slot);
        /** next() - wait until some slot's job ended. */
        int (*next)(void *state, unsigned *ret_slot);
        /** result() - c of a slot, on the host; NULL on failure. */
        const float *(*result)(void *state, unsigned slot);
        void (*close)(void *state);
} Contender;

extern const Contender contender_own;
extern const Contender contender_gpuq;
extern const Contender contender_prepared;

/** bench_data_name() - "in-place" of BENCH_IN_PLACE. */
const char *bench_data_name(BenchData data);
/** bench_file() - a file of a folder, with a zero behind it; to be freed. @ret_n: may be NULL. Return: NULL if there is none. */
void *bench_file(const char *folder, const char *name, size_t *ret_n);
/** bench_now_ns() - by the clock that all processes share. */
uint64_t bench_now_ns(void);

#endif
