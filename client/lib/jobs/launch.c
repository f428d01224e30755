/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches
 *
 * Arguments are checked against what the daemon reported about the kernel, so that the call that
 * made a mistake returns the error. The worker checks them again.
 */

#include <limits.h>
#include <string.h>

#include "proto/pack.h"
#include "util/texture.h"

#include "build.h"
#include "error.h"

/* Upper bounds. They are tight, because an unused rest would double a job's memory. */
#define LAUNCH_NUMBER_BYTES  6u /* of 32 bits, with its tag */
#define LAUNCH_BYTES         (2 * PACK_PREFIX_BYTES + 12 * LAUNCH_NUMBER_BYTES) /* without its arguments */
#define LAUNCH_ARG_BYTES     (PACK_PREFIX_BYTES + 2 * LAUNCH_NUMBER_BYTES) /* without its scalar */
#define LAUNCH_TEXTURE_BYTES (PACK_PREFIX_BYTES + 11 * PACK_FIELD_BYTES)

#define LAUNCH_LOCAL_ALIGN 16u /* of the largest type of OpenCL that PTX loads at once */

static const char *launch_kind_name(unsigned kind) {
        static const char *const names[] = {
                [GPUQ_BYTES] = "bytes",
                [GPUQ_POINTER] = "a buffer",
                [GPUQ_I32] = "a 32-bit integer",
                [GPUQ_I64] = "a 64-bit integer",
                [GPUQ_F32] = "a float",
                [GPUQ_F64] = "a double",
                [GPUQ_I8] = "an 8-bit integer",
                [GPUQ_I16] = "a 16-bit integer",
                [GPUQ_WORD64] = "a buffer or a 64-bit integer",
                [GPUQ_LOCAL] = "local memory",
                [GPUQ_NULL] = "a null pointer",
                [GPUQ_TEXTURE] = "a texture",
        };

        return kind < ARRAY_SIZE(names) ? names[kind] : "of an unknown kind";
}

static bool launch_kind_fits(unsigned wanted, unsigned given) {
        if (wanted == GPUQ_LOCAL || given == GPUQ_LOCAL)
                return wanted == given;
        if (given == GPUQ_TEXTURE)
                return wanted == GPUQ_WORD64 || wanted == GPUQ_I64 || wanted == GPUQ_BYTES;
        if (wanted == given || wanted == GPUQ_BYTES)
                return true;
        if (given == GPUQ_BYTES)
                return wanted != GPUQ_POINTER;

        if (given == GPUQ_NULL)
                return wanted == GPUQ_POINTER || wanted == GPUQ_WORD64;

        return wanted == GPUQ_WORD64 && (given == GPUQ_POINTER || given == GPUQ_I64);
}

/* ---- textures ---------------------------------------------------------------- */

static TextureShape launch_texture(const gpuq_arg *arg) {
        const gpuq_texture_desc *desc = arg->value.texture;
        TextureShape shape = {
                .width = desc->width,
                .height = desc->height,
                .pitch = desc->pitch,
                .format = desc->format,
                .channels = desc->channels,
                .address = {desc->address[0], desc->address[1]},
                .linear = desc->linear,
                .normalized = desc->normalized,
                .to_float = desc->to_float,
        };

        if (shape.height && !shape.pitch && shape.format <= TEXTURE_F32 && shape.format)
                shape.pitch = shape.width * texture_texel_bytes(&shape);
        return shape;
}

static int launch_check_texture(const Gpuq__V1__KernelInfo *kernel, size_t i, const gpuq_arg *arg) {
        TextureShape shape;
        char text[256];

        if (!arg->buffer || !arg->value.texture)
                return error_set(GPUQ_E_INVALID,
                                 "%s: argument %zu is a texture without a buffer or description",
                                 kernel->name, i + 1);
        shape = launch_texture(arg);
        if (!texture_check(&shape, arg->buffer->size, text, sizeof(text)))
                return error_set(GPUQ_E_INVALID, "%s: argument %zu %s", kernel->name, i + 1, text);
        return 0;
}

/* ---- checks ------------------------------------------------------------------ */

static int launch_check_arg(const Gpuq__V1__KernelInfo *kernel, size_t i, const gpuq_arg *arg) {
        const Gpuq__V1__Parameter *wanted = kernel->parameters[i];

        if (arg->kind == GPUQ_POINTER && !arg->buffer)
                return error_set(
                        GPUQ_E_INVALID,
                        "%s: argument %zu is a NULL buffer; gpuq_null() passes a null pointer",
                        kernel->name, i + 1);

        if (arg->size != wanted->size)
                return error_set(GPUQ_E_INVALID,
                                 "%s: argument %zu must have %u bytes (%s), not %zu (%s)",
                                 kernel->name, i + 1, wanted->size, launch_kind_name(wanted->kind),
                                 arg->size, launch_kind_name(arg->kind));

        if ((kernel->kinds_known || arg->kind == GPUQ_LOCAL) &&
            !launch_kind_fits(wanted->kind, arg->kind))
                return error_set(GPUQ_E_INVALID, "%s: argument %zu must be %s, not %s",
                                 kernel->name, i + 1, launch_kind_name(wanted->kind),
                                 launch_kind_name(arg->kind));
        return arg->kind == GPUQ_TEXTURE ? launch_check_texture(kernel, i, arg) : 0;
}

/* If a length was passed as bytes, only the worker checks it. */
static bool launch_measure_need(const Need *need, const gpuq_arg *args, uint64_t *ret_n_bytes) {
        uint64_t n_bytes = need_begin(need);

        for (unsigned i = 0; i < need->n_lengths; i++) {
                const gpuq_arg *length = &args[need->lengths[i]];

                if (length->kind != GPUQ_I64)
                        return false;
                n_bytes = need_multiply(n_bytes, length->value.u64);
        }
        *ret_n_bytes = n_bytes;
        return true;
}

static int launch_check_need(const Gpuq__V1__KernelInfo *kernel, const Need *needs, size_t i,
                             const gpuq_arg *args) {
        uint64_t n_bytes, n_has = args[i].buffer ? args[i].buffer->size : 0;
        char text[128];

        if (needs[i].element == 0 || !launch_measure_need(&needs[i], args, &n_bytes) ||
            n_bytes <= n_has)
                return 0;

        need_describe(&needs[i], n_bytes, n_has, text, sizeof(text));
        return error_set(GPUQ_E_INVALID, "%s: argument %zu %s", kernel->name, i + 1, text);
}

static int launch_check_args(const Gpuq__V1__KernelInfo *kernel, const Need *needs,
                             const gpuq_arg *args, size_t n_args) {
        int r;

        if (n_args != kernel->n_parameters)
                return error_set(GPUQ_E_INVALID, "%s takes %zu arguments, not %zu", kernel->name,
                                 kernel->n_parameters, n_args);

        for (size_t i = 0; i < n_args; i++) {
                r = launch_check_arg(kernel, i, &args[i]);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < n_args; i++) {
                r = launch_check_need(kernel, needs, i, args);
                if (r < 0)
                        return r;
        }
        return 0;
}

static size_t launch_measure(const gpuq_arg *args, size_t n_args) {
        size_t n = LAUNCH_BYTES;

        for (size_t i = 0; i < n_args; i++)
                n += LAUNCH_ARG_BYTES + (args[i].kind == GPUQ_TEXTURE ? LAUNCH_TEXTURE_BYTES
                                         : args[i].buffer             ? 0
                                                                      : args[i].size);
        return n;
}

/* ---- local memory ---------------------------------------------------------- */

static uint64_t local_align(uint64_t at) {
        return (at + LAUNCH_LOCAL_ALIGN - 1) / LAUNCH_LOCAL_ALIGN * LAUNCH_LOCAL_ALIGN;
}

/* Where the shared memory of the caller and of the first @n arguments ends. */
static uint64_t local_end(const gpuq_config *config, const gpuq_arg *args, size_t n) {
        uint64_t at = config->shared_bytes;

        for (size_t i = 0; i < n; i++)
                if (args[i].kind == GPUQ_LOCAL)
                        at = local_align(at) + args[i].value.u64;
        return at;
}

static int launch_check_local(const gpuq_config *config, const gpuq_arg *args, size_t n_args) {
        for (size_t i = 0; i < n_args; i++)
                if (args[i].kind == GPUQ_LOCAL &&
                    (args[i].value.u64 > UINT_MAX || local_end(config, args, i + 1) > UINT_MAX))
                        return error_set(GPUQ_E_INVALID,
                                         "argument %zu asks for %llu bytes of local memory, which "
                                         "no device has",
                                         i + 1, (unsigned long long)args[i].value.u64);
        return 0;
}

/* ---- packing --------------------------------------------------------------- */

/* The scalar is written even if it is 0 or empty, because it selects the member of a oneof. */
static uint8_t *launch_pack_scalar(uint8_t *p, const gpuq_arg *arg) {
        const void *data = arg->kind == GPUQ_BYTES ? arg->value.bytes : &arg->value;

        p = pack_tag(p, GPUQ__V1__ARGUMENT__VALUE_SCALAR, PACK_LENGTH);
        p = pack_varint(p, arg->size);
        if (arg->size > 0)
                memcpy(p, data, arg->size);
        return pack_number(p + arg->size, 3,
                           arg->kind == GPUQ_NULL ? GPUQ__V1__KIND__POINTER : (uint32_t)arg->kind);
}

static uint8_t *launch_pack_buffer(uint8_t *p, uint32_t buffer) {
        p = pack_tag(p, GPUQ__V1__ARGUMENT__VALUE_BUFFER, PACK_VARINT);
        return pack_number(pack_varint(p, buffer), 3, GPUQ__V1__KIND__POINTER);
}

static uint8_t *launch_pack_texture(uint8_t *p, const gpuq_arg *arg, uint32_t buffer) {
        TextureShape shape = launch_texture(arg);
        uint8_t *begin = pack_open(p, GPUQ__V1__ARGUMENT__VALUE_TEXTURE);

        p = pack_number(begin, 1, buffer);
        p = pack_number(p, 2, shape.format);
        p = pack_number(p, 3, shape.channels);
        p = pack_number(p, 4, shape.width);
        p = pack_number(p, 5, shape.height);
        p = pack_number(p, 6, shape.pitch);
        p = pack_number(p, 7, shape.address[0]);
        p = pack_number(p, 8, shape.address[1]);
        p = pack_number(p, 9, shape.linear);
        p = pack_number(p, 10, shape.normalized);
        return pack_close(begin, pack_number(p, 11, shape.to_float));
}

/* @p: where the arguments are written; afterwards their end. */
static int launch_pack_args(gpuq_job *job, const gpuq_config *config, const gpuq_arg *args,
                            size_t n_args, uint8_t **p) {
        uint8_t *begin, *end = *p;
        uint32_t buffer;
        int r;

        for (size_t i = 0; i < n_args; i++) {
                gpuq_arg arg = args[i];

                begin = pack_open(end, 9);
                if (arg.buffer) {
                        r = build_buffer(job, arg.buffer, arg.direction, &buffer);
                        if (r < 0)
                                return r;
                        end = pack_close(begin, arg.kind == GPUQ_TEXTURE
                                                        ? launch_pack_texture(begin, &arg, buffer)
                                                        : launch_pack_buffer(begin, buffer));
                        continue;
                }
                if (arg.kind == GPUQ_LOCAL)
                        arg.value.u64 = local_align(local_end(config, args, i));
                end = pack_close(begin, launch_pack_scalar(begin, &arg));
        }
        *p = end;
        return 0;
}

static uint8_t *launch_pack_three(uint8_t *p, unsigned field, const unsigned *values) {
        for (unsigned i = 0; i < 3; i++)
                p = pack_number(p, field + i, values[i]);
        return p;
}

/* Fields are written in the order of their numbers. protobuf-c took four times as long. */
static int launch_pack(gpuq_job *job, uint32_t kernel, const gpuq_config *config,
                       const gpuq_arg *args, size_t n_args) {
        uint8_t *p, *operation, *launch;
        int r;

        r = build_begin(job, launch_measure(args, n_args), &p);
        if (r < 0)
                return r;

        operation = pack_open(p, 1);
        launch = pack_open(operation, GPUQ__V1__OPERATION__WHAT_LAUNCH);
        p = pack_number(launch, 1, kernel);
        p = launch_pack_three(p, 2, config->grid);
        p = launch_pack_three(p, 5, config->block);
        p = pack_number(p, 8, (uint32_t)local_end(config, args, n_args));
        r = launch_pack_args(job, config, args, n_args, &p);
        if (r < 0)
                return r;

        p = pack_number(p, 10, config->cooperative);
        p = launch_pack_three(p, 11, config->cluster);
        build_end(job, pack_close(operation, pack_close(launch, p)));
        return 0;
}

int build_launch(gpuq_job *job, gpuq_module *module, const char *name, const gpuq_config *config,
                 const gpuq_arg *args, size_t n_args) {
        const Gpuq__V1__KernelInfo *kernel;
        const Need *needs;
        uint32_t index;
        int r;

        if (!module || !name || !config || (!args && n_args > 0))
                return error_set(GPUQ_E_INVALID,
                                 "gpuq_job_launch(): module, kernel, config or arguments is NULL");

        r = module_find(module, name, &kernel, &needs);
        if (r < 0)
                return r;

        r = launch_check_args(kernel, needs, args, n_args);
        if (r < 0)
                return r;

        r = launch_check_local(config, args, n_args);
        if (r < 0)
                return r;

        r = build_kernel(job, module, kernel->name, false, &index);
        if (r < 0)
                return r;

        return launch_pack(job, index, config, args, n_args);
}

int gpuq_job_launch(gpuq_job *job, gpuq_module *module, const char *kernel,
                    const gpuq_config *config, const gpuq_arg *args, size_t n_args) {
        BuildMark mark;
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        mark = build_mark(job);
        return build_leave(job, mark, build_launch(job, module, kernel, config, args, n_args));
}
