/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_CPU_IMAGE_H
#define GPUQ_COMPILER_CPU_IMAGE_H

/*
 * CPU image
 *
 * Reads the description that a shared object for the CPU driver contains, without loading it, as
 * daemon/driver/cpu/image.h describes. Pure.
 */

#include "compiler/signature.h"

enum {
        _CPU_IMAGE_E_SUCCESS,
        CPU_IMAGE_E_BROKEN, /* no such image */
};

/** cpu_image_scan() - add what an image has to @signature. Return: 0, CPU_IMAGE_E_BROKEN, or -ENOMEM. */
int cpu_image_scan(const void *image, size_t n_image, Signature *signature);

#endif
