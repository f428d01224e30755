/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the times of a job to the change that would help it most.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy.h"
#include "util/macro.h"

#define MIB (UINT64_C(1) << 20)

static const struct {
        const char *what;
        AdviceJob job;
        Advice advice;
} rows[] = {
        {"nothing is known yet", {0}, ADVICE_NOTHING},
        {"one long kernel", {.queue_us = 20, .launch_us = 40, .ran_us = 500000}, ADVICE_NOTHING},
        {"a lone short job",
         {.launch_us = 60, .ran_us = 10, .n_equal = 1, .n_beside = 1},
         ADVICE_NOTHING},
        {"short equal jobs, one at a time",
         {.queue_us = 5, .launch_us = 30, .ran_us = 12, .n_equal = 5000, .n_beside = 1},
         ADVICE_IN_FLIGHT},
        {"the same, prepared",
         {.launch_us = 20, .ran_us = 12, .n_equal = 5000, .n_beside = 1, .is_prepared = true},
         ADVICE_IN_FLIGHT},
        {"short equal jobs, many at once",
         {.queue_us = 40, .launch_us = 90, .ran_us = 12, .n_equal = 5000, .n_beside = 60},
         ADVICE_PREPARE},
        {"the same, prepared",
         {.launch_us = 90, .ran_us = 12, .n_equal = 5000, .n_beside = 60, .is_prepared = true},
         ADVICE_NOTHING},
        {"short equal jobs that others keep from the device",
         {.queue_us = 400, .launch_us = 90, .ran_us = 12, .n_equal = 5000, .n_beside = 60},
         ADVICE_NOTHING},
        {"the same, one at a time",
         {.queue_us = 400, .launch_us = 90, .ran_us = 12, .n_equal = 5000, .n_beside = 1},
         ADVICE_NOTHING},
        {"short equal jobs, of which nobody knows how many at once",
         {.launch_us = 30, .ran_us = 12, .n_equal = 5000},
         ADVICE_NOTHING},
        {"short, but few",
         {.ran_us = 12, .n_equal = ADVICE_MANY - 1, .n_beside = 9},
         ADVICE_NOTHING},
        {"short enough by a little",
         {.ran_us = ADVICE_SHORT_US - 1, .n_equal = ADVICE_MANY, .n_beside = 9},
         ADVICE_PREPARE},
        {"not short any more",
         {.ran_us = ADVICE_SHORT_US, .n_equal = ADVICE_MANY, .n_beside = 9},
         ADVICE_NOTHING},
        {"copies take most of the run", {.ran_us = 9000, .n_moved = 400 * MIB}, ADVICE_KEEP_DATA},
        {"copies take little of it", {.ran_us = 900000, .n_moved = 400 * MIB}, ADVICE_NOTHING},
        {"copies, of many short equal jobs",
         {.ran_us = 100, .n_moved = 4 * MIB, .n_equal = 5000, .n_beside = 1},
         ADVICE_KEEP_DATA},
        {"a clock that says less than the bytes take",
         {.ran_us = 1, .n_moved = 400 * MIB},
         ADVICE_KEEP_DATA},
        {"it has not run yet", {.queue_us = 800, .n_moved = 400 * MIB}, ADVICE_NOTHING},
        {"others had the device for longer than the copies",
         {.queue_us = 90000, .ran_us = 9000, .n_moved = 400 * MIB},
         ADVICE_NOTHING},
        {"its module was loaded on one more device",
         {.module_us = 700000, .ran_us = 300, .was_elsewhere = true},
         ADVICE_PIN},
        {"its module was loaded for the first time",
         {.module_us = 700000, .ran_us = 300},
         ADVICE_NOTHING},
        {"the same on the device that it named",
         {.module_us = 700000, .ran_us = 300, .is_pinned = true, .was_elsewhere = true},
         ADVICE_NOTHING},
        {"its module loaded quickly", {.module_us = 100, .ran_us = 30000}, ADVICE_NOTHING},
        {"it followed a long job",
         {.dependencies_us = 4000000, .ran_us = 9000, .n_moved = 400 * MIB},
         ADVICE_NOTHING},
        {"it waits for memory, whatever else",
         {.module_us = 700000, .was_elsewhere = true, .lacks_memory = true},
         ADVICE_LESS_MEMORY},
        {"copies, but it failed",
         {.ran_us = 9000, .n_moved = 400 * MIB, .has_failed = true},
         ADVICE_NOTHING},
};

static void each_table_row_gets_its_advice(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (advice_choose(&rows[i].job) != rows[i].advice)
                        fail_msg("%s: advice %d instead of %d", rows[i].what,
                                 (int)advice_choose(&rows[i].job), (int)rows[i].advice);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_table_row_gets_its_advice),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
