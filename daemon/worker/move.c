/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Move
 */
#include "worker/move.h"

#include "util/macro.h"

#define MOVE_THREADS     256u
#define MOVE_BLOCKS_MAX  32u
#define MOVE_BLOCK_BYTES (16u << 10) /* four vectors of 16 bytes a thread */

bool move_table_add(MoveTable *table, const MoveRow *row) {
        MoveRow *last = table->n_rows ? &table->rows[table->n_rows - 1] : NULL;

        if (last && row->to == last->to + last->n_bytes &&
            (row->from ? last->from && row->from == last->from + last->n_bytes : !last->from)) {
                last->n_bytes += row->n_bytes;
                return true;
        }
        if (table->n_rows == MOVE_ROWS_MAX)
                return false;

        table->rows[table->n_rows++] = *row;
        return true;
}

unsigned move_table_blocks(const MoveTable *table) {
        uint64_t n_longest = 0;

        for (unsigned i = 0; i < table->n_rows; ++i)
                n_longest = MAX(n_longest, table->rows[i].n_bytes);
        n_longest = (n_longest + MOVE_BLOCK_BYTES - 1) / MOVE_BLOCK_BYTES;
        return (unsigned)MIN(MAX(n_longest, 1), MOVE_BLOCKS_MAX);
}

void move_init(Move *move, Context *context) {
        *move = (Move){.context = context};
}

CUresult move_add(Move *move, CUstream stream, CUdeviceptr to, CUdeviceptr from, uint64_t n_bytes) {
        const MoveRow row = {.to = to, .from = from, .n_bytes = n_bytes};
        CUresult result;

        if (n_bytes == 0 || move_table_add(&move->table, &row))
                return CUDA_SUCCESS;

        result = move_launch(move, stream);
        move_table_add(&move->table, &row);
        return result;
}

CUresult move_launch(Move *move, CUstream stream) {
        /* On the host a thread of a block is one call, with the table copied for it. */
        unsigned n_threads = move->context->cu->cpu ? 1 : MOVE_THREADS;
        CUlaunchConfig config = {
                .gridDimX = move_table_blocks(&move->table),
                .gridDimY = move->table.n_rows,
                .gridDimZ = 1,
                .blockDimX = n_threads,
                .blockDimY = 1,
                .blockDimZ = 1,
                .hStream = stream,
        };
        void *params[] = {move->table.rows};
        CUresult result;

        if (move->table.n_rows == 0)
                return CUDA_SUCCESS;

        result = move->context->cu->cuLaunchKernelEx(&config, move->function, params, NULL);
        move->table.n_rows = 0;
        return result;
}
