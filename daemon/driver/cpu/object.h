/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_OBJECT_H
#define GPUQ_CPU_OBJECT_H

/*
 * Object
 *
 * Detects what cuModuleLoadData() was given, and reads the variables of an ELF shared object. The
 * API passes no length, so the ELF file's own headers determine it, as with NVIDIA's driver.
 */

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_types.h"

/**
 * object_size() - check that it is a shared object of this machine
 *
 * Return: 0; CUDA_ERROR_NO_BINARY_FOR_GPU for PTX, a cubin or a fatbin;
 *         CUDA_ERROR_INVALID_IMAGE for anything else.
 */
CUresult object_size(const void *image, size_t *ret_size);
/** object_has_section() - whether a section of that name is in an image that object_size() took. */
bool object_has_section(const void *image, const char *name);
/**
 * object_variable() - a variable of the module, by number
 * @ret_name: inside the image
 *
 * Return: 0, or CUDA_ERROR_NOT_FOUND when there are no more.
 */
CUresult object_variable(const void *image, size_t index, const char **ret_name,
                         size_t *ret_address, size_t *ret_size);

#endif
