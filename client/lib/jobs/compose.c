/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compose
 */

#include "compose.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "parts.h"

static const struct {
        unsigned n_bytes;
        const char *suffix;
} types[] = {
        [GPUQ_TYPE_F32] = {4, "f32"}, [GPUQ_TYPE_F64] = {8, "f64"}, [GPUQ_TYPE_I32] = {4, "u32"},
        [GPUQ_TYPE_U32] = {4, "u32"}, [GPUQ_TYPE_I64] = {8, "u64"}, [GPUQ_TYPE_U64] = {8, "u64"},
};

unsigned compose_element(gpuq_type type) {
        return (unsigned)type < ARRAY_SIZE(types) ? types[type].n_bytes : 0;
}

const char *compose_suffix(gpuq_type type) {
        return types[type].suffix;
}

/* ---- begin and end ------------------------------------------------------------------ */

/* Others may have had the lock meanwhile. */
static int compose_recheck(const gpuq_job *job) {
        return job->state == GPUQ_BUILDING
                       ? 0
                       : error_set(GPUQ_E_INVALID, "the job was already submitted");
}

int compose_enter(gpuq_job *job, gpuq_module **ret_builtin) {
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;
        r = module_find_builtin(job->client, ret_builtin);
        if (r == 0)
                r = compose_recheck(job);
        return r < 0 ? client_leave(job->client, r) : 0;
}

int compose_begin(Composition *composition, const char *name, gpuq_job *job) {
        int r;

        *composition = (Composition){.name = name, .job = job};
        r = compose_enter(job, &composition->builtin);
        if (r < 0)
                return r;

        composition->mark = build_mark(job);
        return 0;
}

int compose_end(Composition *composition, int r) {
        while (composition->n_workspaces > 0)
                buffer_unref(composition->workspaces[--composition->n_workspaces]);
        r = build_leave(composition->job, composition->mark, r);
        return r < 0 ? r : composition->n_launches;
}

/* ---- checks ------------------------------------------------------------------------- */

int compose_check(const Composition *composition, const char *what, const gpuq_buffer *buffer,
                  uint64_t n, unsigned element, unsigned align) {
        if (!buffer)
                return error_set(GPUQ_E_INVALID, "%s: %s is NULL", composition->name, what);
        if (n == 0)
                return error_set(GPUQ_E_INVALID, "%s: n is 0; it must be at least 1",
                                 composition->name);
        if (n > buffer->size / element)
                return error_set(GPUQ_E_INVALID,
                                 "%s: %" PRIu64 " elements of %u bytes do not fit in %s, whose "
                                 "buffer has %" PRIu64 " bytes",
                                 composition->name, n, element, what, buffer->size);
        if (buffer->offset % align)
                return error_set(GPUQ_E_INVALID, "%s: %s does not begin at a multiple of %u bytes",
                                 composition->name, what, align);
        return 0;
}

ApartSide compose_side(const char *name, gpuq_buffer *buffer, uint64_t n_bytes) {
        return (ApartSide){.name = name, .buffer = buffer, .length = n_bytes};
}

int compose_apart(Composition *composition, ApartSide a, ApartSide b, bool may_be_same) {
        gpuq_job *job = composition->job;
        ApartPair pair = {
                .operation = composition->name, .sides = {a, b}, .may_be_same = may_be_same};

        if (a.buffer->client != job->client || b.buffer->client != job->client)
                return error_set(GPUQ_E_INVALID, "%s: a buffer belongs to another connection",
                                 composition->name);
        return apart_add(&job->apart, &pair);
}

/* ---- buffers and launches ------------------------------------------------------------ */

/* A result that leaves bytes of the buffer keeps them, so the job needs the old contents. */
gpuq_arg compose_result(gpuq_buffer *buffer, uint64_t n_bytes) {
        return n_bytes == buffer->size ? gpuq_out_whole(buffer) : gpuq_inout(buffer);
}

int compose_name(Composition *composition, gpuq_arg arg) {
        uint32_t index;

        return build_buffer(composition->job, arg.buffer, arg.direction, &index);
}

/* Else the caller would wonder what asked for memory. */
static int workspace_failed(const Composition *composition, uint64_t n_bytes, int r) {
        _cleanup_(freep) char *why = strdup(gpuq_error_text());

        if (!why)
                return r;
        return error_set(r, "%s: no memory for its workspace of %" PRIu64 " bytes: %s",
                         composition->name, n_bytes, why);
}

int compose_workspace(Composition *composition, const gpuq_buffer *like, uint64_t n_bytes,
                      gpuq_buffer **ret_buffer) {
        gpuq_buffer *workspace;
        int r;

        r = buffer_take(composition->job->client, n_bytes, like->arena->device, false, &workspace);
        if (r < 0)
                return workspace_failed(composition, n_bytes, r);
        composition->workspaces[composition->n_workspaces++] = *ret_buffer = workspace;
        composition->mark = build_mark(composition->job);
        return compose_recheck(composition->job);
}

int compose_launch(Composition *composition, const char *kernel, uint64_t blocks,
                   const gpuq_arg *args, size_t n_args) {
        gpuq_config config = {.grid = {(unsigned)blocks}, .block = {PARTS_THREADS}};
        int r;

        r = build_launch(composition->job, composition->builtin, kernel, &config, args, n_args);
        if (r == 0)
                composition->n_launches++;
        return r;
}
