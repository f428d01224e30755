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

static void the_device_header_is_enough(void **state) {
        static const char *const options[] = {"-DN=4", "-std=c++17"};
        char work[] = "/tmp/gpuq-test-clang-XXXXXX";
        Request request = {
                .sm = 90,
                .format = FORMAT_SOURCE,
                .libexec = getenv("GPUQ_LIBEXEC_GPU"),
                .name = "my.cu",
                .image = (char *)source,
                .n_image = strlen(source),
                .options = options,
                .n_options = ARRAY_SIZE(options),
                .work = mkdtemp(work),
        };
        _cleanup_(result_freep) Result *result = NULL;
        Ptx ptx = {};
        int r;

        assert_int_equal(result_new(&result), 0);
        r = clang_compile(&request, result, &ptx);
        request_clean(&request);
        if (r == BACKEND_E_MISSING)
                return; /* not on this machine */
        assert_int_equal(r, 0);
        assert_string_equal(result->log ? result->log : "", "");

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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_device_header_is_enough),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
