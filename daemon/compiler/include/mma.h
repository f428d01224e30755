/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices of a warp (nvcuda::wmma) where the CUDA Toolkit's header is missing: f16, bf16, tf32, f64 and
 * int8. Matrices of 4 bits and of 1 bit are missing.
 */
#pragma once

#ifdef __CUDACC_RTC__
#error "mma.h: the CUDA Toolkit's headers are missing beside NVRTC"
#elif __CUDA_ARCH__ < 800
#error "mma.h: clang makes code for older GPUs, without matrices; install NVRTC"
#endif

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace nvcuda {
namespace wmma {

#define GPUQ_WMMA static __device__ __forceinline__

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
} // namespace precision

template <class T> struct gpuq_stored { typedef T stored; };
template <> struct gpuq_stored<precision::tf32> { typedef float stored; };

/* What a lane holds: as elements, and as the registers of the instructions. */
template <class T, int n_elements, class Register, int n_registers_> struct gpuq_part {
        typedef T element_type;
        typedef Register gpuq_register;
        enum { num_elements = n_elements, n_registers = n_registers_ };
        union {
                T x[n_elements];
                Register gpuq_registers[n_registers_];
        };
        __device__ gpuq_part() {
        }
};
template <class Use, int m, int n, int k, class T, class Layout = void> class fragment;

#define GPUQ_FRAGMENT(use, m, n, k, T, n_elements, Register, n_registers)                          \
        template <class Layout>                                                                    \
        class fragment<use, m, n, k, T, Layout>                                                    \
            : public gpuq_part<gpuq_stored<T>::stored, n_elements, Register, n_registers> {};

/* "=r"(registers[0]), …, and their numbers in the text of an instruction */
#define GPUQ_R1(c, f)  c((f)[0])
#define GPUQ_R2(c, f)  GPUQ_R1(c, f), c((f)[1])
#define GPUQ_R4(c, f)  GPUQ_R2(c, f), c((f)[2]), c((f)[3])
#define GPUQ_R8(c, f)  GPUQ_R4(c, f), c((f)[4]), c((f)[5]), c((f)[6]), c((f)[7])
#define GPUQ_N1(a)                      "{%" #a "}"
#define GPUQ_N2(a, b)                   "{%" #a ", %" #b "}"
#define GPUQ_N4(a, b, c, d)             "{%" #a ", %" #b ", %" #c ", %" #d "}"
#define GPUQ_N8(a, b, c, d, e, f, g, h) "{%" #a ", %" #b ", %" #c ", %" #d ", %" #e ", %" #f ", %" #g ", %" #h "}"

/* The first registers of an instruction, and what comes behind them. */
#define GPUQ_FIRST1 GPUQ_N1(0)
#define GPUQ_FIRST2 GPUQ_N2(0, 1)
#define GPUQ_FIRST4 GPUQ_N4(0, 1, 2, 3)
#define GPUQ_FIRST8 GPUQ_N8(0, 1, 2, 3, 4, 5, 6, 7)
#define GPUQ_THEN1  "[%1], %2;"
#define GPUQ_THEN2  "[%2], %3;"
#define GPUQ_THEN4  "[%4], %5;"
#define GPUQ_THEN8  "[%8], %9;"

#define GPUQ_LOAD(use, letter, m, n, k, shape, T, type, c, n_registers)                            \
        GPUQ_LOAD_OF(use, letter, m, n, k, shape, T, type, c, n_registers, row)                    \
        GPUQ_LOAD_OF(use, letter, m, n, k, shape, T, type, c, n_registers, col)
#define GPUQ_LOAD_OF(use, letter, m, n, k, shape, T, type, c, n_registers, layout)                 \
        GPUQ_WMMA void load_matrix_sync(fragment<use, m, n, k, T, layout##_major> &f,              \
                                        const gpuq_stored<T>::stored *p, unsigned ld) {              \
                asm volatile("wmma.load." letter ".sync.aligned." #layout "." shape "." type       \
                             " " GPUQ_FIRST##n_registers ", " GPUQ_THEN##n_registers               \
                             : GPUQ_R##n_registers(c, f.gpuq_registers)                            \
                             : "l"(p), "r"(ld)                                                     \
                             : "memory");                                                          \
        }
#define GPUQ_SUMS(m, n, k, shape, T, type, out, in, Register, n_elements, n_registers)             \
        GPUQ_FRAGMENT(accumulator, m, n, k, T, n_elements, Register, n_registers)                  \
        GPUQ_SUMS_OF(m, n, k, shape, T, type, out, in, n_registers, row)                           \
        GPUQ_SUMS_OF(m, n, k, shape, T, type, out, in, n_registers, col)                           \
        GPUQ_WMMA void load_matrix_sync(fragment<accumulator, m, n, k, T> &f, const T *p,          \
                                        unsigned ld, layout_t layout) {                            \
                if (layout == mem_row_major)                                                       \
                        gpuq_load_row(f, p, ld);                                                   \
                else                                                                               \
                        gpuq_load_col(f, p, ld);                                                   \
        }                                                                                          \
        GPUQ_WMMA void store_matrix_sync(T *p, const fragment<accumulator, m, n, k, T> &f,         \
                                         unsigned ld, layout_t layout) {                           \
                if (layout == mem_row_major)                                                       \
                        gpuq_store_row(p, f, ld);                                                  \
                else                                                                               \
                        gpuq_store_col(p, f, ld);                                                  \
        }
#define GPUQ_STORE2 "[%0], {%2, %3}, %1;"
#define GPUQ_STORE4 "[%0], {%2, %3, %4, %5}, %1;"
#define GPUQ_STORE8 "[%0], {%2, %3, %4, %5, %6, %7, %8, %9}, %1;"
#define GPUQ_SUMS_OF(m, n, k, shape, T, type, out, in, n_registers, layout)                        \
        GPUQ_WMMA void gpuq_load_##layout(fragment<accumulator, m, n, k, T> &f, const T *p,        \
                                          unsigned ld) {                                           \
                asm volatile("wmma.load.c.sync.aligned." #layout "." shape "." type                \
                             " " GPUQ_FIRST##n_registers ", " GPUQ_THEN##n_registers               \
                             : GPUQ_R##n_registers(out, f.gpuq_registers)                          \
                             : "l"(p), "r"(ld)                                                     \
                             : "memory");                                                          \
        }                                                                                          \
        GPUQ_WMMA void gpuq_store_##layout(T *p, const fragment<accumulator, m, n, k, T> &f,       \
                                           unsigned ld) {                                          \
                asm volatile("wmma.store.d.sync.aligned." #layout "." shape "." type               \
                             " " GPUQ_STORE##n_registers                                           \
                             :                                                                     \
                             : "l"(p), "r"(ld), GPUQ_R##n_registers(in, f.gpuq_registers)          \
                             : "memory");                                                          \
        }

/* Two accumulators at most: of D and of C. @text names the registers of D, A, B and C in this order. */
#define GPUQ_MMA(m, n, k, TA, TD, TC, infix, suffix, text, d_out, nd, c_ab, na, nb, c_in, nc)      \
        GPUQ_MMA_OF(m, n, k, TA, TD, TC, infix, suffix, text, d_out, nd, c_ab, na, nb, c_in, nc, row, row) \
        GPUQ_MMA_OF(m, n, k, TA, TD, TC, infix, suffix, text, d_out, nd, c_ab, na, nb, c_in, nc, row, col) \
        GPUQ_MMA_OF(m, n, k, TA, TD, TC, infix, suffix, text, d_out, nd, c_ab, na, nb, c_in, nc, col, row) \
        GPUQ_MMA_OF(m, n, k, TA, TD, TC, infix, suffix, text, d_out, nd, c_ab, na, nb, c_in, nc, col, col)
#define GPUQ_MMA_OF(m, n, k, TA, TD, TC, infix, suffix, text, d_out, nd, c_ab, na, nb, c_in, nc, la, lb) \
        GPUQ_WMMA void mma_sync(fragment<accumulator, m, n, k, TD> &d,                             \
                                const fragment<matrix_a, m, n, k, TA, la##_major> &a,              \
                                const fragment<matrix_b, m, n, k, TA, lb##_major> &b,              \
                                const fragment<accumulator, m, n, k, TC> &c) {                     \
                asm volatile("wmma.mma.sync.aligned." #la "." #lb "." infix suffix " " text        \
                             : GPUQ_R##nd(d_out, d.gpuq_registers)                                 \
                             : GPUQ_R##na(c_ab, a.gpuq_registers), GPUQ_R##nb(c_ab, b.gpuq_registers), \
                               GPUQ_R##nc(c_in, c.gpuq_registers));                                \
        }

#define GPUQ_OUT_R(v) "=r"(v)
#define GPUQ_OUT_F(v) "=f"(v)
#define GPUQ_OUT_D(v) "=d"(v)
#define GPUQ_IN_R(v)  "r"(v)
#define GPUQ_IN_F(v)  "f"(v)
#define GPUQ_IN_D(v)  "d"(v)

#define GPUQ_D8 GPUQ_N8(0, 1, 2, 3, 4, 5, 6, 7) ", "
#define GPUQ_D4 GPUQ_N4(0, 1, 2, 3) ", "

/* ---- f16 ------------------------------------------------------------------------ */

#define GPUQ_HALVES(m, n, k, shape)                                                                \
        GPUQ_FRAGMENT(matrix_a, m, n, k, __half, 16, unsigned, 8)                                  \
        GPUQ_FRAGMENT(matrix_b, m, n, k, __half, 16, unsigned, 8)                                  \
        GPUQ_LOAD(matrix_a, "a", m, n, k, shape, __half, "f16", GPUQ_OUT_R, 8)                     \
        GPUQ_LOAD(matrix_b, "b", m, n, k, shape, __half, "f16", GPUQ_OUT_R, 8)                     \
        GPUQ_SUMS(m, n, k, shape, __half, "f16", GPUQ_OUT_R, GPUQ_IN_R, unsigned, 8, 4)            \
        GPUQ_SUMS(m, n, k, shape, float, "f32", GPUQ_OUT_F, GPUQ_IN_F, float, 8, 8)                \
        GPUQ_SUMS(m, n, k, shape, int, "s32", GPUQ_OUT_R, GPUQ_IN_R, int, 8, 8)                    \
        GPUQ_MMA(m, n, k, __half, float, float, shape, ".f32.f32",                                 \
                 GPUQ_D8 GPUQ_N8(8, 9, 10, 11, 12, 13, 14, 15) ", " GPUQ_N8(16, 17, 18, 19, 20, 21, 22, 23) ", " GPUQ_N8(24, 25, 26, 27, 28, 29, 30, 31) ";", \
                 GPUQ_OUT_F, 8, GPUQ_IN_R, 8, 8, GPUQ_IN_F, 8)                                     \
        GPUQ_MMA(m, n, k, __half, __half, __half, shape, ".f16.f16",                               \
                 GPUQ_D4 GPUQ_N8(4, 5, 6, 7, 8, 9, 10, 11) ", " GPUQ_N8(12, 13, 14, 15, 16, 17, 18, 19) ", " GPUQ_N4(20, 21, 22, 23) ";", \
                 GPUQ_OUT_R, 4, GPUQ_IN_R, 8, 8, GPUQ_IN_R, 4)                                     \
        GPUQ_MMA(m, n, k, __half, float, __half, shape, ".f32.f16",                                \
                 GPUQ_D8 GPUQ_N8(8, 9, 10, 11, 12, 13, 14, 15) ", " GPUQ_N8(16, 17, 18, 19, 20, 21, 22, 23) ", " GPUQ_N4(24, 25, 26, 27) ";", \
                 GPUQ_OUT_F, 8, GPUQ_IN_R, 8, 8, GPUQ_IN_R, 4)                                     \
        GPUQ_MMA(m, n, k, __half, __half, float, shape, ".f16.f32",                                \
                 GPUQ_D4 GPUQ_N8(4, 5, 6, 7, 8, 9, 10, 11) ", " GPUQ_N8(12, 13, 14, 15, 16, 17, 18, 19) ", " GPUQ_N8(20, 21, 22, 23, 24, 25, 26, 27) ";", \
                 GPUQ_OUT_R, 4, GPUQ_IN_R, 8, 8, GPUQ_IN_F, 8)
GPUQ_HALVES(16, 16, 16, "m16n16k16")
GPUQ_HALVES(32, 8, 16, "m32n8k16")
GPUQ_HALVES(8, 32, 16, "m8n32k16")

/* ---- bf16 and int8: how many registers depends on the shape ------------------------ */

#define GPUQ_AB44 GPUQ_N4(8, 9, 10, 11) ", " GPUQ_N4(12, 13, 14, 15) ", " GPUQ_N8(16, 17, 18, 19, 20, 21, 22, 23) ";"
#define GPUQ_AB82 GPUQ_N8(8, 9, 10, 11, 12, 13, 14, 15) ", " GPUQ_N2(16, 17) ", " GPUQ_N8(18, 19, 20, 21, 22, 23, 24, 25) ";"
#define GPUQ_AB28 GPUQ_N2(8, 9) ", " GPUQ_N8(10, 11, 12, 13, 14, 15, 16, 17) ", " GPUQ_N8(18, 19, 20, 21, 22, 23, 24, 25) ";"
#define GPUQ_AB22 GPUQ_N2(8, 9) ", " GPUQ_N2(10, 11) ", " GPUQ_N8(12, 13, 14, 15, 16, 17, 18, 19) ";"
#define GPUQ_AB41 GPUQ_N4(8, 9, 10, 11) ", " GPUQ_N1(12) ", " GPUQ_N8(13, 14, 15, 16, 17, 18, 19, 20) ";"
#define GPUQ_AB14 GPUQ_N1(8) ", " GPUQ_N4(9, 10, 11, 12) ", " GPUQ_N8(13, 14, 15, 16, 17, 18, 19, 20) ";"

#define GPUQ_FACTORS(m, n, k, shape, T, type, per_register, na, nb)                                \
        GPUQ_FRAGMENT(matrix_a, m, n, k, T, na *per_register, unsigned, na)                        \
        GPUQ_FRAGMENT(matrix_b, m, n, k, T, nb *per_register, unsigned, nb)                        \
        GPUQ_LOAD(matrix_a, "a", m, n, k, shape, T, type, GPUQ_OUT_R, na)                          \
        GPUQ_LOAD(matrix_b, "b", m, n, k, shape, T, type, GPUQ_OUT_R, nb)
#define GPUQ_BFLOATS(m, n, k, shape, na, nb)                                                       \
        GPUQ_FACTORS(m, n, k, shape, __nv_bfloat16, "bf16", 2, na, nb)                             \
        GPUQ_MMA(m, n, k, __nv_bfloat16, float, float, shape, ".f32.bf16.bf16.f32",                \
                 GPUQ_D8 GPUQ_AB##na##nb, GPUQ_OUT_F, 8, GPUQ_IN_R, na, nb, GPUQ_IN_F, 8)
GPUQ_BFLOATS(16, 16, 16, "m16n16k16", 4, 4)
GPUQ_BFLOATS(32, 8, 16, "m32n8k16", 8, 2)
GPUQ_BFLOATS(8, 32, 16, "m8n32k16", 2, 8)
#define GPUQ_INTEGERS(m, n, k, shape, T, type, na, nb)                                             \
        GPUQ_FACTORS(m, n, k, shape, T, type, 4, na, nb)                                           \
        GPUQ_MMA(m, n, k, T, int, int, shape, ".s32." type "." type ".s32",                        \
                 GPUQ_D8 GPUQ_AB##na##nb, GPUQ_OUT_R, 8, GPUQ_IN_R, na, nb, GPUQ_IN_R, 8)
GPUQ_INTEGERS(16, 16, 16, "m16n16k16", signed char, "s8", 2, 2)
GPUQ_INTEGERS(32, 8, 16, "m32n8k16", signed char, "s8", 4, 1)
GPUQ_INTEGERS(8, 32, 16, "m8n32k16", signed char, "s8", 1, 4)
GPUQ_INTEGERS(16, 16, 16, "m16n16k16", unsigned char, "u8", 2, 2)
GPUQ_INTEGERS(32, 8, 16, "m32n8k16", unsigned char, "u8", 4, 1)
GPUQ_INTEGERS(8, 32, 16, "m8n32k16", unsigned char, "u8", 1, 4)

/* ---- tf32 and f64 ------------------------------------------------------------------ */

GPUQ_FRAGMENT(matrix_a, 16, 16, 8, precision::tf32, 4, unsigned, 4)
GPUQ_FRAGMENT(matrix_b, 16, 16, 8, precision::tf32, 4, unsigned, 4)
GPUQ_LOAD(matrix_a, "a", 16, 16, 8, "m16n16k8", precision::tf32, "tf32", GPUQ_OUT_R, 4)
GPUQ_LOAD(matrix_b, "b", 16, 16, 8, "m16n16k8", precision::tf32, "tf32", GPUQ_OUT_R, 4)
GPUQ_SUMS(16, 16, 8, "m16n16k8", float, "f32", GPUQ_OUT_F, GPUQ_IN_F, float, 8, 8)
GPUQ_MMA(16, 16, 8, precision::tf32, float, float, "m16n16k8", ".f32.tf32.tf32.f32", GPUQ_D8 GPUQ_AB44, GPUQ_OUT_F, 8,
         GPUQ_IN_R, 4, 4, GPUQ_IN_F, 8)

GPUQ_FRAGMENT(matrix_a, 8, 8, 4, double, 1, double, 1)
GPUQ_FRAGMENT(matrix_b, 8, 8, 4, double, 1, double, 1)
GPUQ_LOAD(matrix_a, "a", 8, 8, 4, "m8n8k4", double, "f64", GPUQ_OUT_D, 1)
GPUQ_LOAD(matrix_b, "b", 8, 8, 4, "m8n8k4", double, "f64", GPUQ_OUT_D, 1)
GPUQ_SUMS(8, 8, 4, "m8n8k4", double, "f64", GPUQ_OUT_D, GPUQ_IN_D, double, 2, 2)
GPUQ_MMA(8, 8, 4, double, double, double, "m8n8k4", ".f64.f64.f64.f64", "{%0, %1}, {%2}, {%3}, {%4, %5};", GPUQ_OUT_D, 2,
         GPUQ_IN_D, 1, 1, GPUQ_IN_D, 2)

/* ---- of all types -------------------------------------------------------------------- */

template <class Fragment, class T> GPUQ_WMMA void fill_fragment(Fragment &f, const T &value) {
        for (int i = 0; i < Fragment::num_elements; i++)
                f.x[i] = value;
}
GPUQ_WMMA float __float_to_tf32(float v) {
        unsigned bits;
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
        return __builtin_bit_cast(float, bits);
}

#undef GPUQ_WMMA
#undef GPUQ_FRAGMENT
#undef GPUQ_LOAD
#undef GPUQ_LOAD_OF
#undef GPUQ_SUMS
#undef GPUQ_SUMS_OF
#undef GPUQ_MMA
#undef GPUQ_MMA_OF

} // namespace wmma
} // namespace nvcuda
