/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's table, declared with the types of cuda.h: each member must then
 * be able to hold the function that cuda.h declares.
 */
#include "layout.h"

#include <cuda.h>
#include <stdbool.h>

/* What cuda_types.h would declare is there already. */
#define GPUQ_DRIVER_CUDA_TYPES_H
#include "driver/driver.h"

const Layout layout_cuda[] = {
#include "layout.inc"
        {NULL, 0},
};

/* Later toolkits give this name to a function with more arguments, and keep the old one unseen. */
#undef cuCtxCreate
CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device);

#define SAME(name, symbol, arguments)                                                              \
        _Static_assert(__builtin_types_compatible_p(__typeof__(&name), CUresult(*) arguments),     \
                       #name " has other arguments in cuda.h");
DRIVER_FUNCTIONS(SAME)
DRIVER_OPTIONAL_FUNCTIONS(SAME)
