/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_KERNEL_NAME_H
#define GPUQ_UTIL_KERNEL_NAME_H

/*
 * Kernel name
 *
 * What a user may call a kernel of a module: its mangled name, its C++ name with template
 * arguments, or its plain name, with or without its namespaces, where only one kernel has it.
 * Template arguments are compared by meaning: "f<int, 256u>" is "f<int,0x100>". A type is known
 * by its own name and by those that every C++ compiler for Linux gives it, not by a user's
 * typedef. Pure.
 */

#include <stdbool.h>
#include <stddef.h>

enum {
        _KERNEL_NAME_E_SUCCESS,
        KERNEL_NAME_E_NONE,      /* no kernel has the name */
        KERNEL_NAME_E_AMBIGUOUS, /* several have it */
};

/* The kernels of a module. */
typedef struct KernelNames {
        const void *kernels;
        size_t n_kernels;
        const char *(*name)(const void *kernels, size_t i);
        const char *(*symbol)(const void *kernels, size_t i); /* mangled, or the same as the name */
} KernelNames;

/** kernel_name_equal() - whether two C++ names mean the same kernel. */
bool kernel_name_equal(const char *a, const char *b);
/** kernel_name_may_be() - whether @name may be meant for kernel @i, for a list of candidates. */
bool kernel_name_may_be(const KernelNames *names, size_t i, const char *name);
/** kernel_name_find() - Return: 0, KERNEL_NAME_E_NONE or KERNEL_NAME_E_AMBIGUOUS. */
int kernel_name_find(const KernelNames *names, const char *name, size_t *ret_i);

#endif
