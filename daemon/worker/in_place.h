/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_IN_PLACE_H
#define GPUQ_WORKER_IN_PLACE_H

/*
 * In place
 *
 * Whether a kernel had better work on host memory itself than on a copy. It
 * depends on the kernel: one that reads each word once gains 2-fold, one with
 * atomics loses 400-fold. So both ways are timed for each kernel and size class, in
 * turns, the better one is kept, and both are tried again at a falling rate. In place is one
 * launch where the other is three, so it may take half as long again. Pure.
 *
 *     UNTRIED -> TRYING -> WON or LOST -> TRYING -> …
 *
 * What it gains (one H200, docs/benchmarks.md and docs/measurements.md): a lone small addition takes 14.6 us from client
 * to client at the median (12.5 in another run), and 26.6 us where staging was chosen. In the worker it takes 9.4 us in
 * place and 20 us staged. With 32 in flight it gains nothing that is beyond the noise.
 *
 * Beside other work a run's time tells of that work, so a trial has the device to itself: for
 * a moment all else waits for its end, and it for theirs. Where that moment was too short,
 * trials wait for the next such moment, or until nothing else is there by itself.
 *
 * A trial must cost little: one at a time, of small jobs; of several jobs at once
 * only if so many of a lone job's time are little.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/quiet.h"

#define IN_PLACE_CLASSES      24u               /* class i: from 2^i bytes on */
#define IN_PLACE_JOB_MAX      (128u << 10)      /* bytes of a job that may be worked on in place */
#define IN_PLACE_TRIALS       8u                /* runs of each way before the two are compared */
#define IN_PLACE_TRIAL_NS     UINT64_C(5000000) /* what one may cost */
#define IN_PLACE_AGAIN_NS     UINT64_C(2000000000) /* until the first time that both are tried again */
#define IN_PLACE_AGAIN_MAX_NS UINT64_C(120000000000)

typedef enum InPlaceState {
        IN_PLACE_UNTRIED,
        IN_PLACE_TRYING,
        IN_PLACE_WON,
        IN_PLACE_LOST,
} InPlaceState;

/* [false]: staged, [true]: in place */
typedef struct InPlaceClass {
        InPlaceState state;
        InPlaceState kept;  /* while it is tried: what it was before */
        unsigned n_told[2]; /* runs in this round of trials */
        /* Of the quickest of them, for each KiB: the runs of a class differ up to twofold. */
        uint64_t best_ns[2];
        uint64_t until_ns;    /* so long all else may wait, or could the last time */
        uint64_t hold_gap_ns; /* from then to the next time */
        uint64_t again_at_ns; /* when both are tried again */
        uint64_t again_gap_ns;
} InPlaceClass;

typedef struct InPlace {
        InPlaceClass classes[IN_PLACE_CLASSES];
        uint64_t alone_ns; /* a lone job in place at best; 0: unknown */
        bool in_trial;     /* one is in flight */
} InPlace;

/* What else is in flight. */
typedef enum InPlaceBeside {
        IN_PLACE_ALONE,
        IN_PLACE_BESIDE_NEW, /* all of it for less than QUIET_NS: it may end in a moment */
        IN_PLACE_BESIDE_OLD,
} InPlaceBeside;

typedef struct InPlaceChoice {
        bool wait; /* for what is in flight: no choice yet, ask again when that has ended or at quiet_ns */
        bool in_place;
        bool trial;        /* in_place_told() or in_place_forget() must follow */
        bool only_one;     /* of the jobs */
        uint64_t quiet_ns; /* of a trial, and while it waits: it should be quiet until then */
} InPlaceChoice;

/** in_place_choose() - for a run of @n_jobs with @n_bytes of host memory in all, > 0 both. */
InPlaceChoice in_place_choose(InPlace *in_place, uint64_t n_bytes, size_t n_jobs,
                              InPlaceBeside beside, uint64_t now_ns);
/** in_place_told() - a run took @took_ns; only trials count. */
void in_place_told(InPlace *in_place, const InPlaceChoice *choice, uint64_t n_bytes, size_t n_jobs,
                   uint64_t took_ns, uint64_t now_ns);
/** in_place_forget() - a trial came to nothing. */
void in_place_forget(InPlace *in_place, const InPlaceChoice *choice);
/** in_place_state() - of a size. */
InPlaceState in_place_state(const InPlace *in_place, uint64_t n_bytes);

#endif
