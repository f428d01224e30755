/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_MOVE_H
#define GPUQ_WORKER_MOVE_H

/*
 * Move
 *
 * Many small copies and zeros in one launch of a kernel (kernels/move.cu), whose parameter lists them.
 * One call of a copy engine costs this thread as much as a launch. The kernel belongs to the built-in
 * ones. Until they are loaded, or if it does not launch, copy engines do the work.
 */

#include <stdbool.h>
#include <stdint.h>

#include "worker/stream.h"

#define MOVE_SIZES                                                                                 \
        3u /* the kernel is there for tables of so many sizes, as kernels/move.cu has them */
#define MOVE_ROWS_MAX 170u /* of the largest: what 4 KiB hold */

typedef struct MoveRow {
        uint64_t to, from; /* addresses of the device's; from 0: zeros */
        uint64_t n_bytes;
} MoveRow;

/* The kernel's parameter, and how many rows are filled in. */
typedef struct MoveTable {
        MoveRow rows[MOVE_ROWS_MAX];
        unsigned n_rows;
} MoveTable;

typedef struct Move {
        Streams *streams;
        CUfunction functions[MOVE_SIZES]; /* all, or all NULL: there is none */
        MoveTable table;                  /* what the next launch does */
} Move;

/**
 * move_table_add() - add a row, or extend the last row if the range continues it
 *
 * Return: false: the table is full.
 */
bool move_table_add(MoveTable *table, const MoveRow *row);
/** move_table_blocks() - how many blocks a row gets: as many as keep PCIe busy, not more of many rows. */
unsigned move_table_blocks(const MoveTable *table);

/** move_init() - without a kernel. */
void move_init(Move *move, Streams *streams);
/** move_is_there() */
static inline bool move_is_there(const Move *move) {
        return move->functions[0] != NULL;
}
/** move_symbol() - the kernel's name for a size, or NULL behind the last. */
const char *move_symbol(unsigned size);
/** move_set() - the kernel of one size is loaded. */
void move_set(Move *move, unsigned size, CUfunction function);
/** move_disable() - the kernel does not work; pending rows are dropped. */
void move_disable(Move *move);
/** move_forget() - drop rows that were not launched. */
void move_forget(Move *move);
/** move_add() - add a row to the next launch, launching a full table first. Rows of one launch have no order. */
CUresult move_add(Move *move, Stream *stream, CUdeviceptr to, CUdeviceptr from, uint64_t n_bytes);
/** move_launch() - launch the pending rows, if any. After a failed launch there is no move kernel any more. */
CUresult move_launch(Move *move, Stream *stream);

#endif
