/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <string.h>

#include "dtype.h"

static void every_dtype_is_found_by_the_descr_it_writes(void **state) {
        static const char *const names[] = {
                "bool",   "int8",   "int16",   "int32",   "int64",   "uint8",     "uint16",
                "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128"};

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                const Dtype *dtype = NULL, *again = NULL;
                char descr[8];

                assert_int_equal(dtype_from_name(names[i], &dtype), 0);
                assert_string_equal(dtype->name, names[i]);
                dtype_descr(dtype, descr);
                assert_int_equal(dtype_from_descr(descr, &again), 0);
                assert_ptr_equal(dtype, again);
                assert_text_has(dtype_names(), names[i]);
        }
}

static void numpys_codes_count_bytes_and_gpuqs_count_bits(void **state) {
        const Dtype *dtype;

        assert_int_equal(dtype_from_name("f8", &dtype), 0);
        assert_string_equal(dtype->name, "float64");
        assert_int_equal(dtype_from_name("f64", &dtype), 0);
        assert_string_equal(dtype->name, "float64");
        assert_int_equal(dtype_from_name("<i8", &dtype), 0);
        assert_string_equal(dtype->name, "int64");
        assert_int_equal(dtype_from_name("f16", &dtype), 0);
        assert_string_equal(dtype->name, "float16");
}

static void a_name_with_two_meanings_is_refused(void **state) {
        const Dtype *dtype;

        assert_int_equal(dtype_from_name("i8", &dtype), DTYPE_E_AMBIGUOUS);
        assert_int_equal(dtype_from_name("u8", &dtype), DTYPE_E_AMBIGUOUS);
}

static void other_dtypes_are_refused(void **state) {
        static const char *const descrs[] = {"",        "<", "<f16", "|O", "|S10", "<U5",
                                             "<M8[ns]", "f", "<f8 ", "8",  "|V8",  "<<f8"};
        const Dtype *dtype;

        for (size_t i = 0; i < sizeof(descrs) / sizeof(*descrs); i++)
                assert_int_equal(dtype_from_descr(descrs[i], &dtype), DTYPE_E_UNKNOWN);
        assert_int_equal(dtype_from_descr(">f8", &dtype), DTYPE_E_BIG_ENDIAN);
        assert_int_equal(dtype_from_descr(">i1", &dtype), 0);
        assert_int_equal(dtype_from_descr("=i4", &dtype), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_dtype_is_found_by_the_descr_it_writes),
                cmocka_unit_test(numpys_codes_count_bytes_and_gpuqs_count_bits),
                cmocka_unit_test(a_name_with_two_meanings_is_refused),
                cmocka_unit_test(other_dtypes_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
