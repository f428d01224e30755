/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TEST_RECORD_H
#define GPUQ_TEST_RECORD_H

/*
 * Record: how each job of one process of the load ended, in a file that the test
 * maps as well and reads while it grows (tests/harness/load.py knows the layout).
 */

#include <stdatomic.h>
#include <stdint.h>

#define RECORD_MAX (1u << 22) /* entries; the file is sparse */

typedef struct RecordEntry {
        uint64_t submitted_ns; /* CLOCK_MONOTONIC */
        uint64_t ended_ns;
        int32_t code; /* 0 or a GPUQ_E_ */
        uint32_t kind;
} RecordEntry;

typedef struct Record {
        _Atomic uint64_t n_entries;
        _Atomic uint64_t n_good;
        _Atomic uint64_t n_connects;
        _Atomic uint64_t n_lost; /* bytes that were not, or not any more, what they had to be */
        RecordEntry entries[];
} Record;

/** record_open() - maps a file of record_bytes(). Ends the process when it cannot. */
Record *record_open(const char *path);
/** record_add() - one job's end. */
void record_add(Record *record, const RecordEntry *entry);
/** record_now_ns() - the clock of entries. */
uint64_t record_now_ns(void);

#endif
