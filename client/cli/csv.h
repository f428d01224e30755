/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_CSV_H
#define GPUQ_CLI_CSV_H

/*
 * CSV
 *
 * Rows of comma-separated values on standard output (RFC 4180, with line feeds).
 */

#include <stdbool.h>
#include <stdint.h>

typedef struct Csv {
        bool is_within; /* a row */
} Csv;

/** csv_text() - the next value of the row. */
void csv_text(Csv *csv, const char *text);
/** csv_number() - the same. */
void csv_number(Csv *csv, uint64_t value);
/** csv_seconds() - nanoseconds as seconds with decimals. */
void csv_seconds(Csv *csv, uint64_t ns);
/** csv_end() - the row ends. */
void csv_end(Csv *csv);

#endif
