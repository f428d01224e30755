/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job
 */
#include "worker/job.h"

#include <string.h>

#include "compiler/check.h"
#include "compiler/fence.h"
#include "util/fixed_range.h"
#include "worker/arenas.h"
#include "worker/shadow.h"
#include "worker/twin.h"

/* ---- from the message ------------------------------------------------------------ */

/* Offsets into the block. */
typedef struct JobRoom {
        size_t buffers, kernels, edges, staging, after, texts, total;
} JobRoom;

static size_t job_text_bytes(const WorkerJob *message) {
        return (size_t)message->n_names + message->n_operations;
}

static JobRoom job_measure(const WorkerJob *message) {
        JobRoom room = {.buffers = sizeof(Job)};

        room.kernels = room.buffers + message->n_buffers * sizeof(StagingBuffer);
        room.edges = room.kernels + message->n_kernels * sizeof(JobKernel);
        room.staging = room.edges + message->n_after * sizeof(JobEdge);
        room.after = room.staging + staging_room(message->n_buffers);
        room.texts = room.after + message->n_after * sizeof(uint64_t);
        room.total = room.texts + job_text_bytes(message);
        return room;
}

/* Usually slices of one arena. */
static Arena *job_find_arena(const Job *job, uint64_t id, const JobTables *tables) {
        Arena *last = job->n_buffers ? job_arena(job->buffers[job->n_buffers - 1].arena) : NULL;

        return last && last->id == id ? last : tables->find_arena(tables->userdata, id);
}

static void job_take_buffer(Job *job, const WorkerBuffer *from, const JobTables *tables) {
        Arena *arena = job_find_arena(job, from->arena, tables);
        StagingBuffer *buffer = &job->buffers[job->n_buffers++];
        bool whole;

        *buffer = (StagingBuffer){0};
        if (!arena) {
                failure_set(&job->failure, GPUQ__V1__CODE__E_NOT_FOUND,
                            "arena %llu is not in this worker", (unsigned long long)from->arena);
                return;
        }

        ++arena->n_uses;
        whole = from->direction == GPUQ__V1__DIRECTION__OUT_WHOLE;
        *buffer = (StagingBuffer){
                .arena = arena,
                .offset = from->offset,
                .length = from->length,
                .direction = whole ? STAGING_OUT
                                   : (StagingDirection)MIN(from->direction, STAGING_INOUT + 1u),
                .whole = whole,
                .in_device = arena->place == GPUQ__V1__PLACE__DEVICE,
        };
        if (buffer->direction > STAGING_INOUT)
                failure_set(&job->failure, GPUQ__V1__CODE__E_INVALID,
                            "a buffer is neither in, out nor inout");
        if (buffer->offset > arena->size || buffer->length > arena->size - buffer->offset)
                failure_set(
                        &job->failure, GPUQ__V1__CODE__E_INVALID,
                        "a buffer of %llu bytes at offset %llu does not fit in its arena of %llu "
                        "bytes",
                        (unsigned long long)buffer->length, (unsigned long long)buffer->offset,
                        (unsigned long long)arena->size);
}

/* Kernels would take an address from memory that is valid in other workers only. */
static void job_check_addresses(Job *job) {
        for (size_t i = 0; i < job->n_buffers; ++i) {
                const Arena *arena = job->buffers[i].arena;

                if (arena && job->buffers[i].in_device && arena->state != ARENA_FAILED &&
                    arena->wish && arena_is_moved(arena))
                        failure_set(&job->failure, GPUQ__V1__CODE__E_MEMORY,
                                    "device memory that the job reaches by its address could not "
                                    "be mapped there in this worker");
        }
}

static void job_take_kernel(Job *job, uint64_t id, const char *name, const JobTables *tables) {
        Module *module = tables->find_module(tables->userdata, id);

        job->kernels[job->n_kernels++] = (JobKernel){.module = module, .name = name};
        if (module)
                module_use(module);
        else
                failure_set(&job->failure, GPUQ__V1__CODE__E_NOT_FOUND,
                            "module %llu is not in this worker", (unsigned long long)id);
}

static void job_lay_out(Job *job, const JobRoom *room, const WorkerJob *message) {
        uint8_t *block = (uint8_t *)job;

        *job = (Job){
                .id = message->id,
                .priority = message->priority,
                .timed = message->timed,
                .alone = message->alone,
                .timeout_ms = message->timeout_ms,
                .buffers = (StagingBuffer *)(block + room->buffers),
                .kernels = (JobKernel *)(block + room->kernels),
                .order.after = (uint64_t *)(block + room->after),
                .order.n_after = message->n_after,
                .order.edges = (JobEdge *)(block + room->edges),
                .staging_memory = block + room->staging,
                .operations = block + room->texts + message->n_names,
                .n_operations = message->n_operations,
        };
        SLIST_INIT(&job->order.successors);
}

int job_new(const WorkerJob *message, const WorkerJobParts *parts, const JobTables *tables,
            Blocks *blocks, Job **ret_job) {
        JobRoom room = job_measure(message);
        const char *name;
        Job *job;

        job = blocks_take(blocks, room.total);
        if (!job)
                return -ENOMEM;

        job_lay_out(job, &room, message);
        memcpy(job->order.after, parts->after, message->n_after * sizeof(uint64_t));
        memcpy((uint8_t *)job + room.texts, parts->names, job_text_bytes(message));
        for (uint32_t i = 0; i < message->n_buffers; ++i)
                job_take_buffer(job, &parts->buffers[i], tables);
        if (message->by_address)
                job_check_addresses(job);
        name = (const char *)job + room.texts;
        for (uint32_t i = 0; i < message->n_kernels; ++i, name += strlen(name) + 1)
                job_take_kernel(job, parts->modules[i], name, tables);
        if (message->word_arena)
                word_take(&job->word, tables->find_arena(tables->userdata, message->word_arena),
                          message->word_offset);

        *ret_job = job;
        return 0;
}

void job_let_go(Job *job) {
        for (size_t i = 0; i < job->n_buffers; ++i)
                if (job->buffers[i].arena)
                        arenas_unuse(job_arena(job->buffers[i].arena));
        for (size_t i = 0; i < job->n_kernels; ++i)
                if (job->kernels[i].module)
                        module_unuse(job->kernels[i].module);
}

Job *job_free(Job *job, Blocks *blocks) {
        if (!job)
                return NULL;

        program_unref(job->program);
        free(job->output);
        free(job->checked.table);
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

/* A job usually has few names and buffers, which need no allocation. */
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

/* A kept program was checked with other buffers. */
static bool job_fits(const Job *job) {
        for (size_t i = 0; i < job->n_buffers; ++i)
                if (job->buffers[i].length < job->program->needs[i])
                        return false;
        return true;
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
        if (job->program && job_fits(job))
                return 0;

        /* If the message does not fit the kept program, a new one is made, which reports why. */
        job->program = program_unref(job->program);
        return job_make_program(job, programs, &input);
}

/* ---- whether it is checked --------------------------------------------------------------- */

/* Between staged buffers of a checked job: an access outside of one must not hit another. */
#define JOB_GAP_BYTES (64u << 10)

static bool job_is_checked(const Job *job) {
        for (size_t i = 0; i < job->n_kernels; ++i)
                if (job->kernels[i].module->image->checkable.address)
                        return true;
        return false;
}

/* ---- its data ---------------------------------------------------------------------------- */

static int job_plan_staging(Job *job, uint64_t gap) {
        int r;

        r = staging_plan(job->buffers, job->n_buffers, gap, job->staging_memory, &job->staging);
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
                if (job->buffers[i].in_device && job->buffers[i].direction == STAGING_OUT &&
                    !job->buffers[i].whole)
                        n_bytes += MIN(job->buffers[i].length, JOB_SMALL_BYTES + 1);
        return n_bytes <= JOB_SMALL_BYTES ? n_bytes : UINT64_MAX;
}

/* The client must not see updated data half done, and kernels rely on the alignment of scratch. */
static bool job_fits_in_place(const Job *job) {
        uint64_t n_host = 0;

        if (job->program->is_checked || job->program->is_fenced || job->program->n_textures > 0 ||
            job->staging.updates || job->n_small > JOB_SMALL_BYTES ||
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

        job->kind.class = stream_class(job->priority);
        if (!launch || job->timed || job->program->is_checked || job->program->has_printf ||
            job->program->n_textures > 0 || job->n_small > JOB_SMALL_BYTES)
                return;
        job->n_rows = twin_rows(launch);
        if (job->n_rows < BATCH_ROWS_MIN)
                return;

        job->kind.function = launch->function;
        memcpy(job->kind.grid, launch->grid, sizeof(job->kind.grid));
        memcpy(job->kind.block, launch->block, sizeof(job->kind.block));
        job->kind.shared_bytes = launch->shared_bytes;
}

/* The range of a fence is from the first to the last: only arenas of this person may be between them. */
static const Arena *job_first_device_arena(const Job *job) {
        for (size_t i = 0; i < job->n_buffers; ++i)
                if (job->buffers[i].in_device)
                        return job_arena(job->buffers[i].arena);
        return NULL;
}

static int job_check_regions(Job *job) {
        const Arena *first = job_first_device_arena(job), *arena;

        for (size_t i = 0; i < job->n_buffers; ++i) {
                arena = job_arena(job->buffers[i].arena);
                if (!job->buffers[i].in_device || arena == first)
                        continue;
                if (!fixed_region_is(first->address) || !fixed_region_is(arena->address) ||
                    fixed_region(first->address) != fixed_region(arena->address))
                        return failure_set(
                                &job->failure, GPUQ__V1__CODE__E_MEMORY,
                                "the job's device memory is not in one range of addresses, as "
                                "fence = yes needs: it is older than this setting, more than "
                                "%llu GiB, or from when all %llu ranges were in use; free it and "
                                "allocate it again",
                                (unsigned long long)(FIXED_REGION_BYTES >> 30),
                                (unsigned long long)FIXED_REGIONS);
        }
        return 0;
}

static int job_check_fence(Job *job) {
        staging_fence(&job->staging, FENCE_MARGIN);
        return job_check_regions(job);
}

int job_check(Job *job, Programs *programs) {
        bool is_checked;
        int r;

        r = job_check_prepared(job);
        if (r)
                return r;
        is_checked = job_is_checked(job);
        if (is_checked && job->n_buffers > CHECK_RANGES_MAX)
                return failure_set(&job->failure, GPUQ__V1__CODE__E_INVALID,
                                   "a checked job has %zu buffers; the limit is %u", job->n_buffers,
                                   CHECK_RANGES_MAX);
        r = job_plan_staging(job, is_checked ? JOB_GAP_BYTES : 0);
        if (r)
                return r;
        r = job_build_program(job, programs);
        if (r)
                return r;
        if (job->program->n_textures > 0 && !is_checked)
                r = job_plan_staging(job, 1); /* for the alignment of textures */
        if (r)
                return r;
        if (job->program->is_fenced)
                r = job_check_fence(job);
        if (r)
                return r;

        if (is_checked)
                job->checked.n_shadow = shadow_bytes(job->buffers, job->n_buffers);
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
        job->program->workspace = job->scratch + job->staging.n_bytes;
}
