/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_TWIN_H
#define GPUQ_WORKER_TWIN_H

/*
 * Twin
 *
 * Launches many jobs at once, by the twin of their kernel, which takes a table of their arguments
 * (compiler/batch.h describes it).
 */

#include "compiler/batch.h"
#include "worker/geometry.h"
#include "worker/stream.h"

typedef struct TwinTable {
        _Alignas(16) uint8_t bytes[BATCH_TABLE_BYTES];
        size_t n_rows;
} TwinTable;

/** twin_rows() - jobs of this launch that one table holds; fewer than BATCH_ROWS_MIN: it has no twin for it. */
size_t twin_rows(const ProgramLaunch *launch);

/** twin_add() - add a row with a job's current arguments; the table must have space. */
void twin_add(TwinTable *table, const ProgramLaunch *launch);
/** twin_launch() - launch all rows, with the geometry of @launch. */
CUresult twin_launch(const TwinTable *table, const ProgramLaunch *launch, Streams *streams,
                     Stream *stream);

#endif
