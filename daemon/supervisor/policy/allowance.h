/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ALLOWANCE_H
#define GPUQ_SUPERVISOR_ALLOWANCE_H

/*
 * Allowance
 *
 * How often one trust domain may do what costs the others something: have a worker started again,
 * have the daemon check a device, or have other users' workers stopped. A few uses are free. Then
 * each use has to wait, twice as long as the one before, up to a limit. The wait is short again
 * after a quiet time. Pure: time comes in as an argument.
 */

#include <stdint.h>

typedef struct AllowanceRule {
        unsigned n_free;    /* uses at once */
        uint64_t every_ns;  /* each use is paid for after this time; doubles while there is debt */
        uint64_t most_ns;   /* up to this */
        uint64_t forget_ns; /* without debt for so long: every_ns again */
} AllowanceRule;

/* Zeroed: never used. Touched only by this module. */
typedef struct Allowance {
        uint64_t paid_ns; /* the uses so far are paid for by then */
        unsigned n_over;  /* uses in a row that began a wait */
} Allowance;

/* Of one person on all devices, so that neither devices nor subordinate uids multiply them. */
typedef struct Allowances {
        Allowance disproved; /* claims about devices that were not true */
        Allowance restarts;  /* of workers, after ends that their users brought about */
} Allowances;

/** allowance_use() - one more use, at @now_ns. */
void allowance_use(Allowance *allowance, const AllowanceRule *rule, uint64_t now_ns);
/** allowance_until() - when the next use is due; 0: at once. */
uint64_t allowance_until(const Allowance *allowance, const AllowanceRule *rule, uint64_t now_ns);

#endif
