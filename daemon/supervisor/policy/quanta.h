/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_QUANTA_H
#define GPUQ_SUPERVISOR_QUANTA_H

/*
 * Quanta
 *
 * Lets one trust domain of a device run at a time. Two contexts that both have work cost the driver
 * a switch of 0.14 ms for each small job (7,200 jobs/s in all). With exclusive quanta of 1 to 2 ms
 * the rate is 61,000 to 67,000 jobs/s. Fair share picks the next domain. This module decides
 * whether that domain may dispatch yet, or whether the holder of the device continues:
 *
 * - A quantum limits what its domain has in flight: no job is dispatched that would begin after
 *   the quantum's end. The next quantum begins when the jobs in flight have ended.
 * - A holder with nothing to dispatch and nothing in flight yields the device immediately. A holder
 *   without competitors, now and a moment ago, has no quantum.
 * - If a domain used little of its last quantum, because its client waits for each job, the
 *   holder's quantum ends early for it, after one part. To make that prompt, the holder has no more
 *   than one part in flight, which is enough to keep the device busy.
 * - A kernel that overruns blocks no other domain. The holder's jobs in flight should end by
 *   the quantum's end, or by their expected end. One quantum later the other domains are dispatched
 *   beside it, and the driver time-slices. No domain waits for a job that is expected to take
 *   more than two quanta. The owner charges the holder for the time in which the others waited.
 *
 * Pure: time comes in as an argument, nothing here sleeps, logs or does I/O. The owner embeds a
 * QuantaDomain in each domain of a device and a QuantaJob in each job.
 */

#include <stdbool.h>
#include <stdint.h>

/* Parts of a quantum. */
#define QUANTA_PARTS 4u
/* Quanta for which a device counts as shared after the last hand-over. */
#define QUANTA_SHARED 64u
/* A job expected to take more quanta than this is not waited for. */
#define QUANTA_LONG 2u
/* Quanta after which the next domain stops waiting for the holder's jobs in flight, even while these
 * still end one after another. */
#define QUANTA_LATE_MAX 3u

/* Zeroed: nothing in flight. Touched only by this module. */
typedef struct QuantaDomain {
        uint64_t in_flight_ns; /* expected time of the jobs that hold the device */
        uint32_t n_in_flight;  /* the number of these jobs */
        uint32_t round; /* counts its overruns: jobs of an earlier round do not hold the device */
        uint64_t progress_ns; /* its last job ended, or the first of these began */
        uint64_t held_ns;     /* how long it held the device the last time */
} QuantaDomain;

/* Zeroed: not in flight. Touched only by this module. */
typedef struct QuantaJob {
        uint64_t expected_ns;
        uint32_t round;
        bool is_holding;
} QuantaJob;

/* One device. Zeroed: no holder. */
typedef struct Quanta {
        uint64_t
                quantum_ns; /* set by the owner at any time; 0: no quanta, all domains run beside each other */
        QuantaDomain *holder;
        uint64_t granted_ns; /* when the holder's quantum began */
        uint64_t handed_ns;  /* when it became the holder */
        bool is_handed;      /* it took over from another domain */
        uint64_t
                drained_ns; /* the next domain waits, and the holder's jobs should have ended by then; 0: none waits */
        uint64_t n_quanta;   /* granted so far */
        uint64_t n_overruns; /* how many of them ended with jobs still in flight */
} Quanta;

typedef struct QuantaTurn {
        QuantaDomain *domain;  /* may dispatch one job; NULL: none may */
        QuantaDomain *overran; /* its jobs in flight do not hold the device any more; else NULL */
        uint64_t until_ns;     /* without a domain: ask again then, or when a job has ended */
} QuantaTurn;

/**
 * quanta_turn() - which domain dispatches the next job of this device
 * @pick:         the domain that fair share picked; it has a job that could go now
 * @holder_works: the holder has such a job, too
 * @is_contended: a domain other than @pick has such a job, too
 */
QuantaTurn quanta_turn(Quanta *quanta, QuantaDomain *pick, bool holder_works, bool is_contended,
                       uint64_t now_ns);
/** quanta_enter() - a job of @domain is dispatched. Return: true: it holds the device until it ends. */
bool quanta_enter(Quanta *quanta, QuantaDomain *domain, QuantaJob *job, uint64_t expected_ns,
                  uint64_t now_ns);
/** quanta_leave() - the job ended, or went back. Repeating it is harmless. */
void quanta_leave(QuantaDomain *domain, QuantaJob *job, uint64_t now_ns);
/** quanta_holds() - the job is in flight, and other domains wait for its end. */
bool quanta_holds(const QuantaDomain *domain, const QuantaJob *job);
/** quanta_forget() - call it before a domain's memory is freed. */
void quanta_forget(Quanta *quanta, const QuantaDomain *domain);
/** quanta_is_shut() - another domain holds the device. */
bool quanta_is_shut(const Quanta *quanta, const QuantaDomain *domain);

#endif
