/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "nvml.h"

static void all_of_a_gpu_is_read(void **state) {
        _cleanup_(nvml_freep) Nvml *nvml = nvml_new();
        NvmlReading reading;

        assert_non_null(nvml);
        nvml_read(nvml, "GPU-0", &reading);
        assert_int_equal(reading.utilization, 87);
        assert_int_equal(reading.temperature, 61);
        assert_int_equal(reading.power, 345);
        assert_int_equal(reading.power_max, 700);
        assert_int_equal(reading.memory_used, 30ull << 30);
        assert_int_equal(reading.memory_total, 80ull << 30);
}

static void what_it_does_not_tell_is_unknown(void **state) {
        _cleanup_(nvml_freep) Nvml *nvml = nvml_new();
        NvmlReading reading;

        nvml_read(nvml, "GPU-1", &reading);
        assert_int_equal(reading.utilization, NVML_UNKNOWN);
        assert_int_equal(reading.temperature, NVML_UNKNOWN);
        assert_int_equal(reading.power, NVML_UNKNOWN);
        assert_int_equal(reading.memory_used, 30ull << 30);

        nvml_read(nvml, "GPU-7", &reading);
        assert_int_equal(reading.utilization, NVML_UNKNOWN);
        assert_int_equal(reading.memory_used, 0);
        nvml_read(NULL, "GPU-0", &reading);
        assert_int_equal(reading.power, NVML_UNKNOWN);
        assert_int_equal(reading.memory_used, 0);
}

static void modes_are_by_index(void **state) {
        _cleanup_(nvml_freep) Nvml *nvml = nvml_new();

        assert_int_equal(nvml_count(nvml), 2);
        assert_int_equal(nvml_mode(nvml, 0), 0);
        assert_int_equal(nvml_mode(nvml, 1), 3);
        assert_int_equal(nvml_mode(nvml, 2), NVML_UNKNOWN);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_of_a_gpu_is_read),
                cmocka_unit_test(what_it_does_not_tell_is_unknown),
                cmocka_unit_test(modes_are_by_index),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
