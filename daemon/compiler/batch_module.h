/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_BATCH_MODULE_H
#define GPUQ_COMPILER_BATCH_MODULE_H

/*
 * Batch module
 *
 * Reads PTX for batch.c: a module's functions, the position of their parts in the text, the layout
 * of a kernel's parameters, and obstacles that make a twin impossible. A function that calls one
 * with an obstacle has that obstacle, too. Pure. Code that this parser does not know is an
 * obstacle, never an error.
 */

#include <stdbool.h>
#include <stdint.h>

#include "compiler/ptx/tokens.h"
#include "util/macro.h"

typedef enum BatchObstacle {
        BATCH_NONE,
        BATCH_GRID,        /* it reads its place in the grid, which differs in a twin */
        BATCH_CLUSTER,     /* blocks work together in clusters */
        BATCH_COOPERATIVE, /* all blocks work together, or wait for an earlier launch */
        BATCH_VARIABLE,    /* it names a variable, texture or surface of the module */
        BATCH_CALL,        /* printf, malloc, a launch, or a function without a body here */
        BATCH_PARAMETERS,  /* none, too large, or used in a way that a table cannot replace */
        BATCH_INTERNAL,    /* one of gpuq's own kernels, of which no jobs are batched */
        BATCH_UNKNOWN,     /* not understood */
} BatchObstacle;

typedef struct BatchParameter {
        PtxToken name;
        size_t offset;
} BatchParameter;

typedef struct BatchFunction {
        PtxToken name;
        bool is_entry;
        PtxToken directives;        /* what stands between parameters and body */
        PtxToken body;              /* with its braces; n is 0 where there is none */
        BatchParameter *parameters; /* of an entry */
        size_t n_parameters;
        size_t n_bytes; /* where the last of them ends */
        BatchObstacle obstacle;
} BatchFunction;

typedef struct BatchSymbol {
        PtxToken name;
        enum { BATCH_SYMBOL_VARIABLE, BATCH_SYMBOL_DEFINED, BATCH_SYMBOL_DECLARED } kind;
        uint32_t function; /* unless it is a variable */
} BatchSymbol;

typedef struct BatchCall {
        uint32_t caller, callee;
} BatchCall;

typedef struct BatchModule {
        BatchFunction *functions; /* in the order of the text */
        size_t n_functions;
        BatchSymbol *symbols; /* by name */
        size_t n_symbols;
        BatchCall *calls;
        size_t n_calls;
} BatchModule;

/** batch_module_new() - read a module. @text: kept by the caller. Return: 0 or -ENOMEM. */
int batch_module_new(const char *text, size_t n_text, BatchModule **ret_module);
/** batch_module_free() - NULL is fine. Return: NULL. */
BatchModule *batch_module_free(BatchModule *module);
DEFINE_CLEANUP(BatchModule, batch_module_free)

/** batch_module_find() - a function or variable by name, the definition rather than a declaration. NULL: none. */
const BatchSymbol *batch_module_find(const BatchModule *module, PtxToken name);
/** batch_function_parameter() - an entry's parameter by name. NULL: none. */
const BatchParameter *batch_function_parameter(const BatchFunction *function, PtxToken name);

/** batch_body_judge() - look for obstacles and calls in the body of function @i. Return: 0 or -ENOMEM. */
int batch_body_judge(BatchModule *module, uint32_t i);

#endif
