/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @kernel gemm
 * @text   C = alpha A B + beta C: A is m × k, B is k × n, C is m × n, row-major; C is not read if beta is 0
 * @args   in:A:real:m,k in:B:real:k,n inout:C:real:m,n u64:m u64:n u64:k real:alpha real:beta
 * @launch any grid and block; a block computes tiles of 32 × 32 of C; fastest: grid ceil(n / 32),ceil(m / 32), block 256
 */
#include "common.cuh"

#define TILE 32

template <class T> struct GemmTiles {
        T a[TILE][TILE];
        T b[TILE][TILE];
        T c[TILE][TILE]; /* sums so far; an element is always the same thread's */
};

/* Loads the tiles of A and B at (row, at) and (at, column), zeros where they reach over the edge. */
template <class T>
static __device__ inline void gemm_load(GemmTiles<T> &tiles, const T *A, const T *B, u64 m, u64 n,
                                        u64 k, u64 row, u64 column, u64 at) {
        for (u64 e = thread_number(); e < TILE * TILE; e += thread_count()) {
                u64 i = e / TILE, j = e % TILE;

                tiles.a[i][j] = row + i < m && at + j < k ? A[(row + i) * k + at + j] : 0;
                tiles.b[i][j] = at + i < k && column + j < n ? B[(at + i) * n + column + j] : 0;
        }
}

template <class T> static __device__ inline void gemm_multiply(GemmTiles<T> &tiles) {
        for (u64 e = thread_number(); e < TILE * TILE; e += thread_count()) {
                u64 i = e / TILE, j = e % TILE;
                T value = tiles.c[i][j];

                for (unsigned p = 0; p < TILE; p++)
                        value += tiles.a[i][p] * tiles.b[p][j];
                tiles.c[i][j] = value;
        }
}

template <class T>
static __device__ inline void gemm_store(const GemmTiles<T> &tiles, T *C, u64 m, u64 n, u64 row,
                                         u64 column, T alpha, T beta) {
        for (u64 e = thread_number(); e < TILE * TILE; e += thread_count()) {
                u64 i = e / TILE, j = e % TILE;
                T value = alpha * tiles.c[i][j];

                if (row + i >= m || column + j >= n)
                        continue;

                T *c = &C[(row + i) * n + column + j];
                *c = beta == 0 ? value : value + beta * *c;
        }
}

template <class T>
static __device__ inline void gemm(const T *A, const T *B, T *C, u64 m, u64 n, u64 k, T alpha,
                                   T beta) {
        __shared__ GemmTiles<T> tiles;
        u64 across = (n + TILE - 1) / TILE, down = (m + TILE - 1) / TILE;

        for (u64 tile = block_number(); tile < across * down; tile += block_count()) {
                u64 row = tile / across * TILE, column = tile % across * TILE;

                for (u64 e = thread_number(); e < TILE * TILE; e += thread_count())
                        tiles.c[e / TILE][e % TILE] = 0;
                for (u64 at = 0; at < k; at += TILE) {
                        gemm_load(tiles, A, B, m, n, k, row, column, at);
                        __syncthreads();
                        gemm_multiply(tiles);
                        __syncthreads();
                }
                gemm_store(tiles, C, m, n, row, column, alpha, beta);
        }
}

extern "C" __global__ void gemm_f32(const float *A, const float *B, float *C, u64 m, u64 n, u64 k,
                                    float alpha, float beta) {
        gemm(A, B, C, m, n, k, alpha, beta);
}

extern "C" __global__ void gemm_f64(const double *A, const double *B, double *C, u64 m, u64 n,
                                    u64 k, double alpha, double beta) {
        gemm(A, B, C, m, n, k, alpha, beta);
}
