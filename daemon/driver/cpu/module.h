/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_MODULE_H
#define GPUQ_CPU_MODULE_H

/*
 * Module
 *
 * An image, loaded from a private copy so that each load has variables of its
 * own, and its functions.
 */

#include <stdbool.h>

#include "driver/cpu/context.h"
#include "driver/cpu/image.h"

#define FUNCTION_MAGIC 0x66756e63u

typedef struct CUfunc_st {
        uint32_t magic;
        struct CUmod_st *module;
        const GpuqCpuEntry *entry;  /* of a twin: its own, allocated */
        const GpuqCpuEntry *kernel; /* of a twin: what runs each row; NULL for a kernel */
        int max_shared;             /* bytes of dynamic shared memory that it may ask for */
        int carveout;               /* kept, without effect */
        bool large_clusters;        /* of more than DEVICE_CLUSTER blocks */
} Function;

typedef struct ModuleVariable {
        char *name;
        void *address;
        size_t size;
} ModuleVariable;

typedef struct CUmod_st {
        uint32_t magic;
        Context *context;
        LIST_ENTRY(CUmod_st) link; /* context->modules */
        int fd; /* of the copy; its number is part of the name it was loaded by */
        void *handle;
        GpuqCpuImage *image;
        Function *functions; /* twins behind kernels */
        size_t n_functions;
        ModuleVariable *variables;
        size_t n_variables;
} Module;

/** module_add() - it is loaded into a context. */
void module_add(Module *module, Context *context);
/** module_free() - unload; nothing of it may run any more. */
void module_free(Module *module);
/** function_enter() - what a call on a function checks first. */
CUresult function_enter(CUfunction function, Context **ret_context);

#endif
