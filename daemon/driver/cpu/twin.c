/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/twin.h"

#include <string.h>

#include "compiler/batch.h"
#include "driver/cpu/object.h"
#include "util/macro.h"

#define TWIN_ALIGN 16u /* of rows; a type that asks for more gets none */

/* ---- making ------------------------------------------------------------------------ */

static size_t twin_bytes(const GpuqCpuEntry *kernel) {
        uint32_t last = kernel->n_params - 1;

        return kernel->offsets[last] + (size_t)kernel->sizes[last];
}

static bool twin_possible(const GpuqCpuEntry *kernel) {
        return kernel->n_params > 0 && kernel->align > 0 && kernel->align <= TWIN_ALIGN &&
               batch_rows(twin_bytes(kernel)) >= BATCH_ROWS_MIN;
}

static GpuqCpuEntry *twin_entry(const GpuqCpuEntry *kernel) {
        static const uint32_t size = BATCH_TABLE_BYTES, offset = 0;
        size_t n = strlen(kernel->name);
        GpuqCpuEntry *entry;
        char *name;

        entry = calloc(1, sizeof(*entry) + n + sizeof(BATCH_SUFFIX));
        if (!entry)
                return NULL;

        name = (char *)(entry + 1);
        memcpy(name, kernel->name, n);
        memcpy(name + n, BATCH_SUFFIX, sizeof(BATCH_SUFFIX));
        *entry = (GpuqCpuEntry){
                .name = name,
                .sizes = &size,
                .offsets = &offset,
                .n_params = 1,
                .align = TWIN_ALIGN,
                .max_threads = kernel->max_threads,
                .block = kernel->block,
        };
        return entry;
}

static bool twin_is_taken(const Module *module) {
        for (size_t i = 0; i < module->n_functions; i++)
                if (batch_is_name(module->functions[i].entry->name,
                                  strlen(module->functions[i].entry->name)))
                        return true;
        return false;
}

CUresult twin_add(Module *module, const void *image) {
        size_t n_kernels = module->n_functions;
        Function *functions;

        if (module->n_variables > 0 || object_has_section(image, GPUQ_CPU_PRINTF) ||
            twin_is_taken(module))
                return CUDA_SUCCESS;

        /* Nobody has pointers to them yet. */
        functions = reallocarray(module->functions, MAX(2 * n_kernels, 1), sizeof(*functions));
        if (!functions)
                return CUDA_ERROR_OUT_OF_MEMORY;

        module->functions = functions;
        for (size_t i = 0; i < n_kernels; i++) {
                Function twin = functions[i];

                if (!twin_possible(twin.entry))
                        continue;
                twin.kernel = twin.entry;
                twin.entry = twin_entry(twin.kernel);
                if (!twin.entry)
                        return CUDA_ERROR_OUT_OF_MEMORY;
                functions[module->n_functions++] = twin;
        }
        return CUDA_SUCCESS;
}

/* ---- launching ------------------------------------------------------------------------ */

bool twin_check_grid(const Function *twin, GpuqCpuIndex grid, bool alone) {
        return alone && grid.z <= batch_rows(twin_bytes(twin->kernel));
}

void **twin_rows(const Function *twin, char *table, uint32_t n_rows) {
        const GpuqCpuEntry *kernel = twin->kernel;
        size_t pitch = batch_pitch(twin_bytes(kernel));
        void **params;

        params = calloc((size_t)n_rows * kernel->n_params, sizeof(*params));
        if (!params)
                return NULL;

        for (uint32_t row = 0; row < n_rows; row++)
                for (uint32_t i = 0; i < kernel->n_params; i++)
                        params[row * kernel->n_params + i] =
                                table + row * pitch + kernel->offsets[i];
        return params;
}
