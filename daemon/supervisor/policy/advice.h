/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ADVICE_H
#define GPUQ_SUPERVISOR_ADVICE_H

/*
 * Advice
 *
 * The one change that would help a job most, from where its time went. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

#define ADVICE_SHORT_US 200u /* a job that runs for less costs about as much to handle as to run */
#define ADVICE_MANY     32u  /* equal jobs from which on it is worth a change of the program */
/* More than any PCIe slot moves, so the time that moved bytes take is not overestimated. */
#define ADVICE_BYTES_US 64000u

typedef enum Advice {
        ADVICE_NOTHING,     /* no change of the job would gain much */
        ADVICE_LESS_MEMORY, /* it waits because the device has no memory for it */
        ADVICE_PIN,         /* its modules are loaded on several devices: name a device */
        ADVICE_KEEP_DATA,   /* copies take most of its time: use device buffers */
        ADVICE_IN_FLIGHT, /* it was alone in its worker: submit more jobs before waiting for one */
        ADVICE_PREPARE,   /* one of many short equal jobs: prepare it once and fire it */
} Advice;

/* Of one job; of one that has not ended, so far. */
typedef struct AdviceJob {
        uint64_t dependencies_us; /* it waited for other jobs */
        uint64_t module_us;       /* it waited for its modules to be loaded */
        uint64_t queue_us;        /* it waited for its turn */
        uint64_t launch_us;       /* in its worker before and after it ran */
        uint64_t ran_us;          /* with copies */
        uint64_t n_moved;         /* bytes of host data */
        uint64_t n_equal;         /* remembered jobs of the same kernels and size */
        uint32_t n_beside;        /* most jobs in its worker, itself included; 0: not known */
        bool is_prepared;
        bool is_pinned;     /* it names a device, or has data on one */
        bool was_elsewhere; /* equal jobs before it ran on another device */
        bool has_failed;    /* or was cancelled, so its times say little */
        bool lacks_memory;  /* it waits for device memory */
} AdviceJob;

/** advice_choose() - the change for this job. */
Advice advice_choose(const AdviceJob *job);

#endif
