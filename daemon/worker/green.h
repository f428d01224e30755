/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_GREEN_H
#define GPUQ_WORKER_GREEN_H

/*
 * Green context
 *
 * A CUDA context whose kernels run on some of the device's SMs only (driver R550, CUDA 12.4). It has the
 * memory and modules of the device's primary context; what limits its kernels is that their streams were
 * created while it was current. A kernel node of a graph need not follow its stream's context, so a worker
 * with a green context uses no graphs.
 */

#include "driver/driver.h"
#include "util/sms.h"

enum {
        _GREEN_E_SUCCESS,
        GREEN_E_WHOLE,  /* the share is the whole device: an ordinary context will do */
        GREEN_E_FAILED, /* a call failed, or the driver lacks it; no context is current */
};

#define GREEN_WHY 256u /* bytes of a reason */

typedef struct Green {
        CUcontext context;
        unsigned n_sms, n_all; /* of the context, of the device */
} Green;

/**
 * green_new() - after cuInit(): a context with a share of the SMs, current in this thread; never freed
 * @ret_why: with GREEN_E_FAILED the call and its error
 *
 * Return: 0, GREEN_E_WHOLE, or GREEN_E_FAILED.
 */
int green_new(const Driver *cu, CUdevice device, Sms sms, Green *ret_green,
              char ret_why[static GREEN_WHY]);

#endif
