/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random
 *
 * One launch. A number is a function of its index, so there is no state to keep.
 */

#include <inttypes.h>
#include <stdio.h>

#include "compose.h"
#include "error.h"
#include "parts.h"

#define RANDOM_BLOCK_BYTES 16u /* of Philox 4x32 */
#define RANDOM_BLOCKS_MAX  2048u
#define RANDOM_NUMBERS_MAX (UINT64_C(1) << 62) /* two words each are still counted in 64 bits */

/* What is launched: the kernel, and how many words or numbers of it an element has. */
typedef struct RandomKernel {
        char name[32];
        unsigned n_each;
} RandomKernel;

static bool random_kernel(const gpuq_random *random, RandomKernel *ret_kernel) {
        bool is_float = random->type == GPUQ_TYPE_F32 || random->type == GPUQ_TYPE_F64;
        unsigned element = compose_element(random->type);
        RandomKernel kernel = {.n_each = 1};

        if (element == 0 || (random->distribution == GPUQ_RANDOM_BITS) == is_float)
                return false;
        switch (random->distribution) {
                case GPUQ_RANDOM_BITS:
                        kernel.n_each = element / 4;
                        snprintf(kernel.name, sizeof(kernel.name), "random_bits_u32");
                        break;
                case GPUQ_RANDOM_UNIFORM:
                case GPUQ_RANDOM_NORMAL:
                        snprintf(kernel.name, sizeof(kernel.name), "random_%s_%s",
                                 random->distribution == GPUQ_RANDOM_UNIFORM ? "uniform" : "normal",
                                 compose_suffix(random->type));
                        break;
                default:
                        return false;
        }
        *ret_kernel = kernel;
        return true;
}

static int random_check(const Composition *composition, const gpuq_random *random,
                        RandomKernel *ret_kernel) {
        unsigned element;
        int r;

        if (!random)
                return error_set(GPUQ_E_INVALID, "gpuq_job_random(): the random is NULL");
        if (!random_kernel(random, ret_kernel))
                return error_set(
                        GPUQ_E_INVALID,
                        "random: distribution %d is not for type %d: bits are for i32, u32, i64 "
                        "and u64, uniform and normal numbers for f32 and f64",
                        (int)random->distribution, (int)random->type);
        element = compose_element(random->type);
        r = compose_check(composition, "to", random->to, random->n, element, element);
        if (r < 0)
                return r;
        if (random->offset >= RANDOM_NUMBERS_MAX - random->n)
                return error_set(GPUQ_E_INVALID,
                                 "random: offset %" PRIu64 " is beyond the end of the stream; "
                                 "offset and n together must be less than 2^62",
                                 random->offset);
        return 0;
}

static int random_launch(Composition *composition, const gpuq_random *random,
                         const RandomKernel *kernel) {
        uint64_t n_bytes = random->n * compose_element(random->type);
        uint64_t blocks = n_bytes / RANDOM_BLOCK_BYTES / PARTS_THREADS + 1;
        gpuq_arg args[] = {
                compose_result(random->to, n_bytes),
                gpuq_u64(random->n * kernel->n_each),
                gpuq_u64(random->seed),
                gpuq_u64(random->stream),
                gpuq_u64(0),
                gpuq_u64(random->offset * kernel->n_each),
        };

        return compose_launch(composition, kernel->name, MIN(blocks, (uint64_t)RANDOM_BLOCKS_MAX),
                              args, ARRAY_SIZE(args));
}

static int random_append(Composition *composition, const gpuq_random *random) {
        RandomKernel kernel;
        int r;

        r = random_check(composition, random, &kernel);
        if (r < 0)
                return r;
        return random_launch(composition, random, &kernel);
}

int gpuq_job_random(gpuq_job *job, const gpuq_random *random) {
        Composition composition;
        int r;

        r = compose_begin(&composition, "random", job);
        if (r < 0)
                return r;
        return compose_end(&composition, random_append(&composition, random));
}
