/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

#include <stdio.h>
#include <string.h>

#include "exit.h"
#include "util/macro.h"
#include "util/near.h"

#define KERNEL_GRID_MAX 0x7fffffffu /* of x, on every device of CUDA */

const char *kernel_kind_name(gpuq_kind kind) {
        static const char *const names[] = {
                [GPUQ_BYTES] = "bytes", [GPUQ_POINTER] = "pointer", [GPUQ_I32] = "i32",
                [GPUQ_I64] = "i64",     [GPUQ_F32] = "f32",         [GPUQ_F64] = "f64",
                [GPUQ_I8] = "i8",       [GPUQ_I16] = "i16",         [GPUQ_WORD64] = "word64",
                [GPUQ_LOCAL] = "local",
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

char *kernel_names(const gpuq_module *module, const char *name) {
        Near near = near_to(name);
        char *text = NULL;
        size_t n_text = 0;
        FILE *stream;

        stream = open_memstream(&text, &n_text);
        if (!stream)
                return NULL;

        for (size_t i = 0; i < gpuq_module_n_kernels(module); i++) {
                gpuq_kernel_info kernel;

                if (gpuq_module_kernel(module, i, &kernel) < 0)
                        continue;
                fprintf(stream, "%s%s", i ? ", " : "", kernel.name);
                near_offer(&near, kernel.name);
        }
        if (gpuq_module_n_kernels(module) == 0)
                fputs("none", stream);
        if (near.found)
                fprintf(stream, "; did you mean `%s'?", near.found);
        if (fclose(stream) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

bool kernel_find(const gpuq_module *module, const char *name, gpuq_kernel_info *ret_kernel) {
        size_t i;

        return gpuq_module_find(module, name, &i) == 0 &&
               gpuq_module_kernel(module, i, ret_kernel) == 0;
}

/* Such as "in:x:f32:n"; "" if the text has none. */
static void kernel_word(const gpuq_kernel_info *kernel, size_t index, char *ret_word,
                        size_t n_word) {
        const char *line = strchr(kernel->text, '\n');
        size_t length = 0;

        line = line ? line + 1 : "";
        for (size_t i = 0; i <= index; i++) {
                line += length;
                line += strspn(line, " ");
                length = strcspn(line, " \n");
        }
        snprintf(ret_word, n_word, "%.*s", (int)length, line);
}

/* Of "in:x:f32:n", or NULL: the word is none of an array. */
static const Dtype *kernel_word_dtype(const char *word) {
        const Dtype *dtype = NULL;
        char type[8];

        if (sscanf(word, "%*[^:]:%*[^:]:%7[^:]:", type) == 1)
                dtype_from_name(type, &dtype);
        return dtype;
}

static int kernel_check_direction(const gpuq_kernel_info *kernel, const Argument *argument,
                                  const char *word, Problem *problem) {
        if (argument->direction == GPUQ_OUT && strncmp(word, "in:", 3) == 0)
                return problem_set(
                        problem, EXIT_USAGE,
                        "%s only reads `%s', and out: would start it as zeros: expected in:FILE",
                        kernel->name, word);
        if (argument->direction == GPUQ_IN && strncmp(word, "in:", 3) != 0)
                return problem_set(problem, EXIT_USAGE,
                                   "%s writes `%s', and its result would be lost: expected %s",
                                   kernel->name, word,
                                   strncmp(word, "out:", 4) == 0 ? "out:FILE:DTYPE:N[,M...]"
                                                                 : "inout:FILE");
        return 0;
}

static int kernel_wrong_type(const gpuq_kernel_info *kernel, const Argument *argument,
                             const char *word, const Dtype *wanted, Problem *problem) {
        return problem_set(problem, EXIT_USAGE,
                           "`%s' of %s must be %s, not %s: convert it with a.astype('%s')", word,
                           kernel->name, wanted->name, argument->array.dtype->name, wanted->name);
}

int kernel_check_array(const gpuq_kernel_info *kernel, const Argument *argument, Problem *problem) {
        const Dtype *wanted;
        char word[64];
        int r;

        kernel_word(kernel, argument->number - 1, word, sizeof(word));
        wanted = kernel_word_dtype(word);
        if (argument->is_scalar || !wanted)
                return 0;

        r = kernel_check_direction(kernel, argument, word, problem);
        if (r == 0 && argument->array.dtype != wanted)
                r = kernel_wrong_type(kernel, argument, word, wanted, problem);
        return r ? argument_name(argument, problem, r) : 0;
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
