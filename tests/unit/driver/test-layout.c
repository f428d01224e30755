/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our declarations of the CUDA driver API against those of cuda.h.
 */
#include "layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void sizes_offsets_and_values_are_those_of_cuda_h(void **state) {
        size_t i;

        for (i = 0; layout_ours[i].name; i++) {
                assert_string_equal(layout_ours[i].name, layout_cuda[i].name);
                if (layout_ours[i].value != layout_cuda[i].value)
                        fail_msg("%s is %ld, in cuda.h %ld", layout_ours[i].name,
                                 layout_ours[i].value, layout_cuda[i].value);
        }
        assert_null(layout_cuda[i].name);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sizes_offsets_and_values_are_those_of_cuda_h),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
