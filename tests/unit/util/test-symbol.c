/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "util/symbol.h"

static void assert_base(const char *symbol, const char *wanted) {
        const char *base = NULL;
        size_t n_base = 0;

        assert_true(symbol_base(symbol, &base, &n_base));
        assert_int_equal(n_base, strlen(wanted));
        assert_memory_equal(base, wanted, n_base);
}

static void assert_no_base(const char *symbol) {
        const char *base;
        size_t n_base;

        assert_false(symbol_base(symbol, &base, &n_base));
}

static void plain_function_gives_its_name(void **state) {
        assert_base("_Z5scalePfi", "scale");
        assert_base("_ZL5scalePfi", "scale");
        assert_base("_Z1fIfEvPT_", "f");
}

static void nested_name_gives_its_last_part(void **state) {
        assert_base("_ZN4math4gemmEPf", "gemm");
        assert_base("_ZN4math4gemmIfEEvPT_", "gemm");
        assert_base("_ZN12_GLOBAL__N_14gemmEPf", "gemm");
        assert_base("_ZN3boxINS_3mapIiLi12EEEE4gemmEPf", "gemm");
}

static void names_that_are_not_mangled_have_no_base(void **state) {
        assert_no_base("scale");
        assert_no_base("");
        assert_no_base("_Z");
}

static void broken_symbols_are_refused_without_reading_past_them(void **state) {
        assert_no_base("_Z99scale");
        assert_no_base("_Z0scale");
        assert_no_base("_ZN4math");
        assert_no_base("_ZN4mathI");
        assert_no_base("_ZN4mathIL");
        assert_no_base("_Z99999999999999999999x");
}

static void plain_names_match_without_scope_and_arguments(void **state) {
        assert_true(symbol_matches("_Z5scalePfi", "scale"));
        assert_false(symbol_matches("_Z5scalePfi", "scal"));
        assert_true(name_matches("math::gemm<float>", "gemm"));
        assert_true(name_matches("gemm(float*)", "gemm"));
        assert_false(name_matches("dgemm", "gemm"));
        assert_false(name_matches("g", "gemm"));
}

static void kernels_of_gpuq_and_the_toolkit_are_internal(void **state) {
        assert_true(symbol_is_internal("gpuq_internal_move"));
        assert_true(symbol_is_internal("__cudaCDP2LaunchDeviceV2"));
        assert_true(
                symbol_is_internal("__nv_static_52__f4510a67_22_cuda_device_runtime_cu_3ecce0c0_"
                                   "2317245__Z16memset_3d_deviceIjLi0EEv12MemsetParamsIT_E"));
        assert_true(symbol_is_device_runtime("cudartErrorTable"));
        assert_false(symbol_is_device_runtime("gpuq_internal_move"));
        assert_false(symbol_is_internal("memset_3d_device"));
        assert_false(symbol_is_internal("cudaMine"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(plain_function_gives_its_name),
                cmocka_unit_test(nested_name_gives_its_last_part),
                cmocka_unit_test(names_that_are_not_mangled_have_no_base),
                cmocka_unit_test(broken_symbols_are_refused_without_reading_past_them),
                cmocka_unit_test(plain_names_match_without_scope_and_arguments),
                cmocka_unit_test(kernels_of_gpuq_and_the_toolkit_are_internal),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
