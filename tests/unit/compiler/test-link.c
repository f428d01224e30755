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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(older_ptx_links),
                cmocka_unit_test(ptx_for_the_devices_own_instructions_links),
                cmocka_unit_test(ptx_for_another_devices_own_instructions_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
