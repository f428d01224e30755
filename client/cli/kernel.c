/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

#include <stdio.h>
#include <string.h>

#include "util/macro.h"

#define KERNEL_GRID_MAX 0x7fffffffu /* of x, on every device of CUDA */

const char *kernel_kind_name(gpuq_kind kind) {
        static const char *const names[] = {
                [GPUQ_BYTES] = "bytes", [GPUQ_POINTER] = "pointer", [GPUQ_I32] = "i32",
                [GPUQ_I64] = "i64",     [GPUQ_F32] = "f32",         [GPUQ_F64] = "f64",
                [GPUQ_I8] = "i8",       [GPUQ_I16] = "i16",         [GPUQ_WORD64] = "word64",
        };

        return (size_t)kind < ARRAY_SIZE(names) ? names[kind] : "unknown";
}

char *kernel_parameters(const gpuq_kernel_info *kernel) {
        char *text = NULL;
        size_t n_text = 0;
        FILE *stream;

        stream = open_memstream(&text, &n_text);
        if (!stream)
                return NULL;

        for (size_t i = 0; i < kernel->n_parameters; i++) {
                const gpuq_parameter *parameter = &kernel->parameters[i];

                if (i)
                        fputc(' ', stream);
                if (!kernel->kinds_known || parameter->kind == GPUQ_BYTES)
                        fprintf(stream, "%zu-bytes", parameter->size);
                else
                        fputs(kernel_kind_name(parameter->kind), stream);
        }
        if (fclose(stream) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

char *kernel_names(const gpuq_module *module) {
        char *text = NULL;
        size_t n_text = 0;
        FILE *stream;

        stream = open_memstream(&text, &n_text);
        if (!stream)
                return NULL;

        for (size_t i = 0; i < gpuq_module_n_kernels(module); i++) {
                gpuq_kernel_info kernel;

                if (gpuq_module_kernel(module, i, &kernel) == 0)
                        fprintf(stream, "%s%s", i ? ", " : "", kernel.name);
        }
        if (fclose(stream) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

bool kernel_find(const gpuq_module *module, const char *name, gpuq_kernel_info *ret_kernel) {
        for (size_t i = 0; i < gpuq_module_n_kernels(module); i++) {
                gpuq_kernel_info kernel;

                if (gpuq_module_kernel(module, i, &kernel) < 0 || strcmp(kernel.name, name) != 0)
                        continue;
                *ret_kernel = kernel;
                return true;
        }
        return false;
}

void kernel_default_launch(gpuq_config *config, unsigned max_block, uint64_t n_elements) {
        uint64_t threads, blocks;

        if (config->block[0] == 0)
                config->block[0] =
                        max_block ? MIN(KERNEL_BLOCK_DEFAULT, max_block) : KERNEL_BLOCK_DEFAULT;
        if (config->grid[0] != 0)
                return;

        threads =
                (uint64_t)config->block[0] * MAX(config->block[1], 1u) * MAX(config->block[2], 1u);
        blocks = n_elements / threads + (n_elements % threads != 0);
        config->grid[0] = (unsigned)MAX(MIN(blocks, KERNEL_GRID_MAX), 1u);
}
