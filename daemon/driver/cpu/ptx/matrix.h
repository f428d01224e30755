/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_MATRIX_H
#define GPUQ_CPU_PTX_MATRIX_H

/*
 * Matrices that the lanes of a warp hold together
 *
 * mma multiplies A (M x K) by B (K x 8) and adds C (M x 8). Which lane holds which element is in
 * the PTX ISA, "Matrix Fragments for mma". All shapes follow one rule. A register holds n elements
 * (32 bits, or one of 64). With g = lane / 4 and i = lane % 4, element j of register r is
 *
 *     of A:  row g + 8 (r % 2), column n i + j + 4 n (r / 2)    (8 rows: row g, column n i + j + 4 n r)
 *     of B:  row n i + j + 4 n r, column g
 *     of C:  row g + 8 (e / 2), column 2 i + e % 2, with e the number of the lane's element
 *
 * Sums are made in double and rounded once; on a GPU the order and the rounding are not specified.
 */

#define PTX_MMA_ROWS 16
#define PTX_MMA_DEEP 32
#define PTX_MMA_WIDE 8

typedef enum PtxMmaType {
        PTX_MMA_F16,
        PTX_MMA_BF16,
        PTX_MMA_TF32,
        PTX_MMA_F32,
        PTX_MMA_F64,
        PTX_MMA_U8,
        PTX_MMA_S8,
        PTX_MMA_S32,
} PtxMmaType;

typedef struct PtxMma {
        uint32_t n_rows, n_wide, n_deep;
        PtxMmaType a, b, c, d;
        uint32_t saturates;
} PtxMma;

typedef struct PtxMmaCall {
        GpuqCpuCall head;
        const PtxMma *mma;
        uint64_t a[8], b[8], c[8], d[8];
} PtxMmaCall;

PTX_INLINE unsigned ptx_mma_in_register(PtxMmaType type) {
        switch (type) {
                case PTX_MMA_F16:
                case PTX_MMA_BF16:
                        return 2;
                case PTX_MMA_U8:
                case PTX_MMA_S8:
                        return 4;
                default:
                        return 1;
        }
}

PTX_INLINE double ptx_mma_element(PtxMmaType type, uint64_t bits, unsigned j) {
        switch (type) {
                case PTX_MMA_F16:
                        return ptx_f16((uint16_t)(bits >> 16 * j));
                case PTX_MMA_BF16:
                        return ptx_bf16((uint16_t)(bits >> 16 * j));
                case PTX_MMA_TF32:
                        return ptx_f32((uint32_t)bits & 0xffffe000);
                case PTX_MMA_F32:
                        return ptx_f32((uint32_t)bits);
                case PTX_MMA_F64:
                        return ptx_f64(bits);
                case PTX_MMA_U8:
                        return (uint8_t)(bits >> 8 * j);
                case PTX_MMA_S8:
                        return (int8_t)(bits >> 8 * j);
                default:
                        return (int32_t)bits;
        }
}

PTX_INLINE uint32_t ptx_mma_integer(double x, uint32_t saturates) {
        if (!saturates)
                return (uint32_t)(int64_t)x;
        return (uint32_t)(int32_t)(x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x);
}

/* Element e of a lane, into its registers, which are zeros. */
PTX_INLINE void ptx_mma_put(const PtxMma *mma, uint64_t *d, unsigned e, double x) {
        if (mma->d == PTX_MMA_F16)
                d[e / 2] |= (uint64_t)ptx_of_f16(x) << 16 * (e % 2);
        else if (mma->d == PTX_MMA_F32)
                d[e] = ptx_of_f32((float)x);
        else if (mma->d == PTX_MMA_F64)
                d[e] = ptx_of_f64(x);
        else
                d[e] = ptx_mma_integer(x, mma->saturates);
}

PTX_INLINE double ptx_mma_c(const PtxMmaCall *call, unsigned e) {
        unsigned n = ptx_mma_in_register(call->mma->c);

        return ptx_mma_element(call->mma->c, call->c[e / n], e % n);
}

/* A lane that is not there has zeros. */
PTX_CALL void ptx_mma_run(GpuqCpuCall *const calls[32]) {
        double a[PTX_MMA_ROWS][PTX_MMA_DEEP] = {}, b[PTX_MMA_DEEP][PTX_MMA_WIDE] = {};

        for (unsigned lane = 0; lane < 32; lane++) {
                const PtxMmaCall *call = (const PtxMmaCall *)calls[lane];
                const PtxMma *mma = call ? call->mma : NULL;
                unsigned g = lane / 4, i = lane % 4, n_a, n_b;

                if (!call)
                        continue;
                n_a = ptx_mma_in_register(mma->a), n_b = ptx_mma_in_register(mma->b);
                for (unsigned r = 0; r < mma->n_rows / 8 * (mma->n_deep / (4 * n_a)); r++)
                        for (unsigned j = 0; j < n_a; j++) {
                                unsigned row = mma->n_rows == 8 ? g : g + 8 * (r % 2);
                                unsigned step = mma->n_rows == 8 ? r : r / 2;

                                a[row][n_a * i + j + 4 * n_a * step] =
                                        ptx_mma_element(mma->a, call->a[r], j);
                        }
                for (unsigned r = 0; r < mma->n_deep / (4 * n_b); r++)
                        for (unsigned j = 0; j < n_b; j++)
                                b[n_b * i + j + 4 * n_b * r][g] =
                                        ptx_mma_element(mma->b, call->b[r], j);
        }
        for (unsigned lane = 0; lane < 32; lane++) {
                PtxMmaCall *call = (PtxMmaCall *)calls[lane];

                for (unsigned e = 0; call && e < call->mma->n_rows / 4; e++) {
                        unsigned row = lane / 4 + 8 * (e / 2), column = 2 * (lane % 4) + e % 2;
                        double sum = ptx_mma_c(call, e);

                        for (unsigned k = 0; k < call->mma->n_deep; k++)
                                sum = fma(a[row][k], b[k][column], sum);
                        ptx_mma_put(call->mma, call->d, e, sum);
                }
        }
}

PTX_INLINE void ptx_mma(PtxMmaCall *call) {
        call->head.call = ptx_mma_run;
        (void)ptx_warp(GPUQ_CPU_WARP_CALL, UINT32_MAX, (uint64_t)call, 0);
}

/* ---- wmma ------------------------------------------------------------------------------ */

/* Lane l holds elements l n to l n + n - 1 of a matrix, counted by rows. */

typedef struct PtxTile {
        uint32_t n_rows, n_columns;
        PtxMmaType type;
        uint32_t by_columns; /* in memory */
} PtxTile;

PTX_INLINE uint32_t ptx_mma_bytes(PtxMmaType type) {
        return type == PTX_MMA_F64 ? 8 : 4 / ptx_mma_in_register(type);
}

/* Element j of the lane. */
PTX_INLINE uint64_t ptx_tile_place(const PtxThread *t, const PtxTile *tile, uint64_t at,
                                   uint32_t stride, unsigned j) {
        unsigned n = tile->n_rows * tile->n_columns / 32, number = t->linear % 32 * n + j;
        uint64_t row = number / tile->n_columns, column = number % tile->n_columns;

        return at + ptx_mma_bytes(tile->type) *
                            (tile->by_columns ? column * stride + row : row * stride + column);
}

PTX_CALL void ptx_wmma_load(const PtxThread *t, const PtxTile *tile, uint64_t at, uint32_t stride,
                            uint64_t *x) {
        unsigned bytes = ptx_mma_bytes(tile->type), n_in = ptx_mma_in_register(tile->type);

        for (unsigned j = 0; j < tile->n_rows * tile->n_columns / 32; j++) {
                uint64_t bits = 0;

                memcpy(&bits, (const void *)ptx_tile_place(t, tile, at, stride, j), bytes);
                x[j / n_in] |= bits << 8 * bytes * (j % n_in);
        }
}

PTX_CALL void ptx_wmma_store(const PtxThread *t, const PtxTile *tile, uint64_t at, uint32_t stride,
                             const uint64_t *x) {
        unsigned bytes = ptx_mma_bytes(tile->type), n_in = ptx_mma_in_register(tile->type);

        for (unsigned j = 0; j < tile->n_rows * tile->n_columns / 32; j++) {
                uint64_t bits = x[j / n_in] >> 8 * bytes * (j % n_in);

                memcpy((void *)ptx_tile_place(t, tile, at, stride, j), &bits, bytes);
        }
}

PTX_INLINE void ptx_wmma_take(double *to, unsigned n, unsigned lane, PtxMmaType type,
                              const uint64_t *x) {
        unsigned n_in = ptx_mma_in_register(type);

        for (unsigned j = 0; j < n / 32; j++)
                to[lane * (n / 32) + j] = ptx_mma_element(type, x[j / n_in], j % n_in);
}

PTX_CALL void ptx_wmma_run(GpuqCpuCall *const calls[32]) {
        double a[32 * 16] = {}, b[32 * 16] = {}; /* of the largest shapes */

        for (unsigned lane = 0; lane < 32; lane++) {
                const PtxMmaCall *call = (const PtxMmaCall *)calls[lane];

                if (!call)
                        continue;
                ptx_wmma_take(a, call->mma->n_rows * call->mma->n_deep, lane, call->mma->a,
                              call->a);
                ptx_wmma_take(b, call->mma->n_deep * call->mma->n_wide, lane, call->mma->b,
                              call->b);
        }
        for (unsigned lane = 0; lane < 32; lane++) {
                PtxMmaCall *call = (PtxMmaCall *)calls[lane];
                unsigned n = call ? call->mma->n_rows * call->mma->n_wide / 32 : 0;

                for (unsigned e = 0; e < n; e++) {
                        unsigned number = lane * n + e, wide = call->mma->n_wide;
                        double sum = ptx_mma_c(call, e);

                        for (unsigned k = 0; k < call->mma->n_deep; k++)
                                sum = fma(a[number / wide * call->mma->n_deep + k],
                                          b[k * wide + number % wide], sum);
                        ptx_mma_put(call->mma, call->d, e, sum);
                }
        }
}

PTX_INLINE void ptx_wmma(PtxMmaCall *call) {
        call->head.call = ptx_wmma_run;
        (void)ptx_warp(GPUQ_CPU_WARP_CALL, UINT32_MAX, (uint64_t)call, 0);
}

/* ---- 8 x 8 matrices of 16 bits an element ---------------------------------------------- */

/* Lane l has row l % 8 of matrix l / 8, or elements 2 i and 2 i + 1 of row g of each. */
typedef struct PtxTilesCall {
        GpuqCpuCall head;
        uint32_t n; /* matrices */
        uint32_t is_transposed;
        uint16_t row[8];
        uint32_t parts[4];
} PtxTilesCall;

PTX_CALL void ptx_tiles_deal(GpuqCpuCall *const calls[32]) {
        for (unsigned lane = 0; lane < 32; lane++) {
                PtxTilesCall *to = (PtxTilesCall *)calls[lane];

                for (unsigned m = 0; to && m < to->n; m++)
                        for (unsigned h = 0; h < 2; h++) {
                                unsigned g = lane / 4, k = 2 * (lane % 4) + h;
                                const PtxTilesCall *from = (const PtxTilesCall *)
                                        calls[8 * m + (to->is_transposed ? k : g)];
                                uint16_t x = from ? from->row[to->is_transposed ? g : k] : 0;

                                to->parts[m] |= (uint32_t)x << 16 * h;
                        }
        }
}

PTX_CALL void ptx_tiles_gather(GpuqCpuCall *const calls[32]) {
        for (unsigned lane = 0; lane < 32; lane++) {
                PtxTilesCall *to = (PtxTilesCall *)calls[lane];

                for (unsigned k = 0; to && lane / 8 < to->n && k < 8; k++) {
                        unsigned r = to->is_transposed ? k : lane % 8;
                        unsigned c = to->is_transposed ? lane % 8 : k;
                        const PtxTilesCall *from = (const PtxTilesCall *)calls[4 * r + c / 2];

                        to->row[k] = from ? (uint16_t)(from->parts[lane / 8] >> 16 * (c % 2)) : 0;
                }
        }
}

PTX_INLINE void ptx_ldmatrix(const PtxThread *t, PtxTilesCall *call, uint64_t at) {
        call->head.call = ptx_tiles_deal;
        if (t->linear % 32 < 8 * call->n)
                memcpy(call->row, (const void *)at, sizeof(call->row));
        (void)ptx_warp(GPUQ_CPU_WARP_CALL, UINT32_MAX, (uint64_t)call, 0);
}

PTX_INLINE void ptx_stmatrix(const PtxThread *t, PtxTilesCall *call, uint64_t at) {
        call->head.call = ptx_tiles_gather;
        (void)ptx_warp(GPUQ_CPU_WARP_CALL, UINT32_MAX, (uint64_t)call, 0);
        if (t->linear % 32 < 8 * call->n)
                memcpy((void *)at, call->row, sizeof(call->row));
}

PTX_CALL void ptx_tiles_transpose(GpuqCpuCall *const calls[32]) {
        uint32_t parts[32] = {};

        for (unsigned lane = 0; lane < 32; lane++)
                for (unsigned h = 0; calls[lane] && h < 2; h++) {
                        unsigned r = lane / 4, c = 2 * (lane % 4) + h;
                        const PtxTilesCall *from = (const PtxTilesCall *)calls[4 * c + r / 2];
                        uint32_t x = from ? from->parts[0] >> 16 * (r % 2) & 0xffff : 0;

                        parts[lane] |= x << 16 * h;
                }
        for (unsigned lane = 0; lane < 32; lane++)
                if (calls[lane])
                        ((PtxTilesCall *)calls[lane])->parts[0] = parts[lane];
}

PTX_INLINE uint32_t ptx_movmatrix(uint32_t a) {
        PtxTilesCall call = {.head = {ptx_tiles_transpose}, .n = 1, .parts = {a}};

        (void)ptx_warp(GPUQ_CPU_WARP_CALL, UINT32_MAX, (uint64_t)&call, 0);
        return call.parts[0];
}

#endif
