/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_KERNEL_H
#define GPUQ_CLI_KERNEL_H

/*
 * Describes a kernel in words, and chooses a launch configuration for it.
 */

#include <stdbool.h>

#include <gpuq.h>

#include "argument.h"

#define KERNEL_BLOCK_DEFAULT 256u

/** kernel_kind_name() - "pointer", "i32", … */
const char *kernel_kind_name(gpuq_kind kind);
/** kernel_parameters() - "pointer pointer i64"; the caller's to free; NULL: out of memory. */
char *kernel_parameters(const gpuq_kernel_info *kernel);
/**
 * kernel_check_array() - check an array against the description of a built-in kernel's argument
 *
 * Checks the element type, and the direction where a result would be lost or a value would not be
 * read. Other kernels have no description.
 * Return: 0, or EXIT_USAGE with a @problem that names the argument.
 */
int kernel_check_array(const gpuq_kernel_info *kernel, const Argument *argument, Problem *problem);
/** kernel_names() - "add, scale; did you mean `add'?" for one that @name is not; the caller's to free; NULL: out of memory. */
char *kernel_names(const gpuq_module *module, const char *name);
/** kernel_find() - by name in a module. Return: whether it is there. */
bool kernel_find(const gpuq_module *module, const char *name, gpuq_kernel_info *ret_kernel);

/**
 * kernel_default_launch() - fill in the block and grid that were not given (are 0)
 * @max_block:  threads, 0: unknown
 * @n_elements: of the largest buffer
 *
 * The block becomes 256 threads, or what the kernel allows; the grid enough
 * blocks in x for one thread an element.
 */
void kernel_default_launch(gpuq_config *config, unsigned max_block, uint64_t n_elements);

#endif
