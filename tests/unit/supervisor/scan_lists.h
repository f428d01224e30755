/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TEST_SCAN_LISTS_H
#define GPUQ_TEST_SCAN_LISTS_H

/* What a job lists, on its way to the supervisor and to a worker alike: of random numbers. */

#include <string.h>

#include "proto/gpuq.pb-c.h"
#include "scan.h"

#define N_LISTED 5u

typedef struct ScanLists {
        Gpuq__V1__Buffer buffers[N_LISTED], *buffer_list[N_LISTED];
        Gpuq__V1__Kernel kernels[N_LISTED], *kernel_list[N_LISTED];
        uint64_t after[N_LISTED];
        uint8_t operations[64];
} ScanLists;

static inline void scan_lists_fill(ScanLists *lists) {
        static char *const names[] = {"", "add_f32", "a name of some length, longer than most"};

        for (size_t i = 0; i < N_LISTED; i++) {
                Gpuq__V1__Buffer *buffer = lists->buffer_list[i] = &lists->buffers[i];
                Gpuq__V1__Kernel *kernel = lists->kernel_list[i] = &lists->kernels[i];

                gpuq__v1__buffer__init(buffer);
                buffer->arena = random_number();
                buffer->offset = random_number();
                buffer->length = random_number();
                buffer->direction = (Gpuq__V1__Direction)(random_next() % 4);
                gpuq__v1__kernel__init(kernel);
                kernel->module = random_number();
                kernel->name = names[random_next() % 3];
                lists->after[i] = random_number();
        }
        memset(lists->operations, 7, sizeof(lists->operations));
}

#endif
