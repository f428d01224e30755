/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_TRIM_H
#define GPUQ_SUPERVISOR_TRIM_H

/*
 * Trim
 *
 * Gives memory back to the system after a peak of queued jobs: freed memory stays with the process
 * otherwise. Only while nothing is left to do, because it takes milliseconds for each GiB, and at most once
 * in TRIM_EVERY_NS.
 */

#include <stdbool.h>
#include <stdint.h>

#define TRIM_LEAST    (64ull << 20) /* bytes that became free since it was done last */
#define TRIM_EVERY_NS 5000000000ull

typedef struct Trim {
        uint64_t peak;    /* bytes in use, at most, since it was done last */
        uint64_t last_ns; /* when it was done last; 0: never */
        uint64_t n_done;
} Trim;

/**
 * trim_tick() - called periodically
 * @in_use:  bytes of all unfinished jobs
 * @is_busy: jobs come and end all the time, or work is left over for the next turn
 *
 * Return: whether memory was given back now.
 */
bool trim_tick(Trim *trim, uint64_t in_use, bool is_busy, uint64_t now_ns);

#endif
