/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building a job
 *
 * Each operation is packed as it is appended: repeated fields of a message are
 * the concatenation of their elements, so the bytes are the Operations that
 * submit.c sends.
 *
 * A buffer that several operations use is named once in the job, with one
 * direction: how the job as a whole finds and leaves it. What the first
 * operation to use it says decides what is there at the start: after OUT it
 * stays OUT, since later operations see what earlier ones left; after IN, any
 * writing makes it INOUT. Within one operation IN and OUT together are INOUT.
 */

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "proto/pack.h"

#include "build.h"
#include "error.h"
#include "util/grow.h"

#define BUILD_BYTES_MIN 64u /* of packed operations: a launch with few arguments */

/* ---- buffers, kernels, bytes ---------------------------------------------------------- */

static bool build_is_out(gpuq_direction direction) {
        return direction == GPUQ_OUT || direction == GPUQ_OUT_WHOLE;
}

static void build_merge(gpuq_job *job, BufferUse *known, gpuq_direction direction) {
        bool settled = (size_t)(known - job->buffers) < job->n_settled;

        if (known->direction == direction || (settled && build_is_out(known->direction)))
                return;

        known->direction =
                build_is_out(known->direction) && build_is_out(direction) ? GPUQ_OUT : GPUQ_INOUT;
}

/* The newest first, because most operations use what the previous ones used. */
static BufferUse *build_find_buffer(gpuq_job *job, const gpuq_buffer *buffer) {
        for (size_t i = job->n_buffers; i-- > 0;)
                if (buffer_is_same(job->buffers[i].buffer, buffer))
                        return &job->buffers[i];

        return NULL;
}

int build_buffer(gpuq_job *job, gpuq_buffer *buffer, gpuq_direction direction,
                 uint32_t *ret_index) {
        BufferUse *known;

        if (buffer->client != job->client)
                return error_set(GPUQ_E_INVALID, "the buffer belongs to another connection");
        if ((unsigned)direction > GPUQ_OUT_WHOLE)
                return error_set(GPUQ_E_INVALID, "unknown buffer direction %d", (int)direction);

        known = build_find_buffer(job, buffer);
        if (!known) {
                if (grow(&job->buffers, job->n_buffers, sizeof(*job->buffers)) < 0)
                        return error_memory();

                known = &job->buffers[job->n_buffers++];
                *known = (BufferUse){.buffer = buffer_ref(buffer), .direction = direction};
        }

        build_merge(job, known, direction);
        *ret_index = (uint32_t)(known - job->buffers);
        return 0;
}

int build_kernel(gpuq_job *job, gpuq_module *module, const char *name, bool owned,
                 uint32_t *ret_index) {
        char *copy = NULL;

        if (!module || !name || module->client != job->client)
                return error_set(
                        GPUQ_E_INVALID,
                        "the module or name is NULL, or the module belongs to another connection");

        for (size_t i = job->n_kernels; i-- > 0;)
                if (job->kernels[i].module == module && strcmp(job->kernels[i].name, name) == 0) {
                        *ret_index = (uint32_t)i;
                        return 0;
                }

        if (grow(&job->kernels, job->n_kernels, sizeof(*job->kernels)) < 0)
                return error_memory();

        if (owned) {
                copy = strdup(name);
                if (!copy)
                        return error_memory();
        }

        job->kernels[job->n_kernels] = (JobKernel){
                .module = module_ref(module),
                .name = copy ? copy : name,
                .owned = copy,
        };
        *ret_index = (uint32_t)job->n_kernels++;
        return 0;
}

int build_begin(gpuq_job *job, size_t n_bytes, uint8_t **ret_p) {
        size_t n_max = job->n_operations_max;
        uint8_t *p;

        if (n_bytes > n_max - job->n_operations) {
                for (n_max = MAX(n_max, (size_t)BUILD_BYTES_MIN);
                     n_max - job->n_operations < n_bytes;)
                        n_max *= 2;
                p = realloc(job->operations, n_max);
                if (!p)
                        return error_memory();
                job->operations = p;
                job->n_operations_max = n_max;
        }

        *ret_p = job->operations + job->n_operations;
        return 0;
}

void build_end(gpuq_job *job, const uint8_t *end) {
        job->n_operations = (size_t)(end - job->operations);
        assert(job->n_operations <= job->n_operations_max); /* build_begin() reserved enough */
        job->n_settled = job->n_buffers;
}

int build_append(gpuq_job *job, const Gpuq__V1__Operation *operation) {
        size_t length = gpuq__v1__operation__get_packed_size(operation);
        uint8_t *p;
        int r;

        r = build_begin(job, PACK_PREFIX_BYTES + length, &p);
        if (r < 0)
                return r;

        p = pack_varint(pack_tag(p, 1, PACK_LENGTH), length);
        build_end(job, p + gpuq__v1__operation__pack(operation, p));
        return 0;
}

BuildMark build_mark(const gpuq_job *job) {
        return (BuildMark){
                .n_buffers = job->n_buffers,
                .n_kernels = job->n_kernels,
                .n_settled = job->n_settled,
                .n_apart = job->apart.n_pairs,
                .n_operations = job->n_operations,
        };
}

static void build_undo(gpuq_job *job, BuildMark mark) {
        apart_forget(&job->apart, mark.n_apart);
        while (job->n_buffers > mark.n_buffers)
                buffer_unref(job->buffers[--job->n_buffers].buffer);
        while (job->n_kernels > mark.n_kernels) {
                free(job->kernels[--job->n_kernels].owned);
                module_unref(job->kernels[job->n_kernels].module);
        }
        job->n_settled = mark.n_settled;
        job->n_operations = mark.n_operations;
}

int build_leave(gpuq_job *job, BuildMark mark, int r) {
        if (r < 0)
                build_undo(job, mark);

        return client_leave(job->client, r);
}

/* ---- buffers reached by address ---------------------------------------------------------- */

static int build_use(gpuq_job *job, gpuq_buffer *buffer, gpuq_direction direction) {
        uint64_t address;
        uint32_t index;
        int r;

        if (!buffer)
                return error_set(GPUQ_E_INVALID, "the buffer is NULL");
        r = gpuq_buffer_address(buffer, &address);
        if (r < 0)
                return r;
        r = build_buffer(job, buffer, direction, &index);
        if (r < 0)
                return r;

        job->settings.by_address = true;
        return 0;
}

int gpuq_job_use(gpuq_job *job, gpuq_buffer *buffer, gpuq_direction direction) {
        BuildMark mark;
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        mark = build_mark(job);
        return build_leave(job, mark, build_use(job, buffer, direction));
}

/* ---- copies and fills ------------------------------------------------------------------ */

static int build_check_range(const gpuq_buffer *buffer, size_t offset, size_t length) {
        if (!buffer)
                return error_set(GPUQ_E_INVALID, "the buffer is NULL");
        if (offset <= buffer->size && length <= buffer->size - offset)
                return 0;

        return error_set(GPUQ_E_INVALID,
                         "%zu bytes at offset %zu do not fit in a buffer of %" PRIu64 " bytes",
                         length, offset, buffer->size);
}

/* A write of a part keeps the rest, so the job needs the old contents. */
static gpuq_direction build_write_direction(const gpuq_buffer *buffer, size_t length) {
        return buffer && length == buffer->size ? GPUQ_OUT_WHOLE : GPUQ_INOUT;
}

static int build_operand_buffer(gpuq_job *job, gpuq_buffer *buffer, size_t offset, size_t length,
                                gpuq_direction direction, Gpuq__V1__Operand *operand) {
        int r;

        r = build_check_range(buffer, offset, length);
        if (r < 0)
                return r;

        operand->offset = offset;
        operand->what_case = GPUQ__V1__OPERAND__WHAT_BUFFER;
        return build_buffer(job, buffer, direction, &operand->buffer);
}

static int build_operand_variable(gpuq_job *job, gpuq_module *module, const char *name,
                                  size_t offset, Gpuq__V1__Operand *operand) {
        operand->offset = offset;
        operand->what_case = GPUQ__V1__OPERAND__WHAT_VARIABLE;
        return build_kernel(job, module, name, true, &operand->variable);
}

static int build_append_copy(gpuq_job *job, Gpuq__V1__Operand *to, Gpuq__V1__Operand *from,
                             size_t length) {
        Gpuq__V1__Operation operation = GPUQ__V1__OPERATION__INIT;
        Gpuq__V1__Copy copy = GPUQ__V1__COPY__INIT;

        copy.to = to;
        copy.from = from;
        copy.length = length;
        operation.what_case = GPUQ__V1__OPERATION__WHAT_COPY;
        operation.copy = &copy;
        return build_append(job, &operation);
}

static int build_keep_copy_apart(gpuq_job *job, gpuq_buffer *to, size_t to_offset,
                                 gpuq_buffer *from, size_t from_offset, size_t length) {
        ApartSide target = {.name = "to", .buffer = to, .offset = to_offset, .length = length};
        ApartSide source = {
                .name = "from", .buffer = from, .offset = from_offset, .length = length};
        ApartPair pair = {.operation = "copy", .sides = {target, source}};

        return length == 0 ? 0 : apart_add(&job->apart, &pair);
}

int gpuq_job_copy(gpuq_job *job, gpuq_buffer *to, size_t to_offset, gpuq_buffer *from,
                  size_t from_offset, size_t length) {
        Gpuq__V1__Operand target = GPUQ__V1__OPERAND__INIT, source = GPUQ__V1__OPERAND__INIT;
        BuildMark mark;
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        mark = build_mark(job);
        r = build_operand_buffer(job, from, from_offset, length, GPUQ_IN, &source);
        if (r == 0)
                r = build_operand_buffer(job, to, to_offset, length,
                                         build_write_direction(to, length), &target);
        if (r == 0)
                r = build_keep_copy_apart(job, to, to_offset, from, from_offset, length);
        if (r == 0)
                r = build_append_copy(job, &target, &source, length);
        return build_leave(job, mark, r);
}

int gpuq_job_read_variable(gpuq_job *job, gpuq_module *module, const char *name, size_t offset,
                           gpuq_buffer *to, size_t to_offset, size_t length) {
        Gpuq__V1__Operand target = GPUQ__V1__OPERAND__INIT, source = GPUQ__V1__OPERAND__INIT;
        BuildMark mark;
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        mark = build_mark(job);
        r = build_operand_variable(job, module, name, offset, &source);
        if (r == 0)
                r = build_operand_buffer(job, to, to_offset, length,
                                         build_write_direction(to, length), &target);
        if (r == 0)
                r = build_append_copy(job, &target, &source, length);
        return build_leave(job, mark, r);
}

int gpuq_job_write_variable(gpuq_job *job, gpuq_module *module, const char *name, size_t offset,
                            gpuq_buffer *from, size_t from_offset, size_t length) {
        Gpuq__V1__Operand target = GPUQ__V1__OPERAND__INIT, source = GPUQ__V1__OPERAND__INIT;
        BuildMark mark;
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        mark = build_mark(job);
        r = build_operand_buffer(job, from, from_offset, length, GPUQ_IN, &source);
        if (r == 0)
                r = build_operand_variable(job, module, name, offset, &target);
        if (r == 0)
                r = build_append_copy(job, &target, &source, length);
        return build_leave(job, mark, r);
}

static int build_fill(gpuq_job *job, gpuq_buffer *buffer, size_t offset, size_t length,
                      uint32_t value, unsigned width) {
        Gpuq__V1__Operation operation = GPUQ__V1__OPERATION__INIT;
        Gpuq__V1__Fill fill = GPUQ__V1__FILL__INIT;
        int r;

        if ((width != 1 && width != 2 && width != 4) || length % width != 0 || offset % width != 0)
                return error_set(GPUQ_E_INVALID,
                                 "a fill's width must be 1, 2 or 4 bytes and divide its offset and "
                                 "length, but width is %u, offset %zu and length %zu",
                                 width, offset, length);

        r = build_check_range(buffer, offset, length);
        if (r < 0)
                return r;

        r = build_buffer(job, buffer, build_write_direction(buffer, length), &fill.buffer);
        if (r < 0)
                return r;

        fill.offset = offset;
        fill.length = length;
        fill.value = value;
        fill.width = width;
        operation.what_case = GPUQ__V1__OPERATION__WHAT_FILL;
        operation.fill = &fill;
        return build_append(job, &operation);
}

int gpuq_job_fill(gpuq_job *job, gpuq_buffer *buffer, size_t offset, size_t length, uint32_t value,
                  unsigned width) {
        BuildMark mark;
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        mark = build_mark(job);
        return build_leave(job, mark, build_fill(job, buffer, offset, length, value, width));
}
