/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job
 */
#include "worker/job.h"

#include <string.h>

#include "worker/twin.h"

/* ---- from the message ------------------------------------------------------------ */

typedef struct JobRoom {
        size_t buffers, kernels, after, edges, staging, names, operations,
                total; /* offsets into the block */
} JobRoom;

static JobRoom job_measure(const Gpuq__Worker__WorkerJob *message) {
        JobRoom room = {.buffers = sizeof(Job)};

        room.kernels = room.buffers + message->n_buffers * sizeof(StagingBuffer);
        room.after = room.kernels + message->n_kernels * sizeof(JobKernel);
        room.edges = room.after + message->n_after * sizeof(uint64_t);
        room.staging = room.edges + message->n_after * sizeof(JobEdge);
        room.names = room.staging + staging_room(message->n_buffers);
        room.operations = room.names;
        for (size_t i = 0; i < message->n_kernels; ++i)
                room.operations += strlen(message->kernels[i]->name) + 1;
        room.total = room.operations + message->operations.len;
        return room;
}

static void job_take_buffer(Job *job, StagingBuffer *buffer, const Gpuq__V1__Buffer *message,
                            const JobTables *tables) {
        Arena *arena = tables->find_arena(tables->userdata, message->arena);

        *buffer = (StagingBuffer){0};
        if (!arena) {
                failure_set(&job->failure, GPUQ__V1__CODE__E_NOT_FOUND,
                            "arena %llu is not in this worker", (unsigned long long)message->arena);
                return;
        }

        ++arena->n_uses;
        *buffer = (StagingBuffer){
                .arena = arena,
                .offset = message->offset,
                .length = message->length,
                .direction = (StagingDirection)message->direction,
                .in_device = arena->place == GPUQ__V1__PLACE__DEVICE,
        };
        if ((unsigned)message->direction > STAGING_INOUT)
                failure_set(&job->failure, GPUQ__V1__CODE__E_INVALID,
                            "a buffer neither in, out nor inout");
        if (buffer->offset > arena->size || buffer->length > arena->size - buffer->offset)
                failure_set(&job->failure, GPUQ__V1__CODE__E_INVALID,
                            "a buffer of %llu bytes at %llu of an arena of %llu",
                            (unsigned long long)buffer->length, (unsigned long long)buffer->offset,
                            (unsigned long long)arena->size);
}

/* Return: where the next name goes. */
static char *job_take_kernel(Job *job, JobKernel *kernel, const Gpuq__V1__Kernel *message,
                             const JobTables *tables, char *names) {
        Module *module = tables->find_module(tables->userdata, message->module);
        size_t n_name = strlen(message->name) + 1;

        *kernel = (JobKernel){.name = memcpy(names, message->name, n_name)};
        if (!module) {
                failure_set(&job->failure, GPUQ__V1__CODE__E_NOT_FOUND,
                            "module %llu is not in this worker",
                            (unsigned long long)message->module);
        } else {
                module_use(module);
                kernel->module = module;
        }
        return names + n_name;
}

static void job_lay_out(Job *job, const JobRoom *room, const Gpuq__Worker__WorkerJob *message) {
        uint8_t *block = (uint8_t *)job;

        *job = (Job){
                .id = message->id,
                .priority = message->priority,
                .timed = message->timed,
                .alone = message->alone,
                .timeout_ms = message->timeout_ms,
                .buffers = (StagingBuffer *)(block + room->buffers),
                .n_buffers = message->n_buffers,
                .kernels = (JobKernel *)(block + room->kernels),
                .n_kernels = message->n_kernels,
                .after = (uint64_t *)(block + room->after),
                .edges = (JobEdge *)(block + room->edges),
                .n_after = message->n_after,
                .staging_memory = block + room->staging,
                .operations = block + room->operations,
                .n_operations = message->operations.len,
        };
        SLIST_INIT(&job->successors);
}

int job_new(const Gpuq__Worker__WorkerJob *message, const JobTables *tables, Blocks *blocks,
            Job **ret_job) {
        JobRoom room = job_measure(message);
        Job *job = blocks_take(blocks, room.total);
        char *names;

        if (!job)
                return -ENOMEM;

        job_lay_out(job, &room, message);
        for (size_t i = 0; i < job->n_buffers; ++i)
                job_take_buffer(job, &job->buffers[i], message->buffers[i], tables);
        names = (char *)job + room.names;
        for (size_t i = 0; i < job->n_kernels; ++i)
                names = job_take_kernel(job, &job->kernels[i], message->kernels[i], tables, names);
        if (job->n_after > 0)
                memcpy(job->after, message->after, job->n_after * sizeof(*job->after));
        if (job->n_operations > 0)
                memcpy(job->operations, message->operations.data, job->n_operations);
        if (message->word_arena)
                word_take(&job->word, tables->find_arena(tables->userdata, message->word_arena),
                          message->word_offset);

        *ret_job = job;
        return 0;
}

Job *job_free(Job *job, Blocks *blocks) {
        if (!job)
                return NULL;

        program_unref(job->program);
        free(job->output);
        failure_clear(&job->failure);
        blocks_give(blocks, job);
        return NULL;
}

/* ---- before it runs ------------------------------------------------------------------ */

bool job_is_prepared(const Job *job) {
        for (size_t i = 0; i < job->n_buffers; ++i) {
                const Arena *arena = job->buffers[i].arena;

                if (arena && arena->state == ARENA_PREPARING)
                        return false;
        }
        for (size_t i = 0; i < job->n_kernels; ++i) {
                const Module *module = job->kernels[i].module;

                if (module &&
                    (module->state == MODULE_COMPILING || module->state == MODULE_LOADING))
                        return false;
        }
        return true;
}

static int job_check_prepared(Job *job) {
        if (failure_is_set(&job->failure))
                return FAILURE_E_SET;

        for (size_t i = 0; i < job->n_buffers; ++i) {
                const Arena *arena = job->buffers[i].arena;

                if (arena->state == ARENA_FAILED) {
                        failure_copy(&job->failure, &arena->failure);
                        return FAILURE_E_SET;
                }
        }
        for (size_t i = 0; i < job->n_kernels; ++i)
                if (job->kernels[i].module->state == MODULE_FAILED) {
                        failure_copy(&job->failure, &job->kernels[i].module->failure);
                        return FAILURE_E_SET;
                }
        return 0;
}

/* ---- its program ------------------------------------------------------------------------ */

/* Few names and buffers in one job are the rule: then they need no memory of their own. */
#define JOB_FEW 8

static int job_make_program(Job *job, Programs *programs, ProgramInput *input) {
        _cleanup_(freep) ProgramBuffer *many = NULL;
        ProgramBuffer few[JOB_FEW], *buffers = few;

        if (job->n_buffers > JOB_FEW) {
                buffers = many = calloc(job->n_buffers, sizeof(*many));
                if (!many)
                        return -ENOMEM;
        }

        for (size_t i = 0; i < job->n_buffers; ++i)
                buffers[i] = (ProgramBuffer){
                        .length = job->buffers[i].length,
                        .alignment = job->buffers[i].in_device ? job->buffers[i].offset
                                                               : job->staging.scratch[i],
                        .writable = job->buffers[i].direction != STAGING_IN,
                };
        input->buffers = buffers;
        return programs_make(programs, input, &job->program, &job->failure);
}

static int job_build_program(Job *job, Programs *programs) {
        _cleanup_(freep) ProgramKernel *many = NULL;
        ProgramKernel few[JOB_FEW], *kernels = few;
        ProgramInput input = {
                .operations = job->operations,
                .n_operations = job->n_operations,
                .n_buffers = job->n_buffers,
                .n_kernels = job->n_kernels,
        };

        if (job->n_kernels > JOB_FEW) {
                kernels = many = calloc(job->n_kernels, sizeof(*many));
                if (!many)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < job->n_kernels; ++i)
                kernels[i] = (ProgramKernel){
                        .name = job->kernels[i].name,
                        .image = job->kernels[i].module->image,
                };
        input.kernels = kernels;

        job->program = programs_find(programs, &input);
        return job->program ? 0 : job_make_program(job, programs, &input);
}

/* ---- its data ---------------------------------------------------------------------------- */

static int job_plan_staging(Job *job) {
        int r;

        r = staging_plan(job->buffers, job->n_buffers, job->staging_memory, &job->staging);
        if (r == -EOVERFLOW)
                return failure_set(&job->failure, GPUQ__V1__CODE__E_MEMORY,
                                   "the job's buffers are larger than any memory");
        return r;
}

/* Zeros in device memory count too: a batch makes them in the same launch. */
static uint64_t job_count_small(const Job *job) {
        uint64_t n_bytes = job->staging.n_bytes;

        if (job->staging.ordered)
                return UINT64_MAX;
        for (size_t i = 0; i < job->n_buffers && n_bytes <= JOB_SMALL_BYTES; ++i)
                if (job->buffers[i].in_device && job->buffers[i].direction == STAGING_OUT)
                        n_bytes += MIN(job->buffers[i].length, JOB_SMALL_BYTES + 1);
        return n_bytes <= JOB_SMALL_BYTES ? n_bytes : UINT64_MAX;
}

/* What is updated must not be seen half done, and kernels count on the alignment that scratch has. */
static bool job_fits_in_place(const Job *job) {
        uint64_t n_host = 0;

        if (job->staging.updates || job->n_small > JOB_SMALL_BYTES ||
            !program_only_launch(job->program))
                return false;
        for (size_t i = 0; i < job->n_buffers; ++i) {
                const StagingBuffer *buffer = &job->buffers[i];

                if (buffer->in_device)
                        continue;
                if (buffer->offset % STAGING_ALIGNMENT != 0)
                        return false;
                n_host += buffer->length;
        }
        return n_host > 0 && n_host <= IN_PLACE_JOB_MAX;
}

/* ---- its kind ------------------------------------------------------------------------------ */

static void job_find_kind(Job *job) {
        const ProgramLaunch *launch = program_only_launch(job->program);

        if (!launch || job->timed || job->program->has_printf || job->n_small > JOB_SMALL_BYTES)
                return;
        job->n_rows = twin_rows(launch);
        if (job->n_rows < BATCH_ROWS_MIN)
                return;

        job->kind.function = launch->function;
        memcpy(job->kind.grid, launch->grid, sizeof(job->kind.grid));
        memcpy(job->kind.block, launch->block, sizeof(job->kind.block));
        job->kind.shared_bytes = launch->shared_bytes;
        job->kind.class = stream_class(job->priority);
}

int job_check(Job *job, Programs *programs) {
        int r;

        r = job_check_prepared(job);
        if (r)
                return r;
        r = job_plan_staging(job);
        if (r)
                return r;
        r = job_build_program(job, programs);
        if (r)
                return r;

        job->n_small = job_count_small(job);
        job->may_be_in_place = job_fits_in_place(job);
        job_find_kind(job);
        return 0;
}

void job_set_addresses(const Job *job, bool in_place) {
        for (size_t i = 0; i < job->n_buffers; ++i) {
                const StagingBuffer *buffer = &job->buffers[i];

                job->program->addresses[i] =
                        in_place || buffer->in_device
                                ? job_arena(buffer->arena)->address + buffer->offset
                                : job->scratch + job->staging.scratch[i];
        }
}
