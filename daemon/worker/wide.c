/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wide
 */
#include "worker/wide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* On the host a block of one thread is one call. */
#define WIDE_THREADS_CPU 1u

unsigned wide_parts(uint64_t n) {
        const uint64_t n_most = (uint64_t)WIDE_PART * WIDE_PARTS_MAX;
        uint64_t length;

        if (n <= WIDE_ONE_PART)
                return 1;
        length = (n / n_most + (n % n_most > 0)) * WIDE_PART;
        return (unsigned)(n / length + (n % length > 0));
}

/* ---- when the image is loaded -------------------------------------------------------- */

/* A function and its parameters, one allocation. */
static Function *wide_new(const Function *narrow, CUfunction handle) {
        size_t n = narrow->n_parameters;
        Function *wide = calloc(1, sizeof(*wide) + (n + 1) * sizeof(*wide->parameters));

        if (!wide)
                return NULL;

        wide->function = handle;
        wide->symbol = narrow->symbol;
        wide->name = narrow->name;
        wide->text = narrow->text;
        wide->parameters = (FunctionParameter *)(wide + 1);
        wide->n_parameters = n + 1;
        return wide;
}

/* Whether the kernel takes the narrow form's parameters, and one pointer more. */
static bool wide_fits(Function *wide, const Function *narrow, const Driver *cu) {
        size_t n = narrow->n_parameters, offset, size;
        int max_threads;

        for (size_t i = 0; i <= n; ++i) {
                if (cu->cuFuncGetParamInfo(wide->function, i, &offset, &size) != CUDA_SUCCESS ||
                    size != (i < n ? narrow->parameters[i].size : sizeof(CUdeviceptr)))
                        return false;
                wide->parameters[i] = (FunctionParameter){
                        .kind = i < n ? narrow->parameters[i].kind : GPUQ__V1__KIND__POINTER,
                        .size = size,
                        .offset = offset,
                };
                wide->n_parameter_bytes = offset + size;
        }
        if (cu->cuFuncGetParamInfo(wide->function, n + 1, &offset, &size) == CUDA_SUCCESS ||
            cu->cuFuncGetAttribute(&max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                   wide->function) != CUDA_SUCCESS)
                return false;
        wide->max_threads = (unsigned)max_threads;
        return wide->max_threads >= WIDE_THREADS;
}

/* The number of numbers is the length of the first buffer. */
static bool narrow_has_length(const Function *narrow) {
        return narrow->needs && narrow->n_parameters > 0 && narrow->needs[0].n_lengths == 1;
}

static void wide_find_one(const Image *image, Function *narrow) {
        size_t n_symbol = strlen(WIDE_PREFIX) + strlen(narrow->symbol) + 1;
        _cleanup_(freep) char *symbol = malloc(n_symbol);
        CUfunction handle;

        if (!symbol || narrow->wide || !narrow_has_length(narrow))
                return;
        snprintf(symbol, n_symbol, WIDE_PREFIX "%s", narrow->symbol);
        handle = image_internal(image, symbol);
        if (!handle)
                return;

        narrow->wide = wide_new(narrow, handle);
        if (narrow->wide && !wide_fits(narrow->wide, narrow, image->cu)) {
                free(narrow->wide);
                narrow->wide = NULL;
        }
}

void wide_find(Image *image) {
        for (size_t i = 0; i < image->n_functions; ++i)
                wide_find_one(image, &image->functions[i]);
}

/* ---- a launch ------------------------------------------------------------------------- */

static uint64_t launch_numbers(const ProgramLaunch *launch) {
        return *(const uint64_t *)launch->values[launch->function->needs[0].lengths[0]];
}

bool wide_apply(ProgramLaunch *launch, const Context *context, CUdeviceptr *memory) {
        Function *wide = launch->function->wide;
        unsigned n_parts;

        if (!wide || launch->cooperative || launch->cluster[0])
                return false;
        n_parts = wide_parts(launch_numbers(launch));
        if (n_parts < 2)
                return false;

        *launch = (ProgramLaunch){
                .function = wide,
                .grid = {n_parts, 1, 1},
                .block = {context->cu->cpu ? WIDE_THREADS_CPU : WIDE_THREADS, 1, 1},
                .values = launch->values,
        };
        launch->values[wide->n_parameters - 1] = memory;
        return true;
}

/* Only gpuq's own kernels have needs. */
static bool function_has_tiles(const Function *function) {
        return function->needs && (strncmp(function->symbol, "scan_", 5) == 0 ||
                                   strncmp(function->symbol, "sort_", 5) == 0);
}

void wide_apply_host(ProgramLaunch *launch, const Context *context) {
        if (context->cu->cpu && launch->block[0] == WIDE_TILE_THREADS && launch->block[1] == 1 &&
            launch->block[2] == 1 && !launch->cooperative && function_has_tiles(launch->function))
                launch->block[0] = WIDE_THREADS_CPU;
}
