/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program
 *
 * Two passes over the message: the first adds up the memory needed, the second checks and fills one
 * allocation.
 */
#include "worker/program.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "worker/argument.h"
#include "worker/geometry.h"
#include "worker/texture.h"
#include "worker/library.h"
#include "worker/wide.h"

typedef struct ProgramRoom {
        size_t n_steps;
        size_t n_values;    /* arguments */
        size_t n_scalars;   /* slots of 16 bytes */
        size_t n_variables; /* addresses */
        size_t n_textures;
} ProgramRoom;

/* Of gpuq's own kernel for matrix products. */
#define PROGRAM_GEMM_SLOTS                                                                         \
        ((sizeof(LibraryArguments) + sizeof(ArgumentSlot) - 1) / sizeof(ArgumentSlot))

typedef struct ProgramBuilder {
        const ProgramInput *input;
        const Context *context;
        Program *program;
        void **values;          /* next free */
        ArgumentSlot *scalars;  /* next free */
        CUdeviceptr *variables; /* next free */
        Failure *failure;
} ProgramBuilder;

static ProgramRoom program_measure(const Gpuq__V1__Operations *operations) {
        ProgramRoom room = {0};

        for (size_t i = 0; i < operations->n_operations; ++i) {
                const Gpuq__V1__Operation *operation = operations->operations[i];

                ++room.n_steps;
                if (operation->what_case == GPUQ__V1__OPERATION__WHAT_COPY)
                        room.n_variables += 2;
                if (operation->what_case == GPUQ__V1__OPERATION__WHAT_GEMM) {
                        room.n_values += LIBRARY_VALUES;
                        room.n_scalars += PROGRAM_GEMM_SLOTS;
                }
                if (operation->what_case != GPUQ__V1__OPERATION__WHAT_LAUNCH)
                        continue;
                room.n_values += operation->launch->n_arguments +
                                 1; /* a wide form, or a fence, takes one more */
                for (size_t k = 0; k < operation->launch->n_arguments; ++k) {
                        room.n_scalars += argument_slots(operation->launch->arguments[k]);
                        room.n_textures += operation->launch->arguments[k]->value_case ==
                                           GPUQ__V1__ARGUMENT__VALUE_TEXTURE;
                }
        }
        return room;
}

static size_t program_round(size_t n) {
        return (n + sizeof(ArgumentSlot) - 1) / sizeof(ArgumentSlot) * sizeof(ArgumentSlot);
}

/* One block: the program, slots, addresses, needs, steps, values, textures. */
static int program_allocate(ProgramBuilder *builder, const ProgramRoom *room) {
        size_t n_head = program_round(sizeof(Program));
        size_t n_scalars = room->n_scalars * sizeof(ArgumentSlot);
        size_t n_addresses = builder->input->n_buffers + room->n_variables;
        uint8_t *block;

        block = calloc(1, n_head + n_scalars + n_addresses * sizeof(CUdeviceptr) +
                                  builder->input->n_buffers * sizeof(uint64_t) +
                                  room->n_steps * sizeof(Step) + room->n_values * sizeof(void *) +
                                  room->n_textures * sizeof(ProgramTexture));
        if (!block)
                return -ENOMEM;

        builder->program = (Program *)block;
        builder->program->n_refs = 1;
        builder->program->n_buffers = builder->input->n_buffers;
        builder->program->launches_only = true;
        builder->scalars = (ArgumentSlot *)(block + n_head);
        builder->program->addresses = (CUdeviceptr *)(block + n_head + n_scalars);
        builder->variables = builder->program->addresses + builder->input->n_buffers;
        builder->program->needs = (uint64_t *)(builder->program->addresses + n_addresses);
        builder->program->steps = (Step *)(builder->program->needs + builder->input->n_buffers);
        builder->values = (void **)(builder->program->steps + room->n_steps);
        builder->program->textures = (ProgramTexture *)(builder->values + room->n_values);
        return 0;
}

static int program_kernel(const ProgramBuilder *builder, uint32_t index, const char *what,
                          const ProgramKernel **ret_kernel) {
        if (index >= builder->input->n_kernels)
                return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID,
                                   "%s %u does not exist: the job has %zu", what, index + 1,
                                   builder->input->n_kernels);
        *ret_kernel = &builder->input->kernels[index];
        return 0;
}

static int program_buffer(const ProgramBuilder *builder, uint32_t index, const char *what,
                          const ProgramBuffer **ret_buffer) {
        if (index >= builder->input->n_buffers)
                return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID,
                                   "%s: buffer %u does not exist: the job has %zu", what, index + 1,
                                   builder->input->n_buffers);
        *ret_buffer = &builder->input->buffers[index];
        return 0;
}

/* The extent counts as a need: other jobs may run the program with smaller buffers. */
static int program_texture(ProgramBuilder *builder, const ProgramLaunch *launch, unsigned i,
                           const Gpuq__V1__Texture *message, const char *what) {
        TextureShape shape = argument_texture(message);
        const ProgramBuffer *buffer = NULL;
        ProgramTexture *texture;
        char text[256];
        int r;

        r = program_buffer(builder, message->buffer, what, &buffer);
        if (r)
                return r;
        if (!texture_check(&shape, buffer->length, text, sizeof(text)) ||
            !texture_check_limits(&shape, &builder->context->limits, text, sizeof(text)))
                return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID, "%s %s", what,
                                   text);

        texture = &builder->program->textures[builder->program->n_textures++];
        *texture = (ProgramTexture){.shape = shape, .buffer = message->buffer};
        builder->program->needs[message->buffer] =
                MAX(builder->program->needs[message->buffer], texture_bytes(&shape));
        launch->values[i] = &texture->object;
        return 0;
}

static int program_argument(ProgramBuilder *builder, const ProgramLaunch *launch, unsigned i,
                            const Gpuq__V1__Argument *argument) {
        const ProgramBuffer *buffer = NULL;
        char what[64];
        int r;

        r = argument_check(launch->function, i, argument, builder->failure);
        if (r)
                return r;

        snprintf(what, sizeof(what), "argument %u of %.40s", i + 1, launch->function->name);
        if (argument->value_case == GPUQ__V1__ARGUMENT__VALUE_TEXTURE)
                return program_texture(builder, launch, i, argument->texture, what);
        if (argument->value_case == GPUQ__V1__ARGUMENT__VALUE_BUFFER) {
                r = program_buffer(builder, argument->buffer, what, &buffer);
                if (r)
                        return r;
                launch->values[i] = &builder->program->addresses[argument->buffer];
                return 0;
        }

        launch->values[i] = builder->scalars;
        memcpy(builder->scalars, argument->scalar.data, argument->scalar.len);
        builder->scalars += argument_slots(argument);
        return 0;
}

static uint64_t launch_need(const ProgramLaunch *launch, const Need *need) {
        uint64_t n_bytes = need_begin(need);

        for (unsigned i = 0; i < need->n_lengths; ++i)
                n_bytes = need_multiply(n_bytes, *(uint64_t *)launch->values[need->lengths[i]]);
        return n_bytes;
}

/* How many bytes there are behind a pointer: none behind a null pointer. */
static uint64_t program_reach(const ProgramBuilder *builder, const Gpuq__V1__Argument *argument) {
        if (argument->value_case != GPUQ__V1__ARGUMENT__VALUE_BUFFER)
                return 0;
        return builder->input->buffers[argument->buffer].length;
}

/* Kept in the program: other jobs may run it with smaller buffers. */
static int program_need(const ProgramBuilder *builder, const ProgramLaunch *launch, unsigned i,
                        const Gpuq__V1__Argument *argument) {
        const Need *need = &launch->function->needs[i];
        uint64_t n_bytes, *most, n_has;
        char text[128];

        if (need->element == 0)
                return 0;

        n_bytes = launch_need(launch, need);
        n_has = program_reach(builder, argument);
        if (n_bytes > n_has) {
                need_describe(need, n_bytes, n_has, text, sizeof(text));
                return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID,
                                   "argument %u of %s %s", i + 1, launch->function->name, text);
        }

        if (argument->value_case == GPUQ__V1__ARGUMENT__VALUE_BUFFER) {
                most = &builder->program->needs[argument->buffer];
                *most = MAX(*most, n_bytes);
        }
        return 0;
}

static int program_needs(const ProgramBuilder *builder, const ProgramLaunch *launch,
                         const Gpuq__V1__Launch *message) {
        int r = 0;

        for (unsigned i = 0; launch->function->needs && i < message->n_arguments && r == 0; ++i)
                r = program_need(builder, launch, i, message->arguments[i]);
        return r;
}

static int program_arguments(ProgramBuilder *builder, ProgramLaunch *launch,
                             const Gpuq__V1__Launch *message) {
        const Function *function = launch->function;
        int r;

        if (message->n_arguments != function->n_parameters)
                return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID,
                                   "kernel %s takes %zu argument%s, not %zu", function->name,
                                   function->n_parameters, function->n_parameters == 1 ? "" : "s",
                                   message->n_arguments);

        launch->values = builder->values;
        builder->values += message->n_arguments + 1;
        if (function->is_fenced)
                launch->values[message->n_arguments] = &builder->program->fence;
        for (unsigned i = 0; i < message->n_arguments; ++i) {
                r = program_argument(builder, launch, i, message->arguments[i]);
                if (r)
                        return r;
        }
        return program_needs(builder, launch, message);
}

static int program_launch(ProgramBuilder *builder, const Gpuq__V1__Launch *message) {
        Step *step = &builder->program->steps[builder->program->n_steps];
        ProgramLaunch *launch = &step->launch;
        const ProgramKernel *kernel = NULL;
        int r;

        r = program_kernel(builder, message->kernel, "kernel", &kernel);
        if (r)
                return r;

        *step = (Step){.kind = STEP_LAUNCH};
        r = image_function(kernel->image, kernel->name, &launch->function, builder->failure);
        if (r)
                return r;
        r = program_arguments(builder, launch, message);
        if (r)
                return r;
        r = geometry_check(launch, message, builder->context, builder->failure);
        if (r)
                return r;

        builder->program->is_wide |= wide_apply(launch, builder->context, &builder->program->wide);
        wide_apply_host(launch, builder->context);
        builder->program->has_printf |= kernel->image->has_printf;
        builder->program->is_fenced |= launch->function->is_fenced;
        builder->program->is_checked |= kernel->image->checkable.address != 0;
        ++builder->program->n_steps;
        return 0;
}

static int program_range(const ProgramBuilder *builder, const char *what, uint64_t offset,
                         uint64_t length, uint64_t size) {
        if (offset <= size && length <= size - offset)
                return 0;
        return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID,
                           "%s: %llu bytes at offset %llu are outside of its %llu bytes", what,
                           (unsigned long long)length, (unsigned long long)offset,
                           (unsigned long long)size);
}

static int program_variable(ProgramBuilder *builder, const Gpuq__V1__Operand *operand,
                            uint64_t length, bool write, const char *what,
                            ProgramPlace *ret_place) {
        const ProgramKernel *kernel = NULL;
        Variable variable;
        char text[128];
        int r;

        r = program_kernel(builder, operand->variable, "variable", &kernel);
        if (r)
                return r;
        r = image_variable(kernel->image, kernel->name, write, &variable, builder->failure);
        if (r)
                return r;
        snprintf(text, sizeof(text), "%s variable %.64s", what, kernel->name);
        r = program_range(builder, text, operand->offset, length, variable.size);
        if (r)
                return r;

        *builder->variables = variable.address;
        *ret_place = (ProgramPlace){.base = builder->variables++, .offset = operand->offset};
        return 0;
}

static int program_slice(ProgramBuilder *builder, uint32_t index, uint64_t offset, uint64_t length,
                         bool write, const char *what, ProgramPlace *ret_place) {
        const ProgramBuffer *buffer = NULL;
        char text[64];
        int r;

        r = program_buffer(builder, index, what, &buffer);
        if (r)
                return r;
        snprintf(text, sizeof(text), "%s buffer %u", what, index + 1);
        r = program_range(builder, text, offset, length, buffer->length);
        if (r)
                return r;
        if (write && !buffer->writable)
                return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID,
                                   "%s, which the job declared as in (read-only)", text);

        *ret_place = (ProgramPlace){.base = &builder->program->addresses[index], .offset = offset};
        return 0;
}

static int program_operand(ProgramBuilder *builder, const Gpuq__V1__Operand *operand,
                           uint64_t length, bool write, ProgramPlace *ret_place) {
        const char *what = write ? "copy to" : "copy from";

        if (operand && operand->what_case == GPUQ__V1__OPERAND__WHAT_BUFFER)
                return program_slice(builder, operand->buffer, operand->offset, length, write, what,
                                     ret_place);
        if (operand && operand->what_case == GPUQ__V1__OPERAND__WHAT_VARIABLE)
                return program_variable(builder, operand, length, write, what, ret_place);
        return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID,
                           "%s neither a buffer nor a variable", what);
}

static int program_copy(ProgramBuilder *builder, const Gpuq__V1__Copy *message) {
        Step *step = &builder->program->steps[builder->program->n_steps];
        ProgramCopy *copy = &step->copy;
        int r;

        *step = (Step){.kind = STEP_COPY, .copy.length = message->length};
        r = program_operand(builder, message->from, message->length, false, &copy->from);
        if (r)
                return r;
        r = program_operand(builder, message->to, message->length, true, &copy->to);
        if (r)
                return r;
        if (copy->length == 0)
                return 0;
        if (copy->to.base == copy->from.base &&
            copy->to.offset < copy->from.offset + copy->length &&
            copy->from.offset < copy->to.offset + copy->length)
                return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID,
                                   "copy within buffer %u: the ranges overlap",
                                   message->to->buffer + 1);

        ++builder->program->n_steps;
        return 0;
}

static int program_fill(ProgramBuilder *builder, const Gpuq__V1__Fill *message, const char *what) {
        Step *step = &builder->program->steps[builder->program->n_steps];
        unsigned width = message->width;
        int r;

        if (width != 1 && width != 2 && width != 4)
                return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID,
                                   "fill: the value has %u bytes; it must have 1, 2 or 4", width);
        if (message->length % width != 0)
                return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID,
                                   "fill: %llu bytes are not a multiple of the value's %u bytes",
                                   (unsigned long long)message->length, width);

        *step = (Step){.kind = STEP_FILL};
        r = program_slice(builder, message->buffer, message->offset, message->length, true, what,
                          &step->fill.to);
        if (r)
                return r;
        if (message->offset % width != 0 ||
            builder->input->buffers[message->buffer].alignment % width != 0)
                return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID,
                                   "%s buffer %u: offset %llu is not aligned to %u bytes", what,
                                   message->buffer + 1, (unsigned long long)message->offset, width);
        if (message->length == 0)
                return 0;

        step->fill.n = message->length / width;
        step->fill.width = width;
        step->fill.value =
                width == 4 ? message->value : message->value & ((UINT32_C(1) << (8 * width)) - 1);
        ++builder->program->n_steps;
        return 0;
}

/* The device's word does not change while the program is kept, so it becomes a fill. */
static int program_occupancy(ProgramBuilder *builder, const Gpuq__V1__Occupancy *message) {
        Gpuq__V1__Launch limits = GPUQ__V1__LAUNCH__INIT;
        Gpuq__V1__Fill fill = GPUQ__V1__FILL__INIT;
        const ProgramKernel *kernel = NULL;
        ProgramLaunch launch = {0};
        int r;

        r = program_kernel(builder, message->kernel, "kernel", &kernel);
        if (r)
                return r;
        r = image_function(kernel->image, kernel->name, &launch.function, builder->failure);
        if (r)
                return r;
        limits.grid_x = 1;
        limits.block_x = message->threads;
        limits.shared_bytes = message->shared_bytes;
        r = geometry_check(&launch, &limits, builder->context, builder->failure);
        if (r)
                return r;
        r = function_resident_blocks(launch.function, builder->context->cu, 1, message->threads,
                                     message->shared_bytes, &fill.value, builder->failure);
        if (r)
                return r;

        fill.buffer = message->buffer;
        fill.offset = message->offset;
        fill.length = fill.width = sizeof(fill.value);
        return program_fill(builder, &fill, "occupancy to");
}

/* ---- library operations ------------------------------------------------------------------ */

/* The lowest bit of all that its address is made of. */
static uint32_t program_alignment(const ProgramBuffer *buffer, uint64_t offset) {
        uint64_t bits = buffer->alignment | offset | GEMM_ALIGNMENT;

        return (uint32_t)(bits & -bits);
}

static int program_matrix(ProgramBuilder *builder, const Gpuq__V1__Gemm *message,
                          const Gpuq__V1__Matrix *from, const char *what, GemmMatrix *matrix,
                          ProgramPlace *ret_place) {
        const ProgramBuffer *buffer = &builder->input->buffers[from->buffer];

        *matrix = (GemmMatrix){
                .ld = from->ld,
                .stride = from->stride,
                .transposed = from->transposed,
                .alignment = program_alignment(buffer, from->offset),
        };
        if (matrix->alignment < element_bytes(message->element))
                return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID,
                                   "%s buffer %u is not aligned to its elements' %u bytes", what,
                                   from->buffer + 1, element_bytes(message->element));
        return program_slice(builder, from->buffer, from->offset, gemm_extent(message, from),
                             from == message->c, what, ret_place);
}

static int program_matrices(ProgramBuilder *builder, const Gpuq__V1__Gemm *message,
                            ProgramGemm *step) {
        int r;

        step->gemm = (Gemm){
                .element = message->element,
                .tf32 = message->tf32,
                .m = message->m,
                .n = message->n,
                .k = message->k,
                .batch = message->batch,
                .alpha = message->alpha,
                .beta = message->beta,
        };
        r = program_matrix(builder, message, message->a, "gemm: a,", &step->gemm.a, &step->a);
        if (r)
                return r;
        r = program_matrix(builder, message, message->b, "gemm: b,", &step->gemm.b, &step->b);
        if (r)
                return r;
        step->c_extent = gemm_extent(message, message->c);
        return program_matrix(builder, message, message->c, "gemm: c,", &step->gemm.c, &step->c);
}

static int program_check_gemm(const ProgramBuilder *builder, const Gpuq__V1__Gemm *message) {
        const Gpuq__V1__Matrix *matrices[] = {message->a, message->b, message->c};
        const ProgramBuffer *buffer = NULL;
        uint64_t sizes[ARRAY_SIZE(matrices)] = {0};
        char text[256];
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(matrices); ++i) {
                if (!matrices[i])
                        continue;
                r = program_buffer(builder, matrices[i]->buffer, "gemm", &buffer);
                if (r)
                        return r;
                sizes[i] = buffer->length;
        }
        if (gemm_check(message, sizes, text, sizeof(text)))
                return 0;
        return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID, "%s", text);
}

static int program_gemm_launch(ProgramBuilder *builder, const ProgramGemm *from, Step *step) {
        ProgramLaunch launch = {.values = builder->values};

        if (!builder->context->library ||
            library_launch_gemm(builder->context->library, from,
                                (LibraryArguments *)builder->scalars, &launch))
                return failure_set(builder->failure, GPUQ__V1__CODE__E_NOT_FOUND,
                                   "gemm: the worker has neither a library for it nor gpuq's "
                                   "built-in kernels");

        builder->values += LIBRARY_VALUES;
        builder->scalars += PROGRAM_GEMM_SLOTS;
        *step = (Step){.kind = STEP_LAUNCH, .launch = launch};
        return 0;
}

static void program_need_library(Program *program, const LibraryPlan *plan) {
        program->n_workspace = MAX(program->n_workspace, plan->n_workspace);
        program->has_new_library |= plan->is_new;
}

static int program_gemm(ProgramBuilder *builder, const Gpuq__V1__Gemm *message) {
        Program *program = builder->program;
        Step *step = &program->steps[program->n_steps];
        ProgramGemm gemm;
        LibraryPlan plan;
        int r;

        r = program_check_gemm(builder, message);
        if (r)
                return r;
        r = program_matrices(builder, message, &gemm);
        if (r)
                return r;

        ++program->n_steps;
        r = builder->context->library
                    ? library_plan_gemm(builder->context->library, &gemm.gemm, &plan)
                    : LIBRARY_E_NONE;
        if (r == LIBRARY_E_BUSY)
                return FAILURE_E_WAIT;
        if (r)
                return program_gemm_launch(builder, &gemm, step);
        *step = (Step){.kind = STEP_GEMM, .gemm = gemm};
        program_need_library(program, &plan);
        return 0;
}

static void program_describe_fft(const ProgramBuilder *builder, const Gpuq__V1__Fft *message,
                                 Fft *fft) {
        const ProgramBuffer *buffers = builder->input->buffers;

        *fft = (Fft){
                .element = message->element,
                .form = message->form,
                .inverse = message->inverse,
                .rank = (uint32_t)message->n_lengths,
                .batch = message->batch,
                .from_bytes = fft_bytes(message, false),
                .to_bytes = fft_bytes(message, true),
                .is_aligned = program_alignment(&buffers[message->from], message->from_offset) >=
                                      FFT_ALIGNMENT &&
                              program_alignment(&buffers[message->to], message->to_offset) >=
                                      FFT_ALIGNMENT,
        };
        memcpy(fft->lengths, message->lengths, message->n_lengths * sizeof(*fft->lengths));
}

static int program_fft_side(ProgramBuilder *builder, const Gpuq__V1__Fft *message, bool is_result,
                            ProgramPlace *ret_place) {
        uint32_t index = is_result ? message->to : message->from;
        uint64_t offset = is_result ? message->to_offset : message->from_offset;
        const char *what = is_result ? "fft: to," : "fft: from,";
        unsigned n_complex = 2 * element_bytes(message->element);

        if (program_alignment(&builder->input->buffers[index], offset) < n_complex)
                return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID,
                                   "%s buffer %u is not aligned to a complex number's %u bytes",
                                   what, index + 1, n_complex);
        return program_slice(builder, index, offset, fft_bytes(message, is_result), is_result, what,
                             ret_place);
}

static int program_check_fft(const ProgramBuilder *builder, const Gpuq__V1__Fft *message) {
        const ProgramBuffer *from = NULL, *to = NULL;
        char text[256];
        int r;

        r = program_buffer(builder, message->from, "fft", &from);
        if (r)
                return r;
        r = program_buffer(builder, message->to, "fft", &to);
        if (r)
                return r;
        if (fft_check(message, from->length, to->length, text, sizeof(text)))
                return 0;
        return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID, "%s", text);
}

static int program_fft(ProgramBuilder *builder, const Gpuq__V1__Fft *message) {
        Program *program = builder->program;
        ProgramFft *step = &program->steps[program->n_steps].fft;
        LibraryPlan plan;
        int r;

        r = program_check_fft(builder, message);
        if (r)
                return r;
        program->steps[program->n_steps] = (Step){.kind = STEP_FFT};
        program_describe_fft(builder, message, &step->fft);
        r = program_fft_side(builder, message, false, &step->from);
        if (r)
                return r;
        r = program_fft_side(builder, message, true, &step->to);
        if (r)
                return r;
        r = builder->context->library
                    ? library_plan_fft(builder->context->library, &step->fft, &plan)
                    : LIBRARY_E_NONE;
        if (r == LIBRARY_E_BUSY)
                return FAILURE_E_WAIT;
        if (r)
                return failure_set(builder->failure, GPUQ__V1__CODE__E_NOT_FOUND,
                                   "fft: the daemon's machine has no library for it, or not for "
                                   "this size: cuFFT on a GPU, FFTW 3 with the CPU driver; see "
                                   "libraries in gpuqd.conf");

        ++program->n_steps;
        program_need_library(program, &plan);
        program->has_fft = true;
        return 0;
}

static int program_operation(ProgramBuilder *builder, const Gpuq__V1__Operation *operation) {
        if (operation->what_case != GPUQ__V1__OPERATION__WHAT_LAUNCH)
                builder->program->launches_only = false;

        switch (operation->what_case) {
                case GPUQ__V1__OPERATION__WHAT_LAUNCH:
                        return program_launch(builder, operation->launch);
                case GPUQ__V1__OPERATION__WHAT_COPY:
                        return program_copy(builder, operation->copy);
                case GPUQ__V1__OPERATION__WHAT_FILL:
                        return program_fill(builder, operation->fill, "fill of");
                case GPUQ__V1__OPERATION__WHAT_OCCUPANCY:
                        return program_occupancy(builder, operation->occupancy);
                case GPUQ__V1__OPERATION__WHAT_GEMM:
                        return program_gemm(builder, operation->gemm);
                case GPUQ__V1__OPERATION__WHAT_FFT:
                        return program_fft(builder, operation->fft);
                default:
                        return failure_set(builder->failure, GPUQ__V1__CODE__E_INVALID,
                                           "the operation is neither a launch, a copy, a fill, a "
                                           "library operation nor a question for the occupancy");
        }
}

/* "operation 3: …" where there are several. */
static void program_say_where(Failure *failure, size_t i, size_t n) {
        if (n > 1 && failure->text)
                failure_set(failure, failure->code, "operation %zu: %s", i + 1, failure->text);
}

static int program_build(ProgramBuilder *builder, const Gpuq__V1__Operations *operations) {
        ProgramRoom room = program_measure(operations);
        int r;

        r = program_allocate(builder, &room);
        if (r < 0)
                return r;

        for (size_t i = 0; i < operations->n_operations; ++i) {
                r = program_operation(builder, operations->operations[i]);
                if (r == FAILURE_E_SET)
                        program_say_where(builder->failure, i, operations->n_operations);
                if (r)
                        return r;
        }
        return 0;
}

/* Too large for the allocator, but perhaps not for the machine. */
static Gpuq__V1__Operations *program_decode(const ProgramInput *input,
                                            ProtobufCAllocator **allocator) {
        Gpuq__V1__Operations *operations;

        *allocator = input->allocator;
        operations =
                gpuq__v1__operations__unpack(*allocator, input->n_operations, input->operations);
        if (operations || !*allocator)
                return operations;

        *allocator = NULL;
        return gpuq__v1__operations__unpack(NULL, input->n_operations, input->operations);
}

int program_new(const ProgramInput *input, const Context *context, Program **ret_program,
                Failure *failure) {
        ProgramBuilder builder = {.input = input, .context = context, .failure = failure};
        Gpuq__V1__Operations *operations;
        ProtobufCAllocator *allocator;
        int r;

        operations = program_decode(input, &allocator);
        if (!operations)
                return failure_set(failure, GPUQ__V1__CODE__E_INVALID,
                                   "the job's operations are not a packed Operations message");

        r = program_build(&builder, operations);
        gpuq__v1__operations__free_unpacked(operations, allocator);
        if (r) {
                program_unref(builder.program);
                return r;
        }

        *ret_program = builder.program;
        return 0;
}

Program *program_ref(Program *program) {
        ++program->n_refs;
        return program;
}

Program *program_unref(Program *program) {
        if (program && --program->n_refs == 0)
                free(program);
        return NULL;
}

const ProgramLaunch *program_only_launch(const Program *program) {
        if (program->n_steps != 1 || program->steps[0].kind != STEP_LAUNCH)
                return NULL;
        return &program->steps[0].launch;
}
