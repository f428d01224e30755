/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_IMAGE_H
#define GPUQ_WORKER_IMAGE_H

/*
 * Image
 *
 * A loaded CUmodule with its kernels and variables. All properties of a kernel that checks need are
 * read once, so no job asks the driver. Sessions with equal modules share an image, unless it has
 * variables. Kernels that the compiler or gpuq itself adds, twins and internal ones, are not listed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler/compiled.h"
#include "util/need.h"
#include "worker/context.h"
#include "worker/in_place.h"

typedef struct FunctionParameter {
        Gpuq__V1__Kind kind;
        size_t size;   /* bytes */
        size_t offset; /* bytes, among all parameters */
} FunctionParameter;

/* The variable of a checked image (compiler/check.h). */
typedef struct Checkable {
        CUdeviceptr address; /* 0: the image is not checked */
        const char *sites;
        const void *user; /* the job in flight that uses it, or NULL */
} Checkable;

typedef struct Function Function;

struct Function {
        CUfunction function;
        const char *symbol; /* as in the module; owned by the driver or by the compiled result */
        const char *name;   /* the name that users write */
        const char *text;   /* what it computes, or "" */
        FunctionParameter *parameters;
        size_t n_parameters;
        Need *needs; /* of each parameter; NULL: none */
        bool kinds_known;
        bool may_launch;      /* it may launch kernels itself */
        bool is_fenced;       /* it takes a Fence behind its parameters (compiler/fence.h) */
        unsigned max_threads; /* in a block */
        size_t static_shared; /* bytes */
        unsigned n_registers, n_const, n_local, ptx_version, binary_version; /* for the client */
        size_t dynamic_shared;     /* bytes allowed so far */
        size_t n_parameter_bytes;  /* where the last parameter ends */
        CUfunction twin;           /* runs many jobs in one launch (compiler/batch.h); NULL: none */
        unsigned twin_max_threads; /* in a block */
        CUfunction one_range; /* for jobs whose fence has one range (FENCE_ONE_RANGE); NULL: none */
        unsigned one_range_max_threads;
        InPlace *in_place;    /* results of trials; NULL: none yet */
        Checkable *checkable; /* of its image, if that is checked; else NULL */
        Function *wide;       /* a built-in reduction's other form (wide.h); NULL: none */
        /* the latest result on blocks that can be resident at once */
        unsigned resident_threads, resident_shared, resident_blocks;
};

typedef struct Variable {
        const char *name;
        CUdeviceptr address;
        size_t size; /* bytes */
} Variable;

typedef struct Image {
        unsigned n_refs;
        struct Image *next; /* images */
        const Driver *cu;
        CUmodule module;
        Compiled *compiled; /* owns the strings */
        void *data;         /* what compiled points into */
        Function *functions;
        size_t n_functions;
        FunctionParameter *parameters; /* of all functions */
        Need *needs;                   /* likewise */
        Variable *variables;
        size_t n_variables;
        bool has_variables; /* writable ones: never shared */
        bool has_printf;
        bool has_twins;
        bool is_fenced;
        Checkable checkable;
} Image;

/** function_n_values() - what a launch passes: its parameters and, as the last of parameters[], the fence. */
static inline size_t function_n_values(const Function *function) {
        return function->n_parameters + function->is_fenced;
}

/**
 * image_load() - load a compiled module; waits for every running kernel
 * @compiled: consumed on success, as is @data, which it points into
 *
 * Return: 0, FAILURE_E_SET, FAILURE_E_FAULT, or -ENOMEM.
 */
int image_load(Context *context, Compiled *compiled, void *data, Image **ret_image,
               Failure *failure);
/** image_unload() - waits for every running kernel; NULL is fine. Return: NULL. */
Image *image_unload(Image *image);
/** image_is_like() - whether loading @compiled would give an equal image. */
bool image_is_like(const Image *image, const Compiled *compiled);

/**
 * image_function() - find a kernel as util/kernel-name.h says
 *
 * Return: 0, or FAILURE_E_SET with the names there are.
 */
int image_function(Image *image, const char *name, Function **ret_function, Failure *failure);
/** image_internal() - one of gpuq's own kernels in the built-in module; NULL: it does not exist. */
CUfunction image_internal(const Image *image, const char *symbol);
/**
 * image_variable() - likewise
 * @write: it is written to: not what the compilers left out of the module's list, which an image that is shared may have
 *
 * Return: 0, or FAILURE_E_SET.
 */
int image_variable(const Image *image, const char *name, bool write, Variable *ret_variable,
                   Failure *failure);
/** function_resident_blocks() - blocks that a device holds at once. Return: 0 or as result_check(). */
int function_resident_blocks(Function *function, const Driver *cu, unsigned n_multiprocessors,
                             unsigned n_threads, unsigned n_shared, unsigned *ret_blocks,
                             Failure *failure);

#endif
