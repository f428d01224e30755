/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library operations
 *
 * What a library of the daemon's machine computes. Sizes are checked here, so that the call that made
 * a mistake returns the error, and by the worker again. A job names such an operation like a kernel of the
 * built-in module: for lists, the history and expected times.
 */

#include <string.h>

#include "compose.h"
#include "error.h"
#include "util/fft.h"

/* ---- matrix products ---------------------------------------------------------------- */

static uint64_t library_ld(const gpuq_matrix *matrix, uint64_t rows, uint64_t columns) {
        return matrix->ld ? matrix->ld : matrix->transposed ? rows : columns;
}

static Gpuq__V1__Matrix library_matrix(const gpuq_matrix *matrix, uint64_t rows, uint64_t columns) {
        Gpuq__V1__Matrix message = GPUQ__V1__MATRIX__INIT;

        message.offset = matrix->offset;
        message.ld = library_ld(matrix, rows, columns);
        message.stride = matrix->stride;
        message.transposed = matrix->transposed;
        return message;
}

static Gpuq__V1__Gemm library_gemm(const gpuq_gemm *gemm) {
        Gpuq__V1__Gemm message = GPUQ__V1__GEMM__INIT;

        message.element = (Gpuq__V1__Element)gemm->type;
        message.tf32 = gemm->compute == GPUQ_COMPUTE_TF32;
        message.m = gemm->m;
        message.n = gemm->n;
        message.k = gemm->k;
        message.batch = gemm->batch ? gemm->batch : 1;
        message.alpha = gemm->alpha;
        message.beta = gemm->beta;
        return message;
}

static int library_check_gemm(const gpuq_gemm *gemm, const Gpuq__V1__Gemm *message) {
        const uint64_t sizes[] = {gemm->a.buffer->size, gemm->b.buffer->size, gemm->c.buffer->size};
        char text[256];

        if (gemm->compute > GPUQ_COMPUTE_TF32)
                return error_set(GPUQ_E_INVALID, "gemm: unknown compute mode %d",
                                 (int)gemm->compute);
        if (!gemm_check(message, sizes, text, sizeof(text)))
                return error_set(GPUQ_E_INVALID, "%s", text);
        return 0;
}

/* A result that leaves bytes between rows keeps them, so the job needs the old contents. */
static gpuq_direction library_result_direction(const gpuq_gemm *gemm,
                                               const Gpuq__V1__Gemm *message) {
        uint64_t n_bytes = gemm->m * gemm->n * message->batch * element_bytes(message->element);

        return gemm->beta == 0 && n_bytes == gemm->c.buffer->size ? GPUQ_OUT_WHOLE : GPUQ_INOUT;
}

static int library_name_buffers(gpuq_job *job, const gpuq_gemm *gemm, Gpuq__V1__Gemm *message) {
        int r;

        r = build_buffer(job, gemm->a.buffer, GPUQ_IN, &message->a->buffer);
        if (r == 0)
                r = build_buffer(job, gemm->b.buffer, GPUQ_IN, &message->b->buffer);
        if (r == 0)
                r = build_buffer(job, gemm->c.buffer, library_result_direction(gemm, message),
                                 &message->c->buffer);
        return r;
}

/* Elements in a row, of all matrices of the batch that lie in the same rows. */
static uint64_t library_width(const Gpuq__V1__Gemm *message, const Gpuq__V1__Matrix *described) {
        uint64_t columns = gemm_columns(message, described);

        return described->stride % described->ld
                       ? (message->batch - 1) * described->stride + columns
                       : columns;
}

/* Checked before: all of it lies in the buffer. */
static ApartSide library_gemm_side(const char *name, const gpuq_matrix *matrix,
                                   const Gpuq__V1__Gemm *message,
                                   const Gpuq__V1__Matrix *described) {
        uint64_t width = library_width(message, described);
        unsigned element = element_bytes(message->element);
        ApartSide side = {
                .name = name,
                .buffer = matrix->buffer,
                .offset = described->offset,
                .length = gemm_extent(message, described),
        };

        if (width > described->ld)
                return side;
        side.pitch = described->ld * element;
        side.width = width * element;
        return side;
}

static int library_keep_gemm_apart(gpuq_job *job, const gpuq_gemm *gemm,
                                   const Gpuq__V1__Gemm *message) {
        ApartSide c = library_gemm_side("c", &gemm->c, message, message->c);
        ApartPair pair = {.operation = "gemm",
                          .sides = {c, library_gemm_side("a", &gemm->a, message, message->a)}};
        int r;

        r = apart_add(&job->apart, &pair);
        if (r < 0)
                return r;
        pair.sides[1] = library_gemm_side("b", &gemm->b, message, message->b);
        return apart_add(&job->apart, &pair);
}

static int library_append_gemm(gpuq_job *job, gpuq_module *builtin, const gpuq_gemm *gemm) {
        Gpuq__V1__Operation operation = GPUQ__V1__OPERATION__INIT;
        Gpuq__V1__Gemm message;
        Gpuq__V1__Matrix a, b, c;
        int r;

        if (!gemm || !gemm->a.buffer || !gemm->b.buffer || !gemm->c.buffer)
                return error_set(GPUQ_E_INVALID, "gpuq_job_gemm(): the gemm or a buffer is NULL");

        message = library_gemm(gemm);
        a = library_matrix(&gemm->a, gemm->m, gemm->k);
        b = library_matrix(&gemm->b, gemm->k, gemm->n);
        c = library_matrix(&gemm->c, gemm->m, gemm->n);
        message.a = &a;
        message.b = &b;
        message.c = &c;

        r = library_name_buffers(job, gemm, &message);
        if (r == 0)
                r = library_check_gemm(gemm, &message);
        if (r == 0)
                r = library_keep_gemm_apart(job, gemm, &message);
        if (r == 0)
                r = build_kernel(job, builtin, gemm_name(message.element), true, &message.kernel);
        if (r < 0)
                return r;

        operation.what_case = GPUQ__V1__OPERATION__WHAT_GEMM;
        operation.gemm = &message;
        return build_append(job, &operation);
}

int gpuq_job_gemm(gpuq_job *job, const gpuq_gemm *gemm) {
        gpuq_module *builtin;
        BuildMark mark;
        int r;

        r = compose_enter(job, &builtin);
        if (r < 0)
                return r;

        mark = build_mark(job);
        return build_leave(job, mark, library_append_gemm(job, builtin, gemm));
}

/* ---- Fourier transforms -------------------------------------------------------------- */

static Gpuq__V1__Fft library_fft(const gpuq_fft *fft, uint64_t *lengths) {
        Gpuq__V1__Fft message = GPUQ__V1__FFT__INIT;

        message.element = (Gpuq__V1__Element)fft->type;
        message.form = (Gpuq__V1__Form)fft->form;
        message.inverse = fft->inverse;
        message.n_lengths = fft->rank;
        message.lengths = lengths;
        message.batch = fft->batch ? fft->batch : 1;
        message.from_offset = fft->from_offset;
        message.to_offset = fft->to_offset;
        return message;
}

static int library_keep_fft_apart(gpuq_job *job, const gpuq_fft *fft,
                                  const Gpuq__V1__Fft *message) {
        ApartSide to = {.name = "to",
                        .buffer = fft->to,
                        .offset = message->to_offset,
                        .length = fft_bytes(message, true)};
        ApartSide from = {.name = "from",
                          .buffer = fft->from,
                          .offset = message->from_offset,
                          .length = fft_bytes(message, false)};
        ApartPair pair = {.operation = "fft", .sides = {to, from}};

        return apart_add(&job->apart, &pair);
}

static int library_check_fft(gpuq_job *job, const gpuq_fft *fft, Gpuq__V1__Fft *message) {
        gpuq_direction direction = GPUQ_INOUT;
        char text[256];
        int r;

        r = build_buffer(job, fft->from, GPUQ_IN, &message->from);
        if (r < 0)
                return r;
        message->to = UINT32_MAX; /* not known yet */
        if (!fft_check(message, fft->from->size, UINT64_MAX, text, sizeof(text)))
                return error_set(GPUQ_E_INVALID, "%s", text);

        if (fft_bytes(message, true) == fft->to->size)
                direction = GPUQ_OUT_WHOLE;
        r = build_buffer(job, fft->to, direction, &message->to);
        if (r < 0)
                return r;
        if (!fft_check(message, fft->from->size, fft->to->size, text, sizeof(text)))
                return error_set(GPUQ_E_INVALID, "%s", text);
        return 0;
}

static int library_append_fft(gpuq_job *job, gpuq_module *builtin, const gpuq_fft *fft) {
        Gpuq__V1__Operation operation = GPUQ__V1__OPERATION__INIT;
        uint64_t lengths[FFT_RANK_MAX];
        Gpuq__V1__Fft message;
        int r;

        if (!fft || !fft->from || !fft->to)
                return error_set(GPUQ_E_INVALID, "gpuq_job_fft(): the fft or a buffer is NULL");
        memcpy(lengths, fft->lengths, sizeof(lengths));
        message = library_fft(fft, lengths);
        r = library_check_fft(job, fft, &message);
        if (r == 0)
                r = library_keep_fft_apart(job, fft, &message);
        if (r == 0)
                r = build_kernel(job, builtin, fft_name(message.element), true, &message.kernel);
        if (r < 0)
                return r;

        operation.what_case = GPUQ__V1__OPERATION__WHAT_FFT;
        operation.fft = &message;
        return build_append(job, &operation);
}

int gpuq_job_fft(gpuq_job *job, const gpuq_fft *fft) {
        gpuq_module *builtin;
        BuildMark mark;
        int r;

        r = compose_enter(job, &builtin);
        if (r < 0)
                return r;

        mark = build_mark(job);
        return build_leave(job, mark, library_append_fft(job, builtin, fft));
}
