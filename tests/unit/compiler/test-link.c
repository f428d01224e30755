/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linking PTX for a device, where nvJitLink is on this machine.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/backend.h"
#include "compiler/cubin.h"

/* Links an empty kernel of @target for an sm_90. Return: NULL where there is no linker here. */
static Result *link_for(const char *target) {
        Request request = {.sm = 90, .name = "empty.ptx"};
        Result *result;
        char ptx[256];

        snprintf(ptx, sizeof(ptx),
                 "//\n.version 8.0\n.target %s\n.address_size 64\n.visible .entry k() { ret; }\n",
                 target);
        assert_int_equal(result_new(&result), 0);
        assert_int_equal(link_image(&request, result, FORMAT_PTX, ptx, strlen(ptx)), 0);
        return result->status == COMPILED_NO_COMPILER ? result_free(result) : result;
}

static void assert_linked(const char *target, CompiledStatus wanted) {
        _cleanup_(result_freep) Result *result = link_for(target);

        if (!result)
                skip();
        if (result->status != wanted)
                print_message("%s: %s\n", target, result->log);
        assert_int_equal(result->status, wanted);
        assert_int_equal(result->n_image > 0, wanted == COMPILED_OK);
}

static void older_ptx_links(void **state) {
        assert_linked("sm_80", COMPILED_OK);
}

static void ptx_for_the_devices_own_instructions_links(void **state) {
        assert_linked("sm_90a", COMPILED_OK);
        assert_linked("  sm_90a, texmode_independent", COMPILED_OK);
}

static void ptx_for_another_devices_own_instructions_is_refused(void **state) {
        assert_linked("sm_100a", COMPILED_FAILED);
}

static const char launches[] =
        "//\n.version 8.0\n.target sm_80\n.address_size 64\n"
        ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p, .param .b64 s);\n"
        ".visible .global .align 4 .u32 counter;\n"
        ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd1;\nld.param.u64 %rd1, [p];\n{\n"
        ".param .b64 a; .param .b64 s; .param .b32 o;\n"
        "st.param.b64 [a], %rd1;\nst.param.b64 [s], 0;\n"
        "call (o), cudaLaunchDeviceV2, (a, s);\n}\nst.global.u32 [counter], 1;\nret;\n}\n";

static void a_cubin_with_the_device_runtime_tells_the_users_names_only(void **state) {
        Request request = {.sm = 90, .name = "launches.ptx"};
        _cleanup_(result_freep) Result *result = NULL;
        unsigned sm;

        assert_int_equal(result_new(&result), 0);
        assert_int_equal(link_image(&request, result, FORMAT_PTX, launches, strlen(launches)), 0);
        if (result->status == COMPILED_NO_COMPILER)
                skip();
        assert_int_equal(result->status, COMPILED_OK);
        assert_int_equal(cubin_scan(result->image, result->n_image, result->signature, &sm), 0);
        assert_int_equal(result->signature->n_kernels, 1);
        assert_non_null(signature_find(result->signature, "k"));
        assert_true(result->signature->has_launches);
        assert_int_equal(result->signature->n_variables, 1);
        assert_string_equal(result->signature->variables[0], "counter");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(older_ptx_links),
                cmocka_unit_test(ptx_for_the_devices_own_instructions_links),
                cmocka_unit_test(ptx_for_another_devices_own_instructions_is_refused),
                cmocka_unit_test(a_cubin_with_the_device_runtime_tells_the_users_names_only),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
