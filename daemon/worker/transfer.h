/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_TRANSFER_H
#define GPUQ_WORKER_TRANSFER_H

/*
 * Transfer
 *
 * The data of a batch: zeros and copies before its kernels, copies back after them, in the way chosen
 * for the batch.
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
 * Return: 0; FAILURE_E_WAIT: none while other batches hold some; FAILURE_E_SET; FAILURE_E_FAULT.
 */
int transfer_scratch(Transfer *transfer, Batch *batch, Failure *failure);
/**
 * transfer_in() - issue zeros and copies in on the batch's stream
 *
 * If the move kernel does not launch, the batch's way becomes BATCH_COPIED. Return: 0, FAILURE_E_SET,
 * FAILURE_E_FAULT.
 */
int transfer_in(Transfer *transfer, Batch *batch, Failure *failure);
/** transfer_out() - issue the copies out. Return: as transfer_in(). */
int transfer_out(Transfer *transfer, Batch *batch, Failure *failure);
/** transfer_release() - free a batch's own scratch, in stream order. Return: as transfer_in(). */
int transfer_release(Transfer *transfer, Batch *batch, Failure *failure);

#endif
