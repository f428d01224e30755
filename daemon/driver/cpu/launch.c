/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/launch.h"

#include <limits.h>
#include <string.h>

#include "driver/cpu/api.h"
#include "driver/cpu/broken.h"
#include "driver/cpu/engine.h"
#include "driver/cpu/gang.h"
#include "driver/cpu/stream.h"
#include "driver/cpu/twin.h"

#define LAUNCH_ALIGN 64u /* of arguments: more than any type asks for */

/* One run of a launch, whose blocks are distributed to helpers. */
typedef struct Launch {
        const LaunchWork *work;
        TAILQ_ENTRY(Launch) link; /* context->launches */
        int priority;
        unsigned n_helping; /* guarded by the context's lock */
        _Atomic uint64_t next;
} Launch;

static uint64_t launch_volume(GpuqCpuIndex dim) {
        return (uint64_t)dim.x * dim.y * dim.z;
}

/* ---- running -------------------------------------------------------------------- */

static GpuqCpuIndex launch_index(uint64_t i, GpuqCpuIndex dim) {
        return (GpuqCpuIndex){
                .x = (uint32_t)(i % dim.x),
                .y = (uint32_t)(i / dim.x % dim.y),
                .z = (uint32_t)(i / dim.x / dim.y),
        };
}

/* A block of a twin's row is one of the kernel's, of a grid with one layer. */
static void launch_row(const LaunchWork *work, EngineBlock *block) {
        const GpuqCpuEntry *kernel = work->function->kernel;

        block->entry = kernel;
        block->params = work->params + (size_t)block->block.z * kernel->n_params;
        block->grid_dim.z = 1;
        block->block.z = 0;
        block->cluster.z = 0;
}

/* Block number @i: clusters in their order, and in each its blocks. */
static CUresult launch_block(const LaunchWork *work, Engine *engine, uint64_t i, Gang *gang,
                             uint32_t rank) {
        const LaunchShape *shape = &work->shape;
        GpuqCpuIndex grid = shape->grid, dim = shape->cluster, cluster, inside;
        uint64_t n = launch_volume(dim);
        EngineBlock block;

        cluster =
                launch_index(i / n, (GpuqCpuIndex){grid.x / dim.x, grid.y / dim.y, grid.z / dim.z});
        inside = launch_index(i % n, dim);
        block = (EngineBlock){
                .image = work->function->module->image,
                .entry = work->function->entry,
                .params = work->params,
                .grid_dim = grid,
                .block_dim = shape->block,
                .cluster_dim = dim,
                .block = {cluster.x * dim.x + inside.x, cluster.y * dim.y + inside.y,
                          cluster.z * dim.z + inside.z},
                .cluster = cluster,
                .shared_bytes = shape->shared_bytes,
                .gang = gang,
                .rank = rank,
                .grid_words = gang_grid_words(gang),
        };
        if (work->function->kernel)
                launch_row(work, &block);
        return engine_run_block(engine, &block);
}

static bool launch_has_blocks(const Launch *launch) {
        return launch->next < launch->work->n_blocks;
}

/* Runs blocks on the calling thread until none are left. */
static void launch_blocks(Launch *launch, Engine *engine) {
        Context *context = launch->work->function->module->context;
        uint64_t i;
        CUresult r;

        while (!context->error) {
                i = launch->next++;
                if (i >= launch->work->n_blocks)
                        return;
                r = launch_block(launch->work, engine, i, NULL, 0);
                if (r)
                        context_fail(context, r);
        }
}

/* ---- helpers ---------------------------------------------------------------------- */

/* The launch of the highest priority that has blocks left. Lower numbers go first. */
static Launch *launch_pick(Context *context) {
        Launch *best = NULL, *launch;

        TAILQ_FOREACH (launch, &context->launches, link)
                if (launch_has_blocks(launch) && (!best || launch->priority < best->priority))
                        best = launch;

        return best;
}

static void *launch_helper(void *argument) {
        Context *context = argument;
        Engine *engine = engine_new(context);
        Launch *launch;

        pthread_mutex_lock(&context->lock);
        while (engine && !context->ending) {
                launch = context->error ? NULL : launch_pick(context);
                if (!launch) {
                        context->n_idle++;
                        pthread_cond_wait(&context->offered, &context->lock);
                        context->n_idle--;
                        continue;
                }

                launch->n_helping++;
                pthread_mutex_unlock(&context->lock);
                launch_blocks(launch, engine);
                pthread_mutex_lock(&context->lock);
                if (--launch->n_helping == 0)
                        pthread_cond_broadcast(&context->progress);
        }
        pthread_mutex_unlock(&context->lock);

        engine_free(engine);
        pthread_mutex_lock(&context->lock);
        context->n_helpers--;
        context_thread_end(context);
        return NULL;
}

static void launch_offer(Context *context, Launch *launch) {
        pthread_mutex_lock(&context->lock);
        TAILQ_INSERT_TAIL(&context->launches, launch, link);
        /* The stream's own thread counts as one of the context's. */
        if (!context->n_idle && context->n_helpers + 1 < context->n_sms &&
            context_thread_start(context, launch_helper, context) == 0)
                context->n_helpers++;
        pthread_cond_broadcast(&context->offered);
        pthread_mutex_unlock(&context->lock);
}

static void launch_withdraw(Context *context, Launch *launch) {
        pthread_mutex_lock(&context->lock);
        TAILQ_REMOVE(&context->launches, launch, link);
        while (launch->n_helping)
                pthread_cond_wait(&context->progress, &context->lock);
        pthread_mutex_unlock(&context->lock);
}

/* ---- blocks that wait for each other ----------------------------------------------- */

/* One of a gang's threads, which runs the blocks of one rank. */
typedef struct LaunchMember {
        const LaunchWork *work;
        Gang *gang;
        uint32_t n, rank;
        pthread_t thread;
} LaunchMember;

static void launch_member_run(LaunchMember *member, Engine *engine) {
        Context *context = engine->context;
        CUresult r;

        gang_join(member->gang, member->rank, engine);
        for (uint64_t i = member->rank; i < member->work->n_blocks && !context->error;
             i += member->n) {
                r = launch_block(member->work, engine, i, member->gang, member->rank);
                if (r)
                        context_fail(context, r);
                /* Shared memory of a block may be read as long as its cluster lives. */
                gang_join(member->gang, member->rank, engine);
        }
}

static void *launch_member_thread(void *argument) {
        LaunchMember *member = argument;
        Context *context = member->work->function->module->context;
        Engine *engine = engine_new(context);

        if (!engine) {
                context_fail(context, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
                return NULL;
        }

        launch_member_run(member, engine);
        engine_free(engine);
        return NULL;
}

static CUresult launch_members(LaunchMember *members, uint32_t n, Engine *engine) {
        uint32_t n_started = 1;

        while (n_started < n && pthread_create(&members[n_started].thread, NULL,
                                               launch_member_thread, &members[n_started]) == 0)
                n_started++;

        /* The other blocks wait for the missing ones; the fault ends their wait. */
        if (n_started < n)
                context_fail(engine->context, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
        else
                launch_member_run(&members[0], engine);

        for (uint32_t i = 1; i < n_started; i++)
                pthread_join(members[i].thread, NULL);
        return CUDA_SUCCESS;
}

static CUresult launch_run_gang(const LaunchWork *work, Engine *engine) {
        uint32_t cluster = (uint32_t)launch_volume(work->shape.cluster);
        uint32_t n = work->shape.cooperative ? (uint32_t)work->n_blocks : cluster;
        _cleanup_(freep) LaunchMember *members = calloc(n, sizeof(*members));
        Gang *gang = gang_new(engine->context, n, cluster, work->shape.cooperative);
        CUresult r = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;

        for (uint32_t i = 0; members && i < n; i++)
                members[i] = (LaunchMember){.work = work, .gang = gang, .n = n, .rank = i};
        if (members && gang)
                r = launch_members(members, n, engine);

        gang_free(gang);
        return r;
}

static CUresult launch_run(Work *base, Stream *stream) {
        const LaunchWork *work = (const LaunchWork *)base;
        Launch launch = {
                .work = work,
                .priority = work->shape.has_priority ? work->shape.priority : stream->priority,
        };

        if (work->shape.cooperative || launch_volume(work->shape.cluster) > 1)
                return launch_run_gang(work, stream->engine);

        if (work->n_blocks > 1)
                launch_offer(stream->context, &launch);
        launch_blocks(&launch, stream->engine);
        if (work->n_blocks > 1)
                launch_withdraw(stream->context, &launch);
        return CUDA_SUCCESS;
}

/* ---- making ---------------------------------------------------------------------- */

static void launch_work_free(Work *base) {
        LaunchWork *work = (LaunchWork *)base;

        free(work->data);
        free(work->params);
        free(work);
}

static CUresult launch_check_cluster(const Function *function, const LaunchShape *shape) {
        GpuqCpuIndex cluster = shape->cluster;
        uint64_t n = launch_volume(cluster);

        if (!n || n > (function->large_clusters ? DEVICE_CLUSTER_MAX : DEVICE_CLUSTER))
                return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        if (shape->grid.x % cluster.x || shape->grid.y % cluster.y || shape->grid.z % cluster.z)
                return CUDA_ERROR_INVALID_VALUE;

        return CUDA_SUCCESS;
}

static CUresult launch_check_cooperative(Function *function, const LaunchShape *shape) {
        uint64_t n = launch_volume(shape->grid);
        int n_each;
        CUresult r;

        r = cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &n_each, function, (int)launch_volume(shape->block), shape->shared_bytes);
        if (r)
                return r;

        return n > (uint64_t)n_each * function->module->context->n_sms
                       ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
                       : CUDA_SUCCESS;
}

/* Whether the kernel takes blocks of this size. */
static bool launch_block_fits(const GpuqCpuEntry *entry, GpuqCpuIndex block) {
        if (entry->max_threads && launch_volume(block) > entry->max_threads)
                return false;
        return !entry->block.x || (block.x == entry->block.x && block.y == entry->block.y &&
                                   block.z == entry->block.z);
}

static CUresult launch_check(Function *function, const LaunchShape *shape, void **params) {
        GpuqCpuIndex grid = shape->grid, block = shape->block;
        CUresult r;

        if (!launch_volume(grid) || grid.x > INT_MAX || grid.y > 65535 || grid.z > 65535)
                return CUDA_ERROR_INVALID_VALUE;
        if (block.x > 1024 || block.y > 1024 || block.z > 64 || !launch_volume(block) ||
            launch_volume(block) > DEVICE_MAX_THREADS || !launch_block_fits(function->entry, block))
                return CUDA_ERROR_INVALID_VALUE;
        if (shape->shared_bytes > (uint32_t)function->max_shared)
                return CUDA_ERROR_INVALID_VALUE;
        if (!params && function->entry->n_params)
                return CUDA_ERROR_INVALID_VALUE;

        if (function->kernel &&
            !twin_check_grid(function, grid,
                             !shape->cooperative && launch_volume(shape->cluster) == 1))
                return CUDA_ERROR_INVALID_VALUE;

        r = launch_check_cluster(function, shape);
        if (!r && shape->cooperative)
                r = launch_check_cooperative(function, shape);
        return r;
}

/* The arguments belong to the caller again when the launch returns. */
static CUresult launch_copy_params(LaunchWork *work, void **params) {
        const GpuqCpuEntry *entry = work->function->entry;
        size_t n = entry->n_params, n_bytes = 0;

        if (n)
                n_bytes = entry->offsets[n - 1] + (size_t)entry->sizes[n - 1];
        n_bytes = (n_bytes / LAUNCH_ALIGN + 1) * LAUNCH_ALIGN;
        work->data = aligned_alloc(LAUNCH_ALIGN, n_bytes);
        if (!work->data)
                return CUDA_ERROR_OUT_OF_MEMORY;

        work->params = work->function->kernel
                               ? twin_rows(work->function, work->data, work->shape.grid.z)
                               : calloc(MAX(n, 1), sizeof(*work->params));
        if (!work->params)
                return CUDA_ERROR_OUT_OF_MEMORY;

        for (size_t i = 0; i < n; i++) {
                memcpy(work->data + entry->offsets[i], params[i], entry->sizes[i]);
                if (!work->function->kernel)
                        work->params[i] = work->data + entry->offsets[i];
        }
        return CUDA_SUCCESS;
}

CUresult launch_work_new(Function *function, const LaunchShape *shape, void **params,
                         Work **ret_work) {
        LaunchWork *work;
        CUresult r;

        r = launch_check(function, shape, params);
        if (!r)
                r = broken_call(function->entry->name);
        if (r)
                return r;

        work = calloc(1, sizeof(*work));
        if (!work)
                return CUDA_ERROR_OUT_OF_MEMORY;

        work->work = (Work){.n_refs = 1, .run = launch_run, .free = launch_work_free};
        work->function = function;
        work->shape = *shape;
        work->n_blocks = launch_volume(shape->grid);
        r = launch_copy_params(work, params);
        if (r) {
                launch_work_free(&work->work);
                return r;
        }

        *ret_work = &work->work;
        return CUDA_SUCCESS;
}

CUresult launch_attribute(LaunchShape *shape, CUlaunchAttributeID id,
                          const CUlaunchAttributeValue *value) {
        switch (id) {
                case CU_LAUNCH_ATTRIBUTE_IGNORE:
                        return CUDA_SUCCESS;
                case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
                        shape->cooperative = value->cooperative != 0;
                        return CUDA_SUCCESS;
                case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
                        shape->cluster = (GpuqCpuIndex){value->clusterDim.x, value->clusterDim.y,
                                                        value->clusterDim.z};
                        return CUDA_SUCCESS;
                case CU_LAUNCH_ATTRIBUTE_PRIORITY:
                        shape->has_priority = true;
                        shape->priority = value->priority;
                        return CUDA_SUCCESS;
                default:
                        return CUDA_ERROR_INVALID_VALUE;
        }
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                          void **extra) {
        LaunchShape shape = {.cluster = {1, 1, 1}};
        Context *context;
        Stream *stream;
        Work *work;
        CUresult r;

        r = function_enter(function, &context);
        if (r)
                return r;
        if (!config || extra || (config->numAttrs && !config->attrs))
                return CUDA_ERROR_INVALID_VALUE;
        r = stream_enter(config->hStream, &context, &stream);
        if (r)
                return r;
        if (function->module->context != context)
                return CUDA_ERROR_INVALID_HANDLE;
        shape.grid = (GpuqCpuIndex){config->gridDimX, config->gridDimY, config->gridDimZ};
        shape.block = (GpuqCpuIndex){config->blockDimX, config->blockDimY, config->blockDimZ};
        shape.shared_bytes = config->sharedMemBytes;
        for (unsigned i = 0; i < config->numAttrs; i++) {
                r = launch_attribute(&shape, config->attrs[i].id, &config->attrs[i].value);
                if (r)
                        return r;
        }

        r = launch_work_new(function, &shape, params, &work);
        if (r)
                return r;

        return stream_push(stream, work);
}
