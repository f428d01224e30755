/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TEST_DRIVER_LAYOUT_H
#define GPUQ_TEST_DRIVER_LAYOUT_H

/*
 * Sizes, offsets and values of what cuda_types.h declares. layout.inc lists them and is
 * compiled twice, after our declarations and after cuda.h.
 */

#include <stddef.h>

typedef struct Layout {
        const char *name;
        long value;
} Layout;

extern const Layout layout_ours[], layout_cuda[]; /* until a name is NULL */

#endif
