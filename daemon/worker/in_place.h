/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_IN_PLACE_H
#define GPUQ_WORKER_IN_PLACE_H

/*
 * In place
 *
 * Whether a kernel should work on host memory itself instead of on a copy. It depends on the kernel: one
 * that reads each word once gains 2-fold, one with atomics loses 400-fold. So both ways are timed for
 * each kernel and size class, in turns. The better one is kept, and both are tried again with backoff.
 * In place is one launch where the other way is three, so it may take half as long again. A size class that
 * is not decided yet follows its neighbours. Pure.
 *
 *     UNTRIED -> TRYING -> WON or LOST -> TRYING -> …
 *
 * The gain (one H200, docs/benchmarks.md): in the worker a lone small addition takes 9.4 us in place
 * and 20 us staged. With 32 in flight from 16 processes no gain beyond the noise was found: 486,289 and
 * 443,177 jobs/s, and 462,566 with in_place=no.
 *
 * Beside other work a run's time depends on that work, so a trial has the device alone: other work waits
 * in a quiet window for the trial's end, and the trial for the end of work in flight. If the window was
 * too short, trials wait for the next one, or until no other work is left by itself. The time is between
 * two of the device's events, so it matters little if the worker's thread loses its core: by the thread's
 * own clock one trial that seems 32 times as long decides for two seconds. On one machine, six of eight
 * lone jobs that followed 16 clients on 16 cores were staged; whether that was the cause was not shown.
 *
 * A trial must cost little: one at a time, of small jobs; of several jobs at once only if that many times
 * a lone job's time is little.
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
        InPlaceState kept;  /* during trials: the state before */
        unsigned n_told[2]; /* runs in this round of trials */
        /* The time of the quickest run, per KiB: runs of a class differ up to twofold. */
        uint64_t best_ns[2];
        uint64_t until_ns;    /* how long other work may wait, or could the last time */
        uint64_t hold_gap_ns; /* from then to the next time */
        uint64_t again_at_ns; /* when both ways are tried again */
        uint64_t again_gap_ns;
} InPlaceClass;

typedef struct InPlace {
        InPlaceClass classes[IN_PLACE_CLASSES];
        uint64_t alone_ns; /* best time of a lone job in place; 0: unknown */
        bool in_trial;     /* a trial is in flight */
} InPlace;

/* Other work in flight. */
typedef enum InPlaceBeside {
        IN_PLACE_ALONE,
        IN_PLACE_BESIDE_NEW, /* all of it for less than QUIET_NS: it may end soon */
        IN_PLACE_BESIDE_OLD,
} InPlaceBeside;

typedef struct InPlaceChoice {
        bool wait; /* no choice yet: ask again when work in flight has ended, or at quiet_ns */
        bool in_place;
        bool trial;        /* in_place_told() or in_place_forget() must follow */
        bool only_one;     /* issue only the first of the jobs */
        uint64_t quiet_ns; /* of a trial, and while it waits: it should be quiet until then */
} InPlaceChoice;

/** in_place_choose() - choose the way of a run of @n_jobs with @n_bytes of host memory in all, both > 0. */
InPlaceChoice in_place_choose(InPlace *in_place, uint64_t n_bytes, size_t n_jobs,
                              InPlaceBeside beside, uint64_t now_ns);
/** in_place_told() - a run took the device @took_ns > 0; only trials count. */
void in_place_told(InPlace *in_place, const InPlaceChoice *choice, uint64_t n_bytes, size_t n_jobs,
                   uint64_t took_ns, uint64_t now_ns);
/** in_place_forget() - a trial had no result. */
void in_place_forget(InPlace *in_place, const InPlaceChoice *choice);
/** in_place_state() - the state for a size. */
InPlaceState in_place_state(const InPlace *in_place, uint64_t n_bytes);

#endif
