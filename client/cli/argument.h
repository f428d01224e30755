/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_ARGUMENT_H
#define GPUQ_CLI_ARGUMENT_H

/*
 * Argument
 *
 * One kernel argument as typed on the command line:
 *
 *     in:a.npy  inout:a.npy  out:a.npy:float64:100,3  f32:2.5  u64:0x10  bool:true  null  local:1024
 *
 * Parsing touches no file.
 */

#include <gpuq.h>

#include "npy.h"

typedef struct Argument {
        const char *text; /* as typed; borrowed */
        unsigned number;  /* from 1 */
        bool is_scalar;

        /* a file */
        gpuq_direction direction;
        char *path;
        NpyArray array; /* of an output; of an input once its header is read */

        /* a scalar */
        gpuq_kind kind;
        size_t size;
        uint64_t bits; /* its first @size bytes are the value */
} Argument;

/** argument_parse() - Return: 0, or EXIT_USAGE with a @problem that names the argument. */
int argument_parse(const char *text, unsigned number, Problem *problem, Argument *ret_argument);
/** argument_name() - put "argument 3 `f32:abc': " before a problem. Return: @code. */
int argument_name(const Argument *argument, Problem *problem, int code);
/** argument_clear() - free what it owns. */
void argument_clear(Argument *argument);

#endif
