/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job
 */
#include "worker/job.h"

#include <string.h>

/* ---- from the message ------------------------------------------------------------ */

typedef struct JobRoom {
        size_t buffers, kernels, after, names, operations, total; /* offsets into the block */
} JobRoom;

static JobRoom job_measure(const Gpuq__Worker__WorkerJob *message) {
        JobRoom room = {.buffers = sizeof(Job)};

        room.kernels = room.buffers + message->n_buffers * sizeof(JobBuffer);
        room.after = room.kernels + message->n_kernels * sizeof(JobKernel);
        room.names = room.after + message->n_after * sizeof(uint64_t);
        room.operations = room.names;
        for (size_t i = 0; i < message->n_kernels; ++i)
                room.operations += strlen(message->kernels[i]->name) + 1;
        room.total = room.operations + message->operations.len;
        return room;
}

static void job_take_buffer(Job *job, JobBuffer *buffer, const Gpuq__V1__Buffer *message,
                            const JobTables *tables) {
        Arena *arena = tables->find_arena(tables->userdata, message->arena);

        if (!arena) {
                failure_set(&job->failure, GPUQ__V1__CODE__E_NOT_FOUND,
                            "arena %llu is not in this worker", (unsigned long long)message->arena);
                return;
        }

        ++arena->n_uses;
        *buffer = (JobBuffer){
                .arena = arena,
                .offset = message->offset,
                .length = message->length,
                .direction = (StagingDirection)message->direction,
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

        kernel->name = strcpy(names, message->name);
        if (!module) {
                failure_set(&job->failure, GPUQ__V1__CODE__E_NOT_FOUND,
                            "module %llu is not in this worker",
                            (unsigned long long)message->module);
        } else {
                module_use(module);
                kernel->module = module;
        }
        return names + strlen(names) + 1;
}

int job_new(const Gpuq__Worker__WorkerJob *message, const JobTables *tables, Job **ret_job) {
        JobRoom room = job_measure(message);
        uint8_t *block = calloc(1, room.total);
        Job *job = (Job *)block;
        char *names;

        if (!block)
                return -ENOMEM;

        job->id = message->id;
        job->priority = message->priority;
        job->timed = message->timed;
        job->timeout_ms = message->timeout_ms;
        job->buffers = (JobBuffer *)(block + room.buffers);
        job->n_buffers = message->n_buffers;
        job->kernels = (JobKernel *)(block + room.kernels);
        job->n_kernels = message->n_kernels;
        job->after = (uint64_t *)(block + room.after);
        job->n_after = message->n_after;
        job->operations = block + room.operations;
        job->n_operations = message->operations.len;

        for (size_t i = 0; i < job->n_buffers; ++i)
                job_take_buffer(job, &job->buffers[i], message->buffers[i], tables);
        names = (char *)(block + room.names);
        for (size_t i = 0; i < job->n_kernels; ++i)
                names = job_take_kernel(job, &job->kernels[i], message->kernels[i], tables, names);
        if (job->n_after > 0)
                memcpy(job->after, message->after, job->n_after * sizeof(*job->after));
        if (job->n_operations > 0)
                memcpy(job->operations, message->operations.data, job->n_operations);

        *ret_job = job;
        return 0;
}

Job *job_free(Job *job) {
        if (!job)
                return NULL;

        program_free(job->program);
        free(job->staging_memory);
        free(job->output);
        failure_clear(&job->failure);
        free(job);
        return NULL;
}

/* ---- before it runs ------------------------------------------------------------------ */

bool job_is_prepared(const Job *job) {
        for (size_t i = 0; i < job->n_buffers; ++i)
                if (job->buffers[i].arena && job->buffers[i].arena->state == ARENA_PREPARING)
                        return false;
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

        for (size_t i = 0; i < job->n_buffers; ++i)
                if (job->buffers[i].arena->state == ARENA_FAILED) {
                        failure_copy(&job->failure, &job->buffers[i].arena->failure);
                        return FAILURE_E_SET;
                }
        for (size_t i = 0; i < job->n_kernels; ++i)
                if (job->kernels[i].module->state == MODULE_FAILED) {
                        failure_copy(&job->failure, &job->kernels[i].module->failure);
                        return FAILURE_E_SET;
                }
        return 0;
}

static bool job_is_staged(const JobBuffer *buffer) {
        return buffer->arena->place != GPUQ__V1__PLACE__DEVICE;
}

/* Whether a range is both read and written: half of a result there cannot be made again. */
static bool job_writes_in_place(const Job *job) {
        const Staging *staging = &job->staging;

        for (size_t i = 0; i < staging->n_in; ++i)
                for (size_t k = 0; k < staging->n_out; ++k) {
                        const StagingRange *in = &staging->in[i], *out = &staging->out[k];

                        if (in->arena == out->arena && in->offset < out->offset + out->length &&
                            out->offset < in->offset + in->length)
                                return true;
                }
        return false;
}

static int job_plan_staging(Job *job) {
        _cleanup_(freep) StagingBuffer *buffers = NULL;
        int r;

        buffers = calloc(job->n_buffers + 1, sizeof(*buffers));
        job->staging_memory = malloc(staging_room(job->n_buffers) + 1);
        if (!buffers || !job->staging_memory)
                return -ENOMEM;

        for (size_t i = 0; i < job->n_buffers; ++i)
                buffers[i] = (StagingBuffer){
                        .arena = job_is_staged(&job->buffers[i]) ? job->buffers[i].arena : NULL,
                        .offset = job->buffers[i].offset,
                        .length = job->buffers[i].length,
                        .direction = job->buffers[i].direction,
                };

        r = staging_plan(buffers, job->n_buffers, job->staging_memory, &job->staging);
        if (r == -EOVERFLOW)
                return failure_set(&job->failure, GPUQ__V1__CODE__E_MEMORY,
                                   "the job's buffers are larger than any memory");
        if (r < 0)
                return r;

        job->writes_in_place = job_writes_in_place(job);
        return 0;
}

static int job_build_program(Job *job, const Context *context) {
        _cleanup_(freep) ProgramBuffer *buffers = NULL;
        _cleanup_(freep) ProgramKernel *kernels = NULL;
        ProgramInput input = {.n_buffers = job->n_buffers, .n_kernels = job->n_kernels};

        input.operations = job->operations;
        input.n_operations = job->n_operations;
        input.buffers = buffers = calloc(job->n_buffers + 1, sizeof(*buffers));
        input.kernels = kernels = calloc(job->n_kernels + 1, sizeof(*kernels));
        if (!buffers || !kernels)
                return -ENOMEM;

        for (size_t i = 0; i < job->n_buffers; ++i)
                buffers[i] = (ProgramBuffer){
                        .length = job->buffers[i].length,
                        .alignment = job_is_staged(&job->buffers[i]) ? STAGING_ALIGNMENT
                                                                     : job->buffers[i].offset,
                        .writable = job->buffers[i].direction != STAGING_IN,
                };
        for (size_t i = 0; i < job->n_kernels; ++i)
                kernels[i] = (ProgramKernel){
                        .name = job->kernels[i].name,
                        .image = job->kernels[i].module->image,
                };
        return program_new(&input, context, &job->program, &job->failure);
}

int job_check(Job *job, const Context *context) {
        int r;

        r = job_check_prepared(job);
        if (r)
                return r;
        r = job_build_program(job, context);
        if (r)
                return r;
        return job_plan_staging(job);
}

void job_set_addresses(Job *job) {
        for (size_t i = 0; i < job->n_buffers; ++i) {
                const JobBuffer *buffer = &job->buffers[i];

                job->program->addresses[i] = job_is_staged(buffer)
                                                     ? job->scratch + job->staging.scratch[i]
                                                     : buffer->arena->address + buffer->offset;
        }
}
