/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_QUANTA_H
#define GPUQ_SUPERVISOR_QUANTA_H

/*
 * Quanta
 *
 * Lets one trust domain of a device run at a time. Two contexts that both have work
 * cost the driver a switch of 0.14 ms for each small job (7,200 jobs/s in all); with
 * exclusive quanta of 1 to 2 ms it is 61,000 to 67,000. Fair share says whose turn it
 * is; this module says whether that domain may dispatch yet, or the one that holds the
 * device goes on:
 *
 * - A quantum is bounded by what its domain has in flight: no job is dispatched that
 *   would begin after the quantum's end. The next quantum begins when those in flight
 *   have ended.
 * - A holder that has nothing to dispatch and nothing in flight hands over at once; one
 *   that nobody else waits for, nor did a moment ago, is not bounded at all.
 * - For a domain that used little of its last quantum, as one whose client waits for each
 *   job does, the holder's ends after a part of it. So that this is prompt, the holder has
 *   no more than such a part in flight: enough to keep the device busy.
 * - A kernel that overruns stops nobody. What the holder had in flight should have ended
 *   by the quantum's end, or by when it was expected to; one quantum later the others are
 *   dispatched beside it, and the driver slices. A job that is known to take more than
 *   two quanta is waited for by nobody from the start.
 *
 * Pure: time comes in as an argument, nothing here sleeps, logs or does I/O. The owner
 * embeds a QuantaDomain in each domain of a device and a QuantaJob in each job.
 */

#include <stdbool.h>
#include <stdint.h>

/* A quantum has so many parts. */
#define QUANTA_PARTS 4u
/* Quanta for which a device counts as shared after the last hand-over. */
#define QUANTA_SHARED 64u
/* Quanta by which a job may be expected to last and still be waited for. */
#define QUANTA_LONG 2u
/* Quanta after which a domain that should be drained is waited for no longer, although job
 * after job of it ends. */
#define QUANTA_LATE_MAX 3u

/* Zeroed: nothing in flight. Touched only by this module. */
typedef struct QuantaDomain {
        uint64_t in_flight_ns; /* expected, of the jobs that hold the device */
        uint32_t n_in_flight;  /* how many these are */
        uint32_t round;        /* its overruns: jobs of an earlier round hold nothing */
        uint64_t progress_ns;  /* when its last job ended, or the first of these began */
        uint64_t held_ns;      /* for how long it held the device the last time */
} QuantaDomain;

/* Zeroed: not in flight. Touched only by this module. */
typedef struct QuantaJob {
        uint64_t expected_ns;
        uint32_t round;
        bool is_holding;
} QuantaJob;

/* One device. Zeroed: nobody holds it. */
typedef struct Quanta {
        uint64_t
                quantum_ns; /* the owner's to set, at any time; 0: no quanta, all run beside each other */
        QuantaDomain *holder;
        uint64_t granted_ns; /* the holder's quantum began */
        uint64_t handed_ns;  /* it came to be the holder */
        bool is_handed;      /* from another one */
        uint64_t
                drained_ns; /* it is waited for, and expected to be drained by then; 0: it is not */
        uint64_t n_quanta;  /* granted so far */
        uint64_t n_overruns; /* of them, how many ended with jobs still in flight */
} Quanta;

typedef struct QuantaTurn {
        QuantaDomain *domain;  /* may dispatch one job; NULL: nobody may */
        QuantaDomain *overran; /* what it has in flight holds the device no more; else NULL */
        uint64_t until_ns;     /* with nobody: ask again then, or when a job has ended */
} QuantaTurn;

/**
 * quanta_turn() - who dispatches the next job of this device
 * @pick:         whose turn it is by fair share; it has a job that could go now
 * @holder_works: the holder has one, too
 * @is_contended: another domain than @pick has, too
 */
QuantaTurn quanta_turn(Quanta *quanta, QuantaDomain *pick, bool holder_works, bool is_contended,
                       uint64_t now_ns);
/** quanta_enter() - a job of @domain is dispatched. Return: true: it holds the device until it ends. */
bool quanta_enter(Quanta *quanta, QuantaDomain *domain, QuantaJob *job, uint64_t expected_ns,
                  uint64_t now_ns);
/** quanta_leave() - it ended, or went back. Twice is harmless. */
void quanta_leave(QuantaDomain *domain, QuantaJob *job, uint64_t now_ns);
/** quanta_forget() - before a domain's memory goes. */
void quanta_forget(Quanta *quanta, const QuantaDomain *domain);
/** quanta_is_shut() - another domain holds the device. */
bool quanta_is_shut(const Quanta *quanta, const QuantaDomain *domain);

#endif
