/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Twin
 */
#include "worker/twin.h"

#include <string.h>

/* Dynamic shared memory that a kernel gets without asking; twins are asked for no more. */
#define TWIN_SHARED_MAX (48u << 10)

size_t twin_rows(const ProgramLaunch *launch) {
        const Function *function = launch->function;
        uint64_t n_threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];

        if (!function->twin || launch->grid[2] != 1 || launch->cluster[0] || launch->cooperative ||
            n_threads > function->twin_max_threads ||
            function->static_shared + launch->shared_bytes > TWIN_SHARED_MAX)
                return 0;
        return batch_rows(function->n_parameter_bytes);
}

/* Nearly all are pointers, or numbers as long: no call for those. */
static void twin_copy(uint8_t *to, const void *value, size_t n_bytes) {
        if (n_bytes == sizeof(uint64_t))
                memcpy(to, value, sizeof(uint64_t));
        else
                memcpy(to, value, n_bytes);
}

void twin_add(TwinTable *table, const ProgramLaunch *launch) {
        const Function *function = launch->function;
        uint8_t *row = table->bytes + table->n_rows * batch_pitch(function->n_parameter_bytes);

        for (size_t i = 0; i < function_n_values(function); ++i)
                twin_copy(row + function->parameters[i].offset, launch->values[i],
                          function->parameters[i].size);
        ++table->n_rows;
}

CUresult twin_launch(const TwinTable *table, const ProgramLaunch *launch, Streams *streams,
                     Stream *stream) {
        CUlaunchConfig config = {
                .gridDimX = launch->grid[0],
                .gridDimY = launch->grid[1],
                .gridDimZ = (unsigned)table->n_rows,
                .blockDimX = launch->block[0],
                .blockDimY = launch->block[1],
                .blockDimZ = launch->block[2],
                .sharedMemBytes = launch->shared_bytes,
        };
        void *params[] = {(void *)table->bytes};

        return stream_launch(streams, stream, &config, launch->function->twin, params);
}
