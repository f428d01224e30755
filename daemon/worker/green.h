/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_GREEN_H
#define GPUQ_WORKER_GREEN_H

/*
 * Green context
 *
 * A CUDA context whose kernels run on some of the device's SMs only (driver R550, CUDA 12.4). It has the
 * memory and modules of the device's primary context. What limits a kernel is its stream, which must have
 * been created while the green context was current. A kernel node of a graph need not follow the stream that
 * the graph is launched on, so a worker with a green context uses no graphs.
 */

#include "driver/driver.h"
#include "util/sms.h"

enum {
        _GREEN_E_SUCCESS,
        GREEN_E_WHOLE,  /* the share is the whole device: an ordinary context will do */
        GREEN_E_FAILED, /* a call failed, or the driver lacks it */
};

typedef struct Green {
        CUcontext context;
        unsigned n_sms, n_all; /* of the context, of the device */
        const char *call;      /* GREEN_E_FAILED: which one, and its error */
        CUresult result;
} Green;

/**
 * green_new() - after cuInit(): a context with a share of the SMs, current in this thread; never freed
 *
 * Without success nothing is left of it.
 *
 * Return: 0, GREEN_E_WHOLE, or GREEN_E_FAILED.
 */
int green_new(const Driver *cu, CUdevice device, Sms sms, Green *green);

#endif
