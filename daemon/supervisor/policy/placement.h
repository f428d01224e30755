/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PLACEMENT_H
#define GPUQ_SUPERVISOR_PLACEMENT_H

/*
 * Placement
 *
 * What a job costs on each of several devices, in time, and whether a job leaves the device of its data for another,
 * from where it uses them by peer access. jobs/choice.c and jobs/away.c collect the facts. Pure: time comes in as an
 * argument.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * What a user's jobs of unknown duration count for on a device, all together, besides DURATION_UNKNOWN_NS each. It is
 * more than the cost of starting a worker: the second such job goes to an idle device, and does not wait for a
 * first one that may be long.
 */
#define PLACEMENT_UNKNOWN_NS 25000000ull

/* Until a new worker runs a job: the start of a CUDA context, and one more job if a spare worker is there
 * (docs/benchmarks.md). */
#define PLACEMENT_START_NS       300000000ull
#define PLACEMENT_START_SPARE_NS 50000000ull
/* A module that this worker has not loaded yet. The compile cache of its user has it. */
#define PLACEMENT_MODULE_NS 50000000ull
/*
 * Bytes per ns that a kernel gets of another device's memory. A copy between two H200 has 300 (docs/benchmarks.md).
 * Kernels that read their data several times, or not in sequence, have less of it.
 */
#define PLACEMENT_PEER_RATE 20u
/* A job goes away only if it ends earlier by so much, and in at most half of the time. */
#define PLACEMENT_GAIN_NS 1000000ull

/* One device, as a job sees it. */
typedef struct PlacementSite {
        uint64_t own_ns;     /* work of its user, queued or running */
        uint64_t others_ns;  /* work of other users */
        uint32_t n_others;   /* how many of them, at least */
        uint64_t quantum_ns; /* that each of them may have before it; 0: none */
        uint64_t start_ns;   /* until a worker that has its modules is there */
        uint64_t run_ns;     /* the job itself */
} PlacementSite;

/**
 * placement_left_ns() - how long a running job will probably still take
 *
 * A job of known duration that is late will be later still. A job of unknown duration is assumed to take as long
 * again as it has run.
 */
uint64_t placement_left_ns(uint64_t expected_ns, uint64_t elapsed_ns, bool is_known);
/** placement_peer_ns() - how much longer a job takes for @n_bytes of its data that are on another device. */
uint64_t placement_peer_ns(uint64_t n_bytes);
/**
 * placement_home_ns() - when a job will have ended if it stays: at best
 *
 * The users share the device: while the job's user has work there, each other user gets no more than this user, and
 * a quantum.
 */
uint64_t placement_home_ns(const PlacementSite *home);
/** placement_away_ns() - when it will have ended elsewhere: at worst, after all that is there. */
uint64_t placement_away_ns(const PlacementSite *away);
/** placement_pays() - the job should leave. */
bool placement_pays(uint64_t home_ns, uint64_t away_ns);

#endif
