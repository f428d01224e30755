/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What library operations fall back to where the machine has no library, for workers alone (no @kernel)
 *
 * Any grid and block. The parameters are in daemon/worker/gemm.h too.
 */
#include "common.cuh"

/* Steps and offsets in elements. A transposed matrix has its steps exchanged. */
struct LibraryGemm {
        u64 m, n, k, batch;
        u64 a, a_row, a_column, a_batch;
        u64 b, b_row, b_column, b_batch;
        u64 c, c_row, c_batch;
        double alpha, beta;
};

/* What an element is computed in. */
struct LibraryHalf {
        typedef unsigned short Stored;
        typedef float Sum;
        static __device__ inline float load(unsigned short x) {
                float y;

                asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
                return y;
        }
        static __device__ inline unsigned short store(float x) {
                unsigned short y;

                asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
                return y;
        }
};

struct LibraryBfloat {
        typedef unsigned short Stored;
        typedef float Sum;
        static __device__ inline float load(unsigned short x) {
                return __uint_as_float((unsigned)x << 16);
        }
        /* To the nearest, of two as near to the even one; a NaN stays one. */
        static __device__ inline unsigned short store(float x) {
                unsigned bits = __float_as_uint(x);

                if (x != x)
                        return bits >> 16 | 0x40;
                return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        }
};

template <class T> struct LibraryReal {
        typedef T Stored;
        typedef T Sum;
        static __device__ inline T load(T x) {
                return x;
        }
        static __device__ inline T store(T x) {
                return x;
        }
};

/* Every element is one chain of fma() over k in ascending order, whatever the geometry. */
template <class T>
static __device__ inline void library_gemm(const typename T::Stored *a, const typename T::Stored *b,
                                           typename T::Stored *c, const LibraryGemm &g) {
        typedef typename T::Sum Sum;
        Sum alpha = (Sum)g.alpha, beta = (Sum)g.beta;

        for (EACH(i, g.batch * g.m * g.n)) {
                u64 batch = i / (g.m * g.n), row = i / g.n % g.m, column = i % g.n;
                const typename T::Stored *from_a = a + g.a + batch * g.a_batch + row * g.a_row;
                const typename T::Stored *from_b =
                        b + g.b + batch * g.b_batch + column * g.b_column;
                typename T::Stored *to = c + g.c + batch * g.c_batch + row * g.c_row + column;
                Sum sum = 0;

                for (u64 p = 0; p < g.k; p++)
                        sum = fma(T::load(from_a[p * g.a_column]), T::load(from_b[p * g.b_row]),
                                  sum);
                *to = T::store(beta == 0 ? alpha * sum : fma(beta, T::load(*to), alpha * sum));
        }
}

#define LIBRARY_GEMM(name, type, stored)                                                           \
        extern "C" __global__ void gpuq_internal_gemm_##name(const stored *a, const stored *b,     \
                                                             stored *c, const LibraryGemm gemm) {  \
                library_gemm<type>(a, b, c, gemm);                                                 \
        }
LIBRARY_GEMM(f16, LibraryHalf, unsigned short)
LIBRARY_GEMM(bf16, LibraryBfloat, unsigned short)
LIBRARY_GEMM(f32, LibraryReal<float>, float)
LIBRARY_GEMM(f64, LibraryReal<double>, double)
