/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_TRANSFER_H
#define GPUQ_WORKER_TRANSFER_H

/*
 * Transfer
 *
 * The data of a batch: zeros and copies before its kernels, copies back after
 * them, each in the way that the batch has.
 */

#include "worker/batch.h"
#include "worker/move.h"

typedef struct Transfer {
        Context *context;
        Streams *streams;
        Move move;
} Transfer;

/** transfer_init() - without a move kernel. */
void transfer_init(Transfer *transfer, Context *context, Streams *streams);
/**
 * transfer_scratch() - memory for the batch's host data, and each job's place in it
 *
 * Return: 0; FAILURE_E_WAIT: none while others have some; FAILURE_E_SET; FAILURE_E_FAULT.
 */
int transfer_scratch(Transfer *transfer, Batch *batch, Failure *failure);
/**
 * transfer_in() - onto the batch's stream
 *
 * Where the move kernel turns out not to launch, the batch's way becomes BATCH_COPIED. Return:
 * 0, FAILURE_E_SET, FAILURE_E_FAULT.
 */
int transfer_in(Transfer *transfer, Batch *batch, Failure *failure);
/** transfer_out() - likewise. */
int transfer_out(Transfer *transfer, Batch *batch, Failure *failure);
/** transfer_release() - a batch's own scratch, behind what is on its stream. Return: as transfer_in(). */
int transfer_release(Transfer *transfer, Batch *batch, Failure *failure);

#endif
