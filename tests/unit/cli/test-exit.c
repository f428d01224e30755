/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "exit.h"

static void success_is_zero(void **state) {
        assert_int_equal(exit_code(EXIT_WHEN_ASKED, 0), 0);
        assert_int_equal(exit_code(EXIT_WHEN_RUN, 3), 0);
}

static void the_promised_codes_are_kept(void **state) {
        assert_int_equal(exit_code(EXIT_WHEN_ASKED, GPUQ_E_CONNECT), 3);
        assert_int_equal(exit_code(EXIT_WHEN_RUN, GPUQ_E_CLOSED), 3);
        assert_int_equal(exit_code(EXIT_WHEN_ASKED, GPUQ_E_NOT_FOUND), 4);
        assert_int_equal(exit_code(EXIT_WHEN_ASKED, GPUQ_E_DENIED), 5);
        assert_int_equal(exit_code(EXIT_WHEN_RUN, GPUQ_E_QUOTA), 5);
        assert_int_equal(exit_code(EXIT_WHEN_RUN, GPUQ_E_TIMEOUT), 124);
        assert_int_equal(exit_code(EXIT_WHEN_WAITED, GPUQ_E_TIMEOUT), 124);
        assert_int_equal(exit_code(EXIT_WHEN_RUN, GPUQ_E_COMPILE), 1);
        assert_int_equal(exit_code(EXIT_WHEN_WAITED, GPUQ_E_CANCELLED), 1);
}

static void a_wrong_job_is_usage_only_of_who_described_it(void **state) {
        assert_int_equal(exit_code(EXIT_WHEN_RUN, GPUQ_E_INVALID), 2);
        assert_int_equal(exit_code(EXIT_WHEN_RUN, GPUQ_E_NOT_FOUND), 2);
        assert_int_equal(exit_code(EXIT_WHEN_WAITED, GPUQ_E_INVALID), 1);
        assert_int_equal(exit_code(EXIT_WHEN_WAITED, GPUQ_E_NOT_FOUND), 1);
}

static void every_error_is_a_failure(void **state) {
        for (int when = EXIT_WHEN_ASKED; when <= EXIT_WHEN_WAITED; when++)
                for (int error = -120; error < 0; error++)
                        assert_int_not_equal(exit_code((ExitWhen)when, error), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(success_is_zero),
                cmocka_unit_test(the_promised_codes_are_kept),
                cmocka_unit_test(a_wrong_job_is_usage_only_of_who_described_it),
                cmocka_unit_test(every_error_is_a_failure),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
