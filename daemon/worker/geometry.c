/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Geometry
 */
#include "worker/geometry.h"

/* Dynamic shared memory that a kernel gets without asking. */
#define GEOMETRY_SHARED_FREE (48u << 10)

static const char axes[] = "xyz";

static unsigned at_least_one(unsigned n) {
        return n ? n : 1;
}

static uint64_t product(const unsigned n[3]) {
        return (uint64_t)n[0] * n[1] * n[2];
}

static void geometry_fill(ProgramLaunch *launch, const Gpuq__V1__Launch *message) {
        launch->grid[0] = at_least_one(message->grid_x);
        launch->grid[1] = at_least_one(message->grid_y);
        launch->grid[2] = at_least_one(message->grid_z);
        launch->block[0] = at_least_one(message->block_x);
        launch->block[1] = at_least_one(message->block_y);
        launch->block[2] = at_least_one(message->block_z);
        launch->shared_bytes = message->shared_bytes;
        launch->cooperative = message->cooperative;

        if (message->cluster_x || message->cluster_y || message->cluster_z) {
                launch->cluster[0] = at_least_one(message->cluster_x);
                launch->cluster[1] = at_least_one(message->cluster_y);
                launch->cluster[2] = at_least_one(message->cluster_z);
        }
}

static int geometry_check_axes(const ProgramLaunch *launch, const ContextLimits *limits,
                               Failure *failure) {
        const char *name = launch->function->name;

        for (unsigned i = 0; i < 3; ++i) {
                if (launch->grid[i] > limits->max_grid[i])
                        return failure_set(failure, GPUQ__V1__CODE__E_INVALID,
                                           "kernel %s: grid.%c is %u; the device's limit is %u",
                                           name, axes[i], launch->grid[i], limits->max_grid[i]);
                if (launch->block[i] > limits->max_block[i])
                        return failure_set(failure, GPUQ__V1__CODE__E_INVALID,
                                           "kernel %s: block.%c is %u; the device's limit is %u",
                                           name, axes[i], launch->block[i], limits->max_block[i]);
        }
        return 0;
}

static int geometry_check_threads(const ProgramLaunch *launch, const ContextLimits *limits,
                                  Failure *failure) {
        const Function *function = launch->function;
        uint64_t n_threads = product(launch->block);

        if (n_threads > limits->max_threads)
                return failure_set(
                        failure, GPUQ__V1__CODE__E_INVALID,
                        "kernel %s: the block has %llu threads; the device's limit is %u",
                        function->name, (unsigned long long)n_threads, limits->max_threads);
        if (n_threads > function->max_threads)
                return failure_set(
                        failure, GPUQ__V1__CODE__E_INVALID,
                        "kernel %s: the block has %llu threads; this kernel's limit is %u",
                        function->name, (unsigned long long)n_threads, function->max_threads);
        return 0;
}

static int geometry_check_shared(const ProgramLaunch *launch, const Context *context,
                                 Failure *failure) {
        Function *function = launch->function;
        size_t n_shared = function->static_shared + launch->shared_bytes;
        int r;

        if (n_shared > context->limits.max_shared)
                return failure_set(failure, GPUQ__V1__CODE__E_INVALID,
                                   "kernel %s: a block needs %zu bytes of shared memory (%zu "
                                   "static, %u dynamic); the device's limit is %zu",
                                   function->name, n_shared, function->static_shared,
                                   launch->shared_bytes, context->limits.max_shared);
        if (launch->shared_bytes <= function->dynamic_shared || n_shared <= GEOMETRY_SHARED_FREE)
                return 0;

        r = result_check(
                context->cu,
                context->cu->cuFuncSetAttribute(function->function,
                                                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                (int)launch->shared_bytes),
                GPUQ__V1__CODE__E_LAUNCH, "cuFuncSetAttribute", failure);
        if (r)
                return r;
        function->dynamic_shared = launch->shared_bytes;
        return 0;
}

static int geometry_check_cluster(const ProgramLaunch *launch, const ContextLimits *limits,
                                  Failure *failure) {
        const char *name = launch->function->name;
        uint64_t n_blocks = product(launch->cluster);

        if (n_blocks == 0)
                return 0;
        if (limits->max_cluster == 0)
                return failure_set(failure, GPUQ__V1__CODE__E_INVALID,
                                   "kernel %s: the device does not support clusters", name);
        if (launch->cluster[0] > limits->max_cluster || launch->cluster[1] > limits->max_cluster ||
            launch->cluster[2] > limits->max_cluster || n_blocks > limits->max_cluster)
                return failure_set(
                        failure, GPUQ__V1__CODE__E_INVALID,
                        "kernel %s: the cluster has %u x %u x %u blocks; the limit is %u "
                        "blocks",
                        name, launch->cluster[0], launch->cluster[1], launch->cluster[2],
                        limits->max_cluster);

        for (unsigned i = 0; i < 3; ++i)
                if (launch->grid[i] % launch->cluster[i] != 0)
                        return failure_set(failure, GPUQ__V1__CODE__E_INVALID,
                                           "kernel %s: grid.%c is %u, which is not a multiple of "
                                           "cluster.%c, %u",
                                           name, axes[i], launch->grid[i], axes[i],
                                           launch->cluster[i]);
        return 0;
}

static int geometry_check_cooperative(const ProgramLaunch *launch, const Context *context,
                                      Failure *failure) {
        Function *function = launch->function;
        unsigned n_resident, n_threads = (unsigned)product(launch->block);
        uint64_t grid_yz = (uint64_t)launch->grid[1] * launch->grid[2];
        int r;

        if (!launch->cooperative)
                return 0;
        if (!context->limits.cooperative)
                return failure_set(failure, GPUQ__V1__CODE__E_INVALID,
                                   "kernel %s: the device does not support cooperative launches",
                                   function->name);

        r = function_resident_blocks(function, context->cu, context->limits.n_multiprocessors,
                                     n_threads, launch->shared_bytes, &n_resident, failure);
        if (r)
                return r;
        /* Divided, since three sizes of 32 bits can be more than 64. */
        if (launch->grid[0] > n_resident / grid_yz)
                return failure_set(
                        failure, GPUQ__V1__CODE__E_INVALID,
                        "kernel %s: the cooperative grid has %u x %u x %u blocks; %s can "
                        "run %u of them at once",
                        function->name, launch->grid[0], launch->grid[1], launch->grid[2],
                        context->is_green ? "the user's share of the SMs" : "the device",
                        n_resident);
        return 0;
}

int geometry_check(ProgramLaunch *launch, const Gpuq__V1__Launch *message, const Context *context,
                   Failure *failure) {
        int r;

        geometry_fill(launch, message);
        r = geometry_check_axes(launch, &context->limits, failure);
        if (r)
                return r;
        r = geometry_check_threads(launch, &context->limits, failure);
        if (r)
                return r;
        r = geometry_check_cluster(launch, &context->limits, failure);
        if (r)
                return r;
        r = geometry_check_shared(launch, context, failure);
        if (r)
                return r;
        return geometry_check_cooperative(launch, context, failure);
}
