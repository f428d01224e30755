/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_TOP_H
#define GPUQ_CLI_TOP_H

/*
 * Top
 *
 * The text of the screen of `gpuq top`, made of a status, a queue, what NVML says of the devices, and
 * the status before.
 */

#include <stdint.h>
#include <stdio.h>

#include <gpuq.h>

#include "nvml.h"

#define TOP_ALL (-1)

typedef enum TopSort {
        TOP_SORT_SHARE, /* of the GPU time of the last minute, the largest first */
        TOP_SORT_JOBS,  /* running and waiting, the most first */
        TOP_SORT_WAIT,  /* how long jobs waited, the longest first */
        TOP_SORT_NAME,
        _TOP_SORT_N,
} TopSort;

typedef struct TopView {
        const gpuq_status *status;
        const gpuq_status *before; /* NULL: there is none, so that no rates are known */
        const gpuq_queue *queue;
        const NvmlReading *readings; /* of each of its devices */
        int64_t uid;                 /* show this user; TOP_ALL: everybody */
        TopSort sort;
        const char *line; /* a message, a question, or the keys; NULL: none */
        unsigned columns; /* that tables are fitted to; 0: as many as are needed */
        unsigned rows;    /* more jobs are not written; 0: all */
} TopView;

/** top_write() - write the screen, perhaps with more lines than the view has rows. Return: 0 or -ENOMEM. */
int top_write(FILE *stream, const TopView *view);

#endif
