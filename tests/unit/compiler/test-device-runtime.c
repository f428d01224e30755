/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/device_runtime.h"

static void assert_call(const char *ptx, const char *wanted) {
        _cleanup_(freep) char *call = device_runtime_call(ptx, strlen(ptx));

        if (wanted)
                assert_string_equal(call, wanted);
        else
                assert_null(call);
}

static void calls_are_told_by_what_is_declared(void **state) {
        assert_call(".extern .func (.param .b32 r) __cudaCDP2Malloc(.param .b64 p);",
                    "a kernel calls cudaMalloc() of the CUDA device runtime");
        assert_call(".extern .func cudaSomething(.param .b64 p)\n;\n",
                    "a kernel calls cudaSomething() of the CUDA device runtime");
}

static void a_launch_goes_before_other_calls(void **state) {
        assert_call(".extern .func (.param .b32 r) __cudaCDP2Malloc(.param .b64 p);\n"
                    ".extern .func (.param .b32 r) cudaLaunchDevice(.param .b64 p);\n"
                    ".extern .func (.param .b32 r) __cudaCDP2Free(.param .b64 p);\n",
                    "a kernel launches kernels (dynamic parallelism)");
}

static void other_names_are_none(void **state) {
        assert_call("", NULL);
        assert_call(".extern .func (.param .b32 r) vprintf(.param .b64 p); // cudaMalloc", NULL);
        assert_call(".extern .func cuda_mine();\n.extern .func cudadevrt();\n.extern .func cuda",
                    NULL);
        assert_call(".extern .global .b32 cudaMalloc;", NULL);
        assert_call(".extern .func (.param .b32 cudaMalloc", NULL);
}

static void stubs_of_older_compilers_are_none(void **state) {
        assert_call(".weak .func (.param .b32 r) cudaMalloc(.param .b64 p)\n"
                    "{\n.reg .b32 %r1;\nst.param.b32 [r], 30;\nret;\n}\n",
                    NULL);
}

static void nvrtc_tells_that_it_is_wanted(void **state) {
        assert_true(device_runtime_is_wanted(
                "k.cu(3): error: device-side kernel launch could not be processed as the required "
                "runtime APIs are not declared\n"));
        assert_true(device_runtime_is_wanted(
                "k.cu(1): error: kernel launch from __device__ or __global__ functions requires "
                "separate compilation mode\n"));
        assert_true(device_runtime_is_wanted(
                "k.cu(1): error: identifier \"cuda_x\" is undefined\n"
                "k.cu(2): error: identifier \"cudaMalloc\" is undefined\n"));
        assert_false(
                device_runtime_is_wanted("k.cu(1): error: identifier \"cuda\" is undefined\n"));
        assert_false(device_runtime_is_wanted(""));
        assert_false(device_runtime_is_wanted(NULL));
}

static void linkers_tell_that_it_is_missing(void **state) {
        assert_true(device_runtime_is_missing(
                "error   : Undefined reference to '__cudaCDP2Malloc' in 'k.ptx'\n"));
        assert_true(device_runtime_is_missing(
                "error   : Undefined reference to 'cudaLaunchDeviceV2' in 'k.ptx'\n"));
        assert_false(
                device_runtime_is_missing("error   : Undefined reference to 'f' in 'k.ptx'\n"));
        assert_false(device_runtime_is_missing(NULL));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(calls_are_told_by_what_is_declared),
                cmocka_unit_test(a_launch_goes_before_other_calls),
                cmocka_unit_test(other_names_are_none),
                cmocka_unit_test(stubs_of_older_compilers_are_none),
                cmocka_unit_test(nvrtc_tells_that_it_is_wanted),
                cmocka_unit_test(linkers_tell_that_it_is_missing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
