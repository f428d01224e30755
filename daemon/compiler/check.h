/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_CHECK_H
#define GPUQ_COMPILER_CHECK_H

/*
 * Check
 *
 * A checked image: each load and store of its kernels through global, shared or generic addresses is
 * compared with the buffers of the job. The compiler makes the image, the worker fills the table and
 * reads the record; both know this page.
 *
 * A buffer that the job only writes has a shadow, in memory of the job: a bit for each byte, which is
 * set once the byte was written. Bit I of a word is that of the byte at I beyond a multiple of 32.
 * Kernels set the bits of what they store or change by atomic operations, the worker those of what other
 * operations write. A load of bytes whose bits are not all set is reported like an access outside.
 *
 * The module has a variable CHECK_NAME with one CheckVariable. Before the first launch of a job the
 * worker zeroes the record and writes the ranges, before each launch the number of the launch. The
 * first thread whose access lies in no range fills the record and ends. All threads that access
 * memory later end too, so that nobody waits for a thread that has ended. Jobs of one image run one
 * after the other, as they share the variable.
 *
 * The sites of a compiled result say what each number in `site` means, one a line:
 *
 *     WHAT <tab> PLACE <tab> INSTRUCTION
 *
 * WHAT is "load", "store" or "atomic operation"; PLACE is "FILE:LINE" of the source, or "-".
 */

#include <stdint.h>

#define CHECK_NAME       "gpuq_check" /* begins every name that is added */
#define CHECK_RANGES_MAX 4096u

typedef enum CheckWhy {
        CHECK_OUTSIDE,
        CHECK_READ_ONLY, /* a store to a range that is only read */
        CHECK_SHARED,    /* outside of the block's shared memory */
        CHECK_UNWRITTEN, /* a read of bytes that nobody wrote */
} CheckWhy;

typedef struct CheckRecord {
        uint32_t taken; /* 1: a thread has filled the rest */
        uint32_t site;
        uint32_t launch;
        uint32_t why;
        uint64_t address; /* CHECK_SHARED: in shared memory */
        uint32_t n_bytes;
        uint32_t block[3], thread[3];
        uint32_t low, high; /* CHECK_SHARED: where the block's shared memory begins and ends */
        uint32_t _reserved;
} CheckRecord;

typedef struct CheckHead {
        uint32_t n_ranges;
        uint32_t launch; /* of the job's operations: its number */
        uint64_t _reserved;
} CheckHead;

/* A range without a shadow: all of it counts as written. */
#define CHECK_NO_WRITES UINT64_C(0)
#define CHECK_NO_SHADOW UINT64_C(1)

typedef struct CheckRange {
        uint64_t begin;
        uint64_t n_bytes;
        uint64_t shadow; /* where the first byte's bit is, or one of the above */
} CheckRange;

typedef struct CheckVariable {
        CheckRecord record;
        CheckHead head;
        CheckRange ranges[CHECK_RANGES_MAX];
} CheckVariable;

#endif
