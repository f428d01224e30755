/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_CUBIN_H
#define GPUQ_COMPILER_CUBIN_H

/*
 * Cubin
 *
 * Reads the ELF file of a CUDA device: which one it is for, its kernels, its
 * variables and whether it calls printf. Pure; every offset is checked.
 */

#include "compiler/signature.h"

enum {
        _CUBIN_E_SUCCESS,
        CUBIN_E_BROKEN, /* not an ELF file for CUDA, or its tables lie outside of it */
};

/**
 * cubin_scan() - add what a cubin has to @signature
 * @ret_sm: compute capability, major * 10 + minor
 *
 * Kinds of parameters are not in a cubin. Return: 0, CUBIN_E_BROKEN, or -ENOMEM.
 */
int cubin_scan(const void *image, size_t n_image, Signature *signature, unsigned *ret_sm);
/** cubin_runs_on() - whether code for @sm runs on @device: the same major, not a later minor. */
bool cubin_runs_on(unsigned sm, unsigned device);

#endif
