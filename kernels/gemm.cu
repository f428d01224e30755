/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel gemm
 * @text   C = alpha A B + beta C: A is m × k, B is k × n, C is m × n, row-major; C is not read if beta is 0
 * @args   in:A:real:m,k in:B:real:k,n inout:C:real:m,n u64:m u64:n u64:k real:alpha real:beta
 * @launch any grid and block; fastest: grid ceil(n / 32),ceil(m / 32), block 256
 */
#include "common.cuh"

/*
 * A block of 256 threads computes C in tiles of 16 × 16 pieces, one piece a thread. The sums of a piece
 * stay in registers. In each step along k the block copies a strip of A and a strip of B to shared
 * memory, and each thread multiplies its rows by its columns. In a block of any other size each
 * thread computes pieces directly from global memory.
 *
 * Every element is one chain of fma() over k in ascending order, so its bits depend neither on the
 * geometry nor on the size of the tiles.
 */
#define GEMM_SIDE    16
#define GEMM_THREADS (GEMM_SIDE * GEMM_SIDE)

/* With fewer large tiles than this, small tiles keep more of a GPU busy. */
#define GEMM_LARGE_TILES 96

template <class T> struct Gemm {
        const T *A, *B;
        T *C;
        u64 m, n, k;
        T alpha, beta;
};

template <class T>
static __device__ __forceinline__ void gemm_put(const Gemm<T> &g, u64 row, u64 column, T sum) {
        T *c = &g.C[row * g.n + column];

        if (row >= g.m || column >= g.n)
                return;
        *c = g.beta == 0 ? g.alpha * sum : fma(g.beta, *c, g.alpha * sum);
}

/* ---- tiles -------------------------------------------------------------------------- */

/* Tiles whose pieces have HIGH × WIDE elements. A step is DEEP elements along k. */
template <class T, unsigned HIGH, unsigned WIDE, unsigned DEEP> struct GemmTiles {
        enum : unsigned {
                ROWS = HIGH * GEMM_SIDE,
                COLUMNS = WIDE * GEMM_SIDE,
                N_A = ROWS * DEEP / GEMM_THREADS, /* elements that thread t copies in a step */
                N_B = COLUMNS * DEEP / GEMM_THREADS,
                APART_A = GEMM_THREADS / DEEP, /* rows between them */
                APART_B = GEMM_THREADS / COLUMNS,
                /* columns side by side, read by one instruction */
                VECTOR = 16 / sizeof(T) < WIDE ? 16 / sizeof(T) : WIDE,
        };

        /* Two halves: a thread fills one while slower threads still multiply the other. */
        struct Shared {
                /* transposed, and padded against bank conflicts */
                alignas(16) T a[2][DEEP][ROWS + HIGH];
                alignas(16) T b[2][DEEP][COLUMNS];
        };

        /* Where a thread reads what it copies in the next step. */
        struct Source {
                const T *a, *b;
                unsigned rows, columns; /* of the tile that are there */
                u64 left;               /* of k */
        };
        struct Copied {
                T a[N_A], b[N_B];
        };

        static __device__ __forceinline__ Source source(const Gemm<T> &g, unsigned t, u64 row,
                                                        u64 column) {
                return {g.A + (row + t / DEEP) * g.k + t % DEEP,
                        g.B + t / COLUMNS * g.n + column + t % COLUMNS,
                        (unsigned)(g.m - row < ROWS ? g.m - row : ROWS),
                        (unsigned)(g.n - column < COLUMNS ? g.n - column : COLUMNS), g.k};
        }

        /* Reads the next step. Beyond k it is -0 times 0, which leaves every sum as it is, also a sum of -0. */
        static __device__ __forceinline__ void fetch(const Gemm<T> &g, unsigned t, Source &from,
                                                     Copied &to) {
                unsigned deep = from.left < DEEP ? from.left : DEEP;

#pragma unroll
                for (unsigned i = 0; i < N_A; i++)
                        to.a[i] = t % DEEP < deep && t / DEEP + i * APART_A < from.rows
                                          ? from.a[i * APART_A * g.k]
                                          : -(T)0;
#pragma unroll
                for (unsigned i = 0; i < N_B; i++)
                        to.b[i] = t / COLUMNS + i * APART_B < deep && t % COLUMNS < from.columns
                                          ? from.b[i * APART_B * g.n]
                                          : 0;
                from.a += DEEP;
                from.b += DEEP * g.n;
        }

        static __device__ __forceinline__ void share(unsigned t, const Copied &from, Shared &shared,
                                                     unsigned half) {
#pragma unroll
                for (unsigned i = 0; i < N_A; i++)
                        shared.a[half][t % DEEP][t / DEEP + i * APART_A] = from.a[i];
#pragma unroll
                for (unsigned i = 0; i < N_B; i++)
                        shared.b[half][t / COLUMNS + i * APART_B][t % COLUMNS] = from.b[i];
        }

        /* A half warp has 2 rows of pieces and 8 columns, so each of its reads is one transaction. */
        static __device__ __forceinline__ unsigned row_of(unsigned t, unsigned i) {
                return (t % 2 + t / 16 % 2 * 2 + t / 64 * 4) * HIGH + i;
        }

        static __device__ __forceinline__ unsigned column_of(unsigned t, unsigned j) {
                return (t / 2 % 8 + t / 32 % 2 * 8) * VECTOR + j / VECTOR * VECTOR * GEMM_SIDE +
                       j % VECTOR;
        }

        static __device__ __forceinline__ void multiply(unsigned t, const Shared &shared,
                                                        unsigned half, T (&sums)[HIGH][WIDE]) {
#pragma unroll
                for (unsigned p = 0; p < DEEP; p++) {
                        T a[HIGH], b[WIDE];

#pragma unroll
                        for (unsigned i = 0; i < HIGH; i++)
                                a[i] = shared.a[half][p][row_of(t, i)];
#pragma unroll
                        for (unsigned j = 0; j < WIDE; j++)
                                b[j] = shared.b[half][p][column_of(t, j)];
#pragma unroll
                        for (unsigned i = 0; i < HIGH; i++)
#pragma unroll
                                for (unsigned j = 0; j < WIDE; j++)
                                        sums[i][j] = fma(a[i], b[j], sums[i][j]);
                }
        }

        static __device__ __forceinline__ void compute(const Gemm<T> &g, unsigned t, Shared &shared,
                                                       unsigned &half, u64 row, u64 column) {
                Source from = source(g, t, row, column);
                Copied next;
                T sums[HIGH][WIDE] = {};

                fetch(g, t, from, next);
                while (from.left > 0) {
                        share(t, next, shared, half);
                        __syncthreads();
                        from.left = from.left < DEEP ? 0 : from.left - DEEP;
                        fetch(g, t, from, next);
                        multiply(t, shared, half, sums);
                        half ^= 1;
                }

#pragma unroll
                for (unsigned i = 0; i < HIGH; i++)
#pragma unroll
                        for (unsigned j = 0; j < WIDE; j++)
                                gemm_put(g, row + row_of(t, i), column + column_of(t, j),
                                         sums[i][j]);
        }

        static __device__ __forceinline__ void compute_all(const Gemm<T> &g, Shared &shared) {
                u64 across = (g.n + COLUMNS - 1) / COLUMNS, down = (g.m + ROWS - 1) / ROWS;
                unsigned half = 0, t = thread_number();

                /* Opaque: sharing what it derives from t with other tiles would cost the loop registers. */
                asm volatile("" : "+r"(t));

                for (u64 tile = block_number(); tile < across * down; tile += block_count())
                        compute(g, t, shared, half, tile / across * ROWS, tile % across * COLUMNS);
        }
};

/* ---- pieces without tiles ------------------------------------------------------------------- */

/* A piece of SIZE × SIZE. Where it reaches over an edge it reads the last row or column again. */
template <unsigned SIZE, class T>
static __device__ __forceinline__ void gemm_piece(const Gemm<T> &g, u64 row, u64 column) {
        const T *from_a[SIZE], *from_b[SIZE];
        T sums[SIZE][SIZE] = {};

#pragma unroll
        for (unsigned i = 0; i < SIZE; i++) {
                from_a[i] = g.A + (row + i < g.m ? row + i : g.m - 1) * g.k;
                from_b[i] = g.B + (column + i < g.n ? column + i : g.n - 1);
        }
        for (u64 p = 0; p < g.k; p++) {
#pragma unroll
                for (unsigned i = 0; i < SIZE; i++)
#pragma unroll
                        for (unsigned j = 0; j < SIZE; j++)
                                sums[i][j] = fma(*from_a[i], *from_b[j], sums[i][j]);
#pragma unroll
                for (unsigned i = 0; i < SIZE; i++) {
                        from_a[i]++;
                        from_b[i] += g.n;
                }
        }

#pragma unroll
        for (unsigned i = 0; i < SIZE; i++)
#pragma unroll
                for (unsigned j = 0; j < SIZE; j++)
                        gemm_put(g, row + i, column + j, sums[i][j]);
}

template <unsigned SIZE, class T>
static __device__ __forceinline__ void gemm_pieces(const Gemm<T> &g) {
        u64 across = (g.n + SIZE - 1) / SIZE, down = (g.m + SIZE - 1) / SIZE;

        for (EACH(piece, across * down))
                gemm_piece<SIZE>(g, piece / across * SIZE, piece % across * SIZE);
}

template <class T, unsigned WIDE> static __device__ __forceinline__ void gemm(const Gemm<T> &g) {
        using Small = GemmTiles<T, 2, 2, 128 / sizeof(T)>;
        using Large = GemmTiles<T, 4, WIDE, 8>;
        __shared__ union {
                typename Small::Shared small;
                typename Large::Shared large;
        } shared;
        u64 n_large = (g.m + Large::ROWS - 1) / Large::ROWS *
                      ((g.n + Large::COLUMNS - 1) / Large::COLUMNS);
        bool is_large = n_large >= GEMM_LARGE_TILES;

        if (thread_count() != GEMM_THREADS)
                is_large ? gemm_pieces<4>(g) : gemm_pieces<2>(g);
        else if (is_large)
                Large::compute_all(g, shared.large);
        else
                Small::compute_all(g, shared.small);
}

/* The bound limits a thread to 64 registers; with more, blocks of 1024 threads could not start. */
extern "C" __global__ void __launch_bounds__(1024)
        gemm_f32(const float *A, const float *B, float *C, u64 m, u64 n, u64 k, float alpha,
                 float beta) {
        gemm<float, 8>({A, B, C, m, n, k, alpha, beta});
}

extern "C" __global__ void __launch_bounds__(1024)
        gemm_f64(const double *A, const double *B, double *C, u64 m, u64 n, u64 k, double alpha,
                 double beta) {
        gemm<double, 4>({A, B, C, m, n, k, alpha, beta});
}
