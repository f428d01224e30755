/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Move
 */
#include "worker/move.h"

#include <assert.h>
#include <string.h>

#include "util/macro.h"
#include "util/symbol.h"

#define MOVE_THREADS     256u
#define MOVE_BLOCK_BYTES (16u << 10) /* four vectors of 16 bytes a thread */
#define MOVE_BLOCKS_MAX  32u         /* of one row */
#define MOVE_BLOCKS_ALL  128u /* enough for PCIe's bandwidth: more would only delay other kernels */

static const struct {
        unsigned n_rows;
        const char *symbol;
} move_sizes[MOVE_SIZES] = {
        {8, SYMBOL_INTERNAL "move_8"},
        {42, SYMBOL_INTERNAL "move_42"},
        {MOVE_ROWS_MAX, SYMBOL_INTERNAL "move_170"},
};

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
        uint64_t n_longest = 0, n_share = MAX(MOVE_BLOCKS_ALL / MAX(table->n_rows, 1), 1);

        for (unsigned i = 0; i < table->n_rows; ++i)
                n_longest = MAX(n_longest, table->rows[i].n_bytes);
        n_longest = (n_longest + MOVE_BLOCK_BYTES - 1) / MOVE_BLOCK_BYTES;
        return (unsigned)MIN(MIN(MAX(n_longest, 1), MOVE_BLOCKS_MAX), n_share);
}

void move_init(Move *move, Streams *streams) {
        *move = (Move){.streams = streams};
}

const char *move_symbol(unsigned size) {
        return size < MOVE_SIZES ? move_sizes[size].symbol : NULL;
}

void move_set(Move *move, unsigned size, CUfunction function) {
        move->functions[size] = function;
}

void move_forget(Move *move) {
        move->table.n_rows = 0;
}

void move_disable(Move *move) {
        memset(move->functions, 0, sizeof(move->functions));
        move_forget(move);
}

/* The smallest that the table fits. */
static CUfunction move_function(const Move *move) {
        unsigned size = 0;

        while (move->table.n_rows > move_sizes[size].n_rows)
                ++size;
        return move->functions[size];
}

CUresult move_add(Move *move, Stream *stream, CUdeviceptr to, CUdeviceptr from, uint64_t n_bytes) {
        const MoveRow row = {.to = to, .from = from, .n_bytes = n_bytes};
        CUresult result;

        if (n_bytes == 0 || move_table_add(&move->table, &row))
                return CUDA_SUCCESS;

        result = move_launch(move, stream);
        if (result != CUDA_SUCCESS)
                return result;
        move_table_add(&move->table, &row);
        return CUDA_SUCCESS;
}

CUresult move_launch(Move *move, Stream *stream) {
        /* On the host one thread per block is one call, with a copy of the table. */
        unsigned n_threads = move->streams->context->cu->cpu ? 1 : MOVE_THREADS;
        CUlaunchConfig config = {
                .gridDimX = move_table_blocks(&move->table),
                .gridDimY = move->table.n_rows,
                .gridDimZ = 1,
                .blockDimX = n_threads,
                .blockDimY = 1,
                .blockDimZ = 1,
        };
        void *params[] = {move->table.rows};
        CUresult result;

        if (move->table.n_rows == 0)
                return CUDA_SUCCESS;

        assert(move_is_there(move));
        result = stream_launch(move->streams, stream, &config, move_function(move), params);
        move->table.n_rows = 0;
        if (result != CUDA_SUCCESS)
                move_disable(move); /* it would not launch later either */
        return result;
}
