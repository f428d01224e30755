/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checked.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "compiler/check.h"
#include "worker/shadow.h"

/* A distance that no index explains: the pointer itself is wrong. */
#define CHECKED_FAR_BYTES (UINT64_C(1) << 36)
/* Nothing is mapped there: a null pointer, with an index. */
#define CHECKED_NULL_BYTES (UINT64_C(1) << 20)

/* Read by copies on the stream, so it lives as long as the job. */
struct CheckedTable {
        CheckRecord record;
        size_t n_heads;
        CheckHead *heads;  /* one a step */
        CheckRange *spans; /* what has a shadow */
        size_t n_spans;
        CheckRange ranges[]; /* one a buffer, then the spans, then the heads */
};

static Checkable *step_checkable(const Step *step) {
        return step->kind == STEP_LAUNCH ? step->launch.function->checkable : NULL;
}

bool checked_is_free(const Job *job) {
        for (size_t i = 0; job->program->is_checked && i < job->program->n_steps; ++i) {
                const Checkable *checkable = step_checkable(&job->program->steps[i]);

                if (checkable && checkable->user)
                        return false;
        }
        return true;
}

/* ---- shadows ----------------------------------------------------------------------------- */

/* They are behind all else that is scratch. */
static CUdeviceptr shadows_address(const Job *job) {
        return job->program->workspace + job->program->n_workspace;
}

static CUresult shadows_set(const Context *context, const Job *job, uint64_t begin, uint64_t end,
                            CUstream stream) {
        const CheckedTable *table = job->checked.table;

        return shadow_set(context->cu, table->spans, table->n_spans, begin, end, stream);
}

/* What other buffers hold is written, also where they overlap one that is only written. */
static CUresult shadows_begin(const Context *context, const Job *job, CUstream stream) {
        CUresult result;

        if (job->checked.n_shadow == 0)
                return CUDA_SUCCESS;
        result = context->cu->cuMemsetD8Async(shadows_address(job), 0, job->checked.n_shadow,
                                              stream);
        for (size_t i = 0; i < job->n_buffers && result == CUDA_SUCCESS; ++i) {
                const CheckRange *range = &job->checked.table->ranges[i];

                if (range->shadow <= CHECK_NO_SHADOW)
                        result = shadows_set(context, job, range->begin,
                                             range->begin + range->n_bytes, stream);
        }
        return result;
}

/* What a step writes that is no launch of a checked kernel; of other kernels that is not known. */
static CUresult shadows_written(const Context *context, const Job *job, const Step *step,
                                CUstream stream) {
        const ProgramPlace *to = NULL;
        uint64_t n_bytes = 0;

        switch (step->kind) {
                case STEP_COPY:
                        to = &step->copy.to;
                        n_bytes = step->copy.length;
                        break;
                case STEP_FILL:
                        to = &step->fill.to;
                        n_bytes = (uint64_t)step->fill.n * step->fill.width;
                        break;
                case STEP_GEMM:
                        to = &step->gemm.c;
                        n_bytes = step->gemm.c_extent;
                        break;
                case STEP_FFT:
                        to = &step->fft.to;
                        n_bytes = step->fft.fft.to_bytes;
                        break;
                default:
                        return shadows_set(context, job, 0, UINT64_MAX, stream);
        }
        return shadows_set(context, job, place_address(to), place_address(to) + n_bytes, stream);
}

/* ---- before ------------------------------------------------------------------------------ */

static CheckedTable *table_new(const Job *job) {
        size_t n_steps = job->program->n_steps;
        CheckedTable *table;

        table = calloc(1, sizeof(*table) + 2 * job->n_buffers * sizeof(CheckRange) +
                                  n_steps * sizeof(CheckHead));
        if (!table)
                return NULL;

        table->n_heads = n_steps;
        table->spans = &table->ranges[job->n_buffers];
        table->heads = (CheckHead *)&table->spans[job->n_buffers];
        for (size_t i = 0; i < n_steps; ++i)
                table->heads[i] = (CheckHead){
                        .n_ranges = (uint32_t)job->n_buffers,
                        .launch = (uint32_t)i,
                };
        for (size_t i = 0; i < job->n_buffers; ++i)
                table->ranges[i] = (CheckRange){
                        .begin = job->program->addresses[i],
                        .n_bytes = job->buffers[i].length,
                        .shadow = shadow_of(&job->buffers[i]),
                };
        return table;
}

static int checked_check(const Context *context, CUresult result, const char *what,
                         Failure *failure) {
        return result_check(context->cu, result, GPUQ__V1__CODE__E_LAUNCH, what, failure);
}

static CUresult image_begin(const Context *context, const Job *job, CUdeviceptr to,
                            CUstream stream) {
        CUresult result = context->cu->cuMemsetD8Async(to, 0, sizeof(CheckRecord), stream);

        if (result != CUDA_SUCCESS || job->n_buffers == 0)
                return result;
        return context->cu->cuMemcpyHtoDAsync(to + offsetof(CheckVariable, ranges),
                                              job->checked.table->ranges,
                                              job->n_buffers * sizeof(CheckRange), stream);
}

int checked_begin(const Context *context, Job *job, CUstream stream, Failure *failure) {
        CheckedTable *table = job->checked.table = table_new(job);
        CUresult result;

        if (!table || shadow_place(table->ranges, job->n_buffers, shadows_address(job),
                                   table->spans, &table->n_spans) < 0)
                return failure_set(failure, GPUQ__V1__CODE__E_MEMORY,
                                   "the worker is out of memory");

        result = shadows_begin(context, job, stream);
        for (size_t i = 0; i < job->program->n_steps && result == CUDA_SUCCESS; ++i) {
                Checkable *checkable = step_checkable(&job->program->steps[i]);

                if (!checkable || checkable->user == job)
                        continue;
                checkable->user = job;
                result = image_begin(context, job, checkable->address, stream);
        }
        return checked_check(context, result, "preparing a checked launch", failure);
}

int checked_tell(const Context *context, const Job *job, size_t i, CUstream stream,
                 Failure *failure) {
        const Step *step = &job->program->steps[i];
        const Checkable *checkable = step_checkable(step);

        if (!checkable)
                return checked_check(context, shadows_written(context, job, step, stream),
                                     "preparing a checked launch", failure);
        return checked_check(context,
                             context->cu->cuMemcpyHtoDAsync(
                                     checkable->address + offsetof(CheckVariable, head),
                                     &job->checked.table->heads[i], sizeof(CheckHead), stream),
                             "preparing a checked launch", failure);
}

/* ---- the text ------------------------------------------------------------------------------ */

/* What the compiler wrote about the place in the code. */
typedef struct Site {
        char what[24], place[300], instruction[160];
} Site;

static void site_field(const char **s, char *field, size_t n_field) {
        size_t n = strcspn(*s, "\t\n");

        snprintf(field, n_field, "%.*s", (int)MIN(n, n_field), *s);
        *s += n;
        *s += **s == '\t';
}

static Site site_find(const char *sites, uint32_t number) {
        Site site = {.what = "access", .place = "-"};

        for (; number > 0 && sites; --number) {
                sites = strchr(sites, '\n');
                sites += sites != NULL;
        }
        if (!sites || !*sites)
                return site;
        site_field(&sites, site.what, sizeof(site.what));
        site_field(&sites, site.place, sizeof(site.place));
        site_field(&sites, site.instruction, sizeof(site.instruction));
        return site;
}

/* An argument, or a buffer of the job that is none of this launch. */
typedef struct Nearest {
        size_t buffer;
        unsigned argument; /* from 1 on; 0: none */
        uint64_t distance; /* bytes; UINT64_MAX: there is no buffer */
} Nearest;

static uint64_t range_distance(const CheckRange *range, uint64_t address, uint64_t n_bytes) {
        if (address < range->begin)
                return range->begin - address;
        if (address - range->begin + n_bytes <= range->n_bytes)
                return 0;
        return address - range->begin + n_bytes - range->n_bytes;
}

static void nearest_offer(Nearest *nearest, const Job *job, const CheckRecord *record,
                          size_t buffer, unsigned argument) {
        uint64_t distance = range_distance(&job->checked.table->ranges[buffer], record->address,
                                           record->n_bytes);

        if (distance < nearest->distance)
                *nearest = (Nearest){buffer, argument, distance};
}

static Nearest nearest_find(const Job *job, const ProgramLaunch *launch,
                            const CheckRecord *record) {
        Nearest nearest = {.distance = UINT64_MAX};
        const CUdeviceptr *addresses = job->program->addresses;

        for (size_t i = 0; i < launch->function->n_parameters; ++i) {
                const void *value = launch->values[i];

                if ((uintptr_t)value >= (uintptr_t)addresses &&
                    (uintptr_t)value < (uintptr_t)(addresses + job->n_buffers))
                        nearest_offer(&nearest, job, record,
                                      (size_t)((const CUdeviceptr *)value - addresses),
                                      (unsigned)i + 1);
        }
        for (size_t i = 0; i < job->n_buffers; ++i)
                nearest_offer(&nearest, job, record, i, 0);
        return nearest;
}

static const char *direction_name(StagingDirection direction) {
        static const char *const names[] = {"in", "out", "inout"};

        return names[direction];
}

static void describe_buffer(const Job *job, const Nearest *nearest, char *text, size_t n_text) {
        snprintf(text, n_text, "%s %zu (%s)", nearest->argument ? "argument" : "buffer",
                 nearest->argument ? nearest->argument : nearest->buffer + 1,
                 direction_name(job->buffers[nearest->buffer].direction));
}

/* "element 10000 of argument 3 (out), which has 10000 elements" */
static void describe_index(const Job *job, const Nearest *nearest, const CheckRecord *record,
                           char *text, size_t n_text) {
        const CheckRange *range = &job->checked.table->ranges[nearest->buffer];
        int64_t offset = (int64_t)(record->address - range->begin), n = record->n_bytes;
        bool is_whole = n > 0 && offset % n == 0 && range->n_bytes % (uint64_t)n == 0;
        uint64_t size = is_whole ? range->n_bytes / (uint64_t)n : range->n_bytes;
        const char *unit = is_whole ? "element" : "byte";
        char buffer[64];

        describe_buffer(job, nearest, buffer, sizeof(buffer));
        snprintf(text, n_text, "at %s %lld of %s, which has %llu %s%s", unit,
                 (long long)(is_whole ? offset / n : offset), buffer, (unsigned long long)size,
                 unit, size == 1 ? "" : "s");
}

static void describe_where(const Job *job, const ProgramLaunch *launch, const CheckRecord *record,
                           char *text, size_t n_text) {
        Nearest nearest;

        if (record->why == CHECK_SHARED) {
                snprintf(text, n_text,
                         "at byte %d of the block's shared memory, which has %u bytes",
                         (int32_t)((uint32_t)record->address - record->low),
                         record->high > record->low ? record->high - record->low : 0);
                return;
        }
        nearest = nearest_find(job, launch, record);
        if (nearest.distance >= CHECKED_FAR_BYTES || record->address < CHECKED_NULL_BYTES)
                snprintf(text, n_text, "at an address that is in no buffer of the job");
        else
                describe_index(job, &nearest, record, text, n_text);
}

static void checked_fail(Job *job, const Checkable *checkable, const CheckRecord *record) {
        const Step *step = &job->program->steps[record->launch];
        Site site = site_find(checkable->sites, record->site);
        bool is_read_only = record->why == CHECK_READ_ONLY;
        bool is_unwritten = record->why == CHECK_UNWRITTEN;
        char where[256], operation[32] = "", address[32] = "";

        describe_where(job, &step->launch, record, where, sizeof(where));
        if (record->why != CHECK_SHARED)
                snprintf(address, sizeof(address), "; address 0x%llx",
                         (unsigned long long)record->address);
        if (job->program->n_steps > 1)
                snprintf(operation, sizeof(operation), "operation %u: ", record->launch + 1);
        failure_set(&job->failure, GPUQ__V1__CODE__E_FAULT,
                    "%skernel %s: a%s %s of %u byte%s%s %s%s, by thread (%u,%u,%u) of block "
                    "(%u,%u,%u)%s%s (%s%s)",
                    operation, step->launch.function->name, site.what[0] == 'a' ? "n" : "",
                    site.what, record->n_bytes, record->n_bytes == 1 ? "" : "s",
                    is_unwritten ? " that nobody wrote," : "", where,
                    is_read_only ? " and is only read" : "", record->thread[0], record->thread[1],
                    record->thread[2], record->block[0], record->block[1], record->block[2],
                    strcmp(site.place, "-") == 0 ? "" : ", at ",
                    strcmp(site.place, "-") == 0 ? "" : site.place, site.instruction, address);
}

/* ---- after ------------------------------------------------------------------------------------ */

/* The job's work is done, so this waits for the copy alone: streams for jobs do not wait for this one. */
static CUresult record_read(const Context *context, CUdeviceptr from, CheckRecord *record) {
        CUresult result = context->cu->cuMemcpyDtoHAsync(record, from, sizeof(*record), NULL);

        return result == CUDA_SUCCESS ? context->cu->cuStreamSynchronize(NULL) : result;
}

static bool record_is_set(const Job *job, const CheckRecord *record) {
        return record->taken && record->launch < job->program->n_steps &&
               step_checkable(&job->program->steps[record->launch]);
}

/* The first launch counts: later ones end early. */
static int checkable_end(const Context *context, Job *job, Checkable *checkable) {
        CheckRecord *record = &job->checked.table->record;
        int r;

        checkable->user = NULL;
        r = checked_check(context, record_read(context, checkable->address, record),
                          "reading the record of a checked launch", &job->failure);
        if (r)
                return r == FAILURE_E_FAULT ? r : 0;
        if (record_is_set(job, record) && !failure_is_set(&job->failure))
                checked_fail(job, checkable, record);
        return 0;
}

int checked_end(const Context *context, Job *job) {
        int r;

        if (!job->checked.table)
                return 0;
        for (size_t i = 0; i < job->program->n_steps; ++i) {
                Checkable *checkable = step_checkable(&job->program->steps[i]);

                if (!checkable || checkable->user != job)
                        continue;
                r = checkable_end(context, job, checkable);
                if (r)
                        return r;
        }
        return 0;
}
