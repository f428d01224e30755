/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clang with our own device header, the compiler where NVRTC is missing: all that
 * the header offers compiles, and the result assembles where nvJitLink is there.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/backend.h"
#include "compiler/ptx.h"
#include "compiler/ptx/translate.h"

static const char source[] =
        "#include <cstdint>\n#include <stdio.h>\n#include <math.h>\n"
        "__constant__ float table[3];\n__device__ unsigned ticket;\n"
        "template <class T> __device__ T warp_sum(T v) {\n"
        "  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);\n"
        "  return __shfl_sync(~0u, v, 0) + __shfl_xor_sync(~0u, v, 1) + __shfl_up_sync(~0u, v, "
        "1u);\n"
        "}\n"
        "__global__ void __launch_bounds__(256) all(float *f, double *d, int *i, uint64_t *u) {\n"
        "  extern __shared__ float dynamic[]; __shared__ int fixed[4];\n"
        "  uint3 t = threadIdx; dim3 b = blockDim;\n"
        "  fixed[t.x & 3] = b.x; dynamic[t.x] = table[0]; __syncthreads();\n"
        "  f[0] = warp_sum(f[t.x]) + sqrtf(2.0f) + fmaxf(f[1], dynamic[1]) + __expf(f[2]);\n"
        "  d[0] = warp_sum(d[t.x]) + sqrt(2.0) + fma(d[1], d[2], d[3]) + floor(d[4]);\n"
        "  i[0] = warp_sum(i[t.x]) + __popc(i[1]) + __clz(i[2]) + min(i[3], i[4]) + fixed[1];\n"
        "  u[0] = warp_sum(u[t.x]) + __ballot_sync(__activemask(), i[0] > 1);\n"
        "  atomicAdd(f, 1.0f); atomicAdd(d, 1.0); atomicAdd(i, 1); atomicAdd(&ticket, 1u);\n"
        "  atomicAdd((unsigned long long *)u, 1ull); atomicCAS(i, 1, 2); atomicMax(i, 3);\n"
        "  atomicExch(f, 2.0f); atomicMin(&ticket, 4u); atomicInc(&ticket, 9u);\n"
        "  __threadfence(); __syncwarp(); assert(i[0] != 3);\n"
        "  if (__syncthreads_count(i[0]) == 3) printf(\"%d %f\\n\", i[0], d[0]);\n"
        "}\n"
        "extern \"C\" __global__ void plain(float4 *v) { v[0] = make_float4(1, 2, 3, N); }\n";

/* Return: clang_compile()'s; the text is the caller's. */
static int compile_with(const char *text, unsigned sm, const char *const *options, size_t n_options,
                        const char **kernels, size_t n_kernels, Result *result, Ptx *ret_ptx) {
        char work[] = "/tmp/gpuq-test-clang-XXXXXX";
        Request request = {
                .sm = sm,
                .format = FORMAT_SOURCE,
                .libexec = getenv("GPUQ_LIBEXEC"),
                .name = "my.cu",
                .image = (char *)text,
                .n_image = strlen(text),
                .options = options,
                .n_options = n_options,
                .kernels = kernels,
                .n_kernels = n_kernels,
                .work = mkdtemp(work),
        };
        int r;

        r = clang_compile(&request, result, ret_ptx);
        request_clean(&request);
        if (r == BACKEND_E_MISSING)
                return r; /* not on this machine */
        assert_int_equal(r, 0);
        return 0;
}

static int compile_named(const char *text, unsigned sm, const char **kernels, size_t n_kernels,
                         Result *result, Ptx *ret_ptx) {
        static const char *const options[] = {"-DN=4", "-std=c++17"};

        return compile_with(text, sm, options, ARRAY_SIZE(options), kernels, n_kernels, result,
                            ret_ptx);
}

static int compile(const char *text, unsigned sm, Result *result, Ptx *ret_ptx) {
        int r = compile_named(text, sm, NULL, 0, result, ret_ptx);

        if (r == 0)
                assert_string_equal(result->log ? result->log : "", "");
        return r;
}

static const char templates[] =
        "namespace ns { template <class T, unsigned n> __global__ void reduce(T *p) { p[0] = n; } "
        "}\n"
        "template <typename T> __global__ void my_sqrt(T *p) { p[0] = p[1]; }\n"
        "typedef float real;\n"
        "extern \"C\" __global__ void plain(int *p) { p[0] = 1; }";

static void named_instances(unsigned sm) {
        const char *kernels[] = {"ns::reduce<int, 256>", "plain", "&my_sqrt<real>"};
        _cleanup_(result_freep) Result *result = NULL;
        const Request request = {.sm = sm, .name = "my.cu"};
        Ptx ptx = {};

        assert_int_equal(result_new(&result), 0);
        if (compile_named(templates, sm, kernels, 3, result, &ptx) == BACKEND_E_MISSING)
                return;

        assert_string_equal(result->log ? result->log : "", "");
        assert_string_equal(result->named[0], "_ZN2ns6reduceIiLj256EEEvPT_");
        assert_string_equal(result->named[2], "_Z7my_sqrtIfEvPT_");
        assert_null(strstr(ptx.text, "gpuq_instance"));
        assert_int_equal(ptx_scan(ptx.text, ptx.n_text, result->signature), 0);
        assert_int_equal(result->signature->n_kernels, 3);
        assert_int_equal(result->signature->n_variables, 0);
        if (sm)
                assert_int_equal(link_image(&request, result, FORMAT_PTX, ptx.text, ptx.n_text), 0);
        free(ptx.text);
        if (result->status != COMPILED_NO_COMPILER)
                assert_int_equal(result->status, COMPILED_OK);
}

static void clang_makes_the_instances_that_are_named(void **state) {
        named_instances(90);
        named_instances(0);
}

/* Only thread 0 writes it, so clang had the others read it before the barrier. */
static const char flag[] = "extern \"C\" __global__ void flag(const int *in, int *out) {\n"
                           "  __shared__ int is_set;\n"
                           "  if (threadIdx.x == 0) { is_set = in[0] > 3; out[0] = 1; }\n"
                           "  __syncthreads();\n"
                           "  if (is_set) out[threadIdx.x] = 2;\n"
                           "}\n";

static void nothing_is_read_before_the_barrier_that_it_comes_after(void **state) {
        for (unsigned sm = 0; sm <= 90; sm += 90) {
                _cleanup_(result_freep) Result *result = NULL;
                const char *barrier, *load;
                Ptx ptx = {};

                assert_int_equal(result_new(&result), 0);
                if (compile(flag, sm, result, &ptx) == BACKEND_E_MISSING)
                        return;
                barrier = strstr(ptx.text, "bar.sync");
                load = strstr(ptx.text, "ld.shared");
                assert_non_null(barrier);
                assert_non_null(load);
                assert_true(barrier < load);
                free(ptx.text);
        }
}

/* Headers that are included without need. */
static const char standard[] =
        "#include <stdint.h>\n#include <stdlib.h>\n#include <time.h>\n#include <sys/types.h>\n"
        "#include <cmath>\n#include <cstdio>\n#include <ctime>\n#include <type_traits>\n"
        "#include <utility>\n#include <algorithm>\n#include <limits>\n#include <initializer_list>\n"
        "template <class T> struct Wide : std::conditional<sizeof(T) == 4, double, T> {};\n"
        "static_assert(std::is_same<typename Wide<float>::type, double>::value, \"wide\");\n"
        "static_assert(std::is_integral_v<const uint> && !std::is_signed_v<uint>, \"unsigned\");\n"
        "static_assert(std::is_same_v<std::common_type_t<int, float>, float>, \"common\");\n"
        "static_assert(std::is_convertible_v<int, double> && !std::is_convertible_v<int *, int>, "
        "\"\");\n"
        "static_assert(std::is_same_v<std::decay_t<const int (&)[3]>, const int *>, \"decay\");\n"
        "static_assert(std::numeric_limits<int>::max() == 2147483647, \"max\");\n"
        "__global__ void k(float *x, uint n) {\n"
        "  auto both = std::make_pair(n, 2.0f); std::swap(x[0], x[1]);\n"
        "  for (int i : {1, 2, 3}) x[i] = std::max(x[i], std::sqrt(both.second));\n"
        "  x[5] = std::numeric_limits<float>::infinity() + std::move(x[6]);\n"
        "}\n";

static void standard_headers_do_no_harm(void **state) {
        for (unsigned sm = 0; sm <= 90; sm += 90) {
                _cleanup_(result_freep) Result *result = NULL;
                Ptx ptx = {};

                assert_int_equal(result_new(&result), 0);
                if (compile(standard, sm, result, &ptx) == BACKEND_E_MISSING)
                        return;
                assert_int_equal(result->status, COMPILED_OK);
                free(ptx.text);
        }
}

static void clang_tells_which_name_is_wrong(void **state) {
        const char *kernels[] = {"my_sqrt<int>", "ns::reduc<int, 256>"};
        _cleanup_(result_freep) Result *result = NULL;
        Ptx ptx = {};

        assert_int_equal(result_new(&result), 0);
        if (compile_named(templates, 90, kernels, 2, result, &ptx) == BACKEND_E_MISSING)
                return;

        assert_int_equal(result->status, COMPILED_NO_KERNEL);
        assert_non_null(strstr(result->log, "my.cu has no kernel \"ns::reduc<int, 256>\": "));
        assert_non_null(strstr(result->log, "; it has: reduce, my_sqrt, plain"));
}

static void the_device_header_is_enough(void **state) {
        _cleanup_(result_freep) Result *result = NULL;
        Request request = {.sm = 90, .name = "my.cu"};
        Ptx ptx = {};

        assert_int_equal(result_new(&result), 0);
        if (compile(source, 90, result, &ptx) == BACKEND_E_MISSING)
                return;

        assert_int_equal(ptx_scan(ptx.text, ptx.n_text, result->signature), 0);
        assert_int_equal(result->signature->n_kernels, 2);
        assert_int_equal(result->signature->n_variables, 2);
        assert_true(result->signature->has_printf);

        assert_int_equal(link_image(&request, result, FORMAT_PTX, ptx.text, ptx.n_text), 0);
        free(ptx.text);
        if (result->status == COMPILED_NO_COMPILER)
                return; /* not on this machine */
        assert_string_equal(result->log ? result->log : "", "");
        assert_true(result->n_image > 0);
}

/* What is in the header for the CPU driver only, and what is included. */
static const char library[] =
        "#include <cmath>\n#include <cooperative_groups.h>\n#include "
        "<cooperative_groups/reduce.h>\n"
        "#include <math_constants.h>\n#include <cuda_runtime.h>\n#include <vector_types.h>\n"
        "namespace cg = cooperative_groups;\n"
        "template <class T> __device__ T unary(T v) {\n"
        "  return acos(v) + acosh(v) + asin(v) + asinh(v) + atan(v) + atanh(v) + cbrt(v) + cos(v) "
        "+\n"
        "    cosh(v) + cospi(v) + cyl_bessel_i0(v) + cyl_bessel_i1(v) + erf(v) + erfc(v) +\n"
        "    erfcinv(v) + erfcx(v) + erfinv(v) + exp(v) + exp10(v) + exp2(v) + expm1(v) + j0(v) +\n"
        "    j1(v) + lgamma(v) + log(v) + log10(v) + log1p(v) + log2(v) + logb(v) + nearbyint(v) "
        "+\n"
        "    normcdf(v) + normcdfinv(v) + rcbrt(v) + round(v) + sin(v) + sinh(v) + sinpi(v) +\n"
        "    tan(v) + tanh(v) + tgamma(v) + y0(v) + y1(v) + rsqrt(v) + std::sqrt(v) + "
        "std::abs(v);\n"
        "}\n"
        "template <class T> __device__ T binary(T a, T b) {\n"
        "  return atan2(a, b) + copysign(a, b) + fdim(a, b) + fmod(a, b) + hypot(a, b) +\n"
        "    nextafter(a, b) + pow(a, b) + remainder(a, b) + rhypot(a, b) + min(a, b) + fmax(a, "
        "b);\n"
        "}\n"
        "__global__ void floats(float *f, int *n) {\n"
        "  float v = unary(f[0]) + binary(f[0], f[1]) + ldexpf(f[0], 3) + scalbnf(f[0], 3) +\n"
        "    frexpf(f[0], n) + modff(f[0], f) + jnf(2, f[0]) + ynf(2, f[0]) + ilogbf(f[0]) +\n"
        "    llrintf(f[0]) + lroundf(f[0]) + remquof(f[0], f[1], n) + norm3df(f[0], f[1], f[2]) +\n"
        "    norm4df(f[0], f[1], f[2], f[3]) + rnorm3df(f[0], f[1], f[2]) + rnorm4df(f[0], 1, 2, "
        "3);\n"
        "  sincosf(v, f, f + 1); sincospif(v, f + 2, f + 3);\n"
        "  f[4] = v + CUDART_PI_F + __powf(v, 2) + __tanf(v) + __fdividef(v, 3) + pow(v, 2) + "
        "sin(1);\n"
        "  n[0] = __float2int_rz(v) + __float2uint_rn(v) + __mulhi(n[0], n[1]) + __brev(n[0]) +\n"
        "    __byte_perm(n[0], n[1], 0x3210) + __ffsll(n[0]) + __mul24(n[0], n[1]) + min(1u, 2);\n"
        "}\n"
        "__global__ void doubles(double *d, int *n) {\n"
        "  double v = unary(d[0]) + binary(d[0], d[1]) + ldexp(d[0], 3) + scalbn(d[0], 3) +\n"
        "    frexp(d[0], n) + modf(d[0], d) + jn(2, d[0]) + yn(2, d[0]) + ilogb(d[0]) +\n"
        "    llrint(d[0]) + lround(d[0]) + remquo(d[0], d[1], n) + norm3d(d[0], d[1], d[2]) +\n"
        "    norm4d(d[0], d[1], d[2], d[3]) + rnorm3d(d[0], d[1], d[2]) + rnorm4d(d[0], 1, 2, 3);\n"
        "  sincos(v, d, d + 1); sincospi(v, d + 2, d + 3);\n"
        "  d[4] = v + CUDART_PI + __double2ll_rd(v) + __dmul_rn(v, v) + std::pow(v, 2) + "
        "__double2hiint(v);\n"
        "}\n"
        "__global__ void groups(int *x) {\n"
        "  auto block = cg::this_thread_block(); auto tile = cg::tiled_partition<8>(block);\n"
        "  x[0] = cg::reduce(tile, x[block.thread_rank()], cg::plus<int>()) + tile.shfl_down(x[1], "
        "1);\n"
        "  if (x[1]) x[2] = cg::coalesced_threads().shfl(x[3], 0) + __match_any_sync(~0u, x[4]);\n"
        "  x[5] = __reduce_add_sync(~0u, x[6]) + cg::this_cluster().block_rank();\n"
        "  cg::this_cluster().sync(); cg::this_grid().sync(); __nanosleep(5); x[7] = clock();\n"
        "  int *p = (int *)malloc(4); free(p); *cg::this_cluster().map_shared_rank(x, 1) = 3;\n"
        "}\n";

static bool is_visible(const PtxVariable *variable) {
        return variable->n_initials == 0;
}

static const char textures[] =
        "__global__ void fetch(cudaTextureObject_t t, float *f, int *i) {\n"
        "  uchar4 v = tex2D<uchar4>(t, 0.5f, 1.5f); signed char c; float2 p;\n"
        "  tex1Dfetch(&c, t, 3); tex2D(&p, t, 1.0f, 2.0f);\n"
        "  f[0] = tex1Dfetch<float>(t, i[0]) + tex1Dfetch<float4>(t, 1).w + p.y;\n"
        "  i[0] = v.x + v.w + c + tex2D<short>(t, 1.0f, 1.0f) + tex1Dfetch<uint2>(t, 1).y;\n"
        "}\n";

static void textures_are_fetched_with_the_instructions_of_nvrtc(void **state) {
        static const char *const wanted[] = {"tex.1d.v4.f32.s32", "tex.1d.v4.s32.s32",
                                             "tex.1d.v4.u32.s32", "tex.2d.v4.u32.f32",
                                             "tex.2d.v4.s32.f32", "tex.2d.v4.f32.f32"};
        _cleanup_(result_freep) Result *result = NULL;
        _cleanup_(ptx_module_freep) PtxModule *module = NULL;
        _cleanup_(freep) char *error = NULL, *c = NULL;
        Ptx ptx = {};

        assert_int_equal(result_new(&result), 0);
        if (compile(textures, 0, result, &ptx) == BACKEND_E_MISSING)
                return;

        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
                assert_non_null(strstr(ptx.text, wanted[i]));
        assert_int_equal(ptx_module_read(ptx.text, ptx.n_text, &module, &error), 0);
        (void)ptx_translate(module, is_visible, &c, &error);
        assert_string_equal(error ? error : "", "");
        assert_non_null(strstr(c, "#define PTX_TEXTURES\n"));
        free(ptx.text);
}

static void for_the_cpu_it_has_the_library_and_the_translator_too(void **state) {
        _cleanup_(result_freep) Result *result = NULL;
        _cleanup_(ptx_module_freep) PtxModule *module = NULL;
        _cleanup_(freep) char *error = NULL, *c = NULL;
        Ptx ptx = {};

        assert_int_equal(result_new(&result), 0);
        if (compile(library, 0, result, &ptx) == BACKEND_E_MISSING)
                return;

        assert_int_equal(ptx_module_read(ptx.text, ptx.n_text, &module, &error), 0);
        (void)ptx_translate(module, is_visible, &c, &error);
        assert_string_equal(error ? error : "", "");
        assert_non_null(c);
        free(ptx.text);
}

/* @options: two. */
static void assert_arithmetic(const char *first, const char *second, const char *wanted) {
        static const char text[] = "__global__ void k(float *x) {\n"
                                   "        x[0] = x[1] / x[2];\n"
                                   "        x[3] = x[4] * x[5] + x[6];\n"
                                   "        x[7] = sqrtf(x[8]);\n"
                                   "}";
        const char *const options[] = {first, second};
        _cleanup_(result_freep) Result *result = NULL;
        Ptx ptx = {};

        assert_int_equal(result_new(&result), 0);
        if (compile_with(text, 0, options, ARRAY_SIZE(options), NULL, 0, result, &ptx) ==
            BACKEND_E_MISSING)
                skip();
        assert_int_equal(result->status, COMPILED_OK);
        if (!strstr(ptx.text, wanted))
                fail_msg("%s %s: %s is not in %s", first, second, wanted, ptx.text);
        free(ptx.text);
}

static void switches_of_nvrtc_change_the_arithmetic(void **state) {
        assert_arithmetic("-DA", "-DB", "fma.rn.f32");
        assert_arithmetic("-DA", "--device-int128", "fma.rn.f32");
        assert_arithmetic("-DA", "--fmad=false", "mul.rn.f32");
        assert_arithmetic("--use_fast_math", "-fmad=false", "mul.rn.ftz.f32");
        assert_arithmetic("-DA", "-ftz=true", "fma.rn.ftz.f32");
        assert_arithmetic("--use_fast_math", "--ftz=false", "fma.rn.f32");
        assert_arithmetic("-DA", "--prec-div=false", "div.approx.f32");
        assert_arithmetic("--prec-div=true", "--use_fast_math", "div.rn.ftz.f32");
        assert_arithmetic("-DA", "--prec-sqrt=false", "sqrt.rn.f32");
}

static void launches_in_kernels_are_said_to_need_nvrtc(void **state) {
        static const char launches[] = "__global__ void child(int *x) { x[threadIdx.x] += 2; }\n"
                                       "__global__ void parent(int *x) { child<<<1, 32>>>(x); }\n";
        _cleanup_(result_freep) Result *result = NULL;
        Ptx ptx = {};

        assert_int_equal(result_new(&result), 0);
        if (compile_named(launches, 90, NULL, 0, result, &ptx) == BACKEND_E_MISSING)
                return;

        assert_int_equal(result->status, COMPILED_FAILED);
        assert_non_null(strstr(result->log, "kernels that launch kernels need a GPU and NVRTC"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_device_header_is_enough),
                cmocka_unit_test(clang_makes_the_instances_that_are_named),
                cmocka_unit_test(clang_tells_which_name_is_wrong),
                cmocka_unit_test(nothing_is_read_before_the_barrier_that_it_comes_after),
                cmocka_unit_test(standard_headers_do_no_harm),
                cmocka_unit_test(textures_are_fetched_with_the_instructions_of_nvrtc),
                cmocka_unit_test(for_the_cpu_it_has_the_library_and_the_translator_too),
                cmocka_unit_test(launches_in_kernels_are_said_to_need_nvrtc),
                cmocka_unit_test(switches_of_nvrtc_change_the_arithmetic),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
