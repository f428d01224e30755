/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <string.h>

#include "argument.h"
#include "exit.h"

static Problem problem;

static int clear_problem(void **state) {
        problem_clear(&problem);
        return 0;
}

static Argument parsed(const char *text) {
        Argument argument = {};

        if (argument_parse(text, 1, &problem, &argument) != 0)
                fail_msg("%s", problem_text(&problem));
        return argument;
}

static void assert_refused(const char *text, const char *words) {
        Argument argument;

        assert_int_equal(argument_parse(text, 3, &problem, &argument), EXIT_USAGE);
        assert_text_has(problem_text(&problem), "argument 3 `");
        assert_text_has(problem_text(&problem), text);
        assert_text_has(problem_text(&problem), words);
}

static void scalars_have_their_type_and_bits(void **state) {
        static const struct {
                const char *text;
                gpuq_kind kind;
                size_t size;
                uint64_t bits;
        } scalars[] = {
                {"i32:5", GPUQ_I32, 4, 5},
                {"i32:-1", GPUQ_I32, 4, 0xffffffff},
                {"u32:4294967295", GPUQ_I32, 4, 0xffffffff},
                {"i64:-9223372036854775808", GPUQ_I64, 8, 1ull << 63},
                {"u64:0xffffffffffffffff", GPUQ_I64, 8, UINT64_MAX},
                {"f32:2.5", GPUQ_F32, 4, 0x40200000},
                {"f64:1e-3", GPUQ_F64, 8, 0x3f50624dd2f1a9fc},
                {"i8:-128", GPUQ_BYTES, 1, 0x80},
                {"u8:255", GPUQ_BYTES, 1, 0xff},
                {"i16:-2", GPUQ_BYTES, 2, 0xfffe},
                {"u16:65535", GPUQ_BYTES, 2, 0xffff},
                {"bool:true", GPUQ_BYTES, 1, 1},
                {"bool:0", GPUQ_BYTES, 1, 0},
        };

        for (size_t i = 0; i < sizeof(scalars) / sizeof(*scalars); i++) {
                Argument argument = parsed(scalars[i].text);

                assert_true(argument.is_scalar);
                assert_int_equal(argument.kind, scalars[i].kind);
                assert_int_equal(argument.size, scalars[i].size);
                assert_memory_equal(&argument.bits, &scalars[i].bits, argument.size);
        }
}

static void wrong_scalars_are_named(void **state) {
        assert_refused("f32:abc", "argument 3 `f32:abc': not a number");
        assert_refused("i32:2.5", "not a number");
        assert_refused("i32:", "not a number");
        assert_refused("i32:2147483648", "out of range for i32: -2147483648 to 2147483647");
        assert_refused("u8:256", "out of range for u8: 0 to 255");
        assert_refused("i64:9223372036854775808", "out of range for i64");
        assert_refused("u64:18446744073709551616", "0 to 18446744073709551615");
        assert_refused("f32:1e39", "out of range for f32");
        assert_refused("bool:yes", "expected true or false");
        assert_refused("u32:-1", "out of range for u32: 0 to 4294967295");
}

static void files_may_have_colons_in_their_names(void **state) {
        Argument in = parsed("in:a:b.npy"), out = parsed("out:a:b.npy:f32:3");

        assert_string_equal(in.path, "a:b.npy");
        assert_int_equal(in.direction, GPUQ_IN);
        assert_string_equal(out.path, "a:b.npy");
        assert_int_equal(out.direction, GPUQ_OUT);
        assert_string_equal(out.array.dtype->name, "float32");
        argument_clear(&in);
        argument_clear(&out);
}

static void outputs_have_a_shape(void **state) {
        Argument out = parsed("out:y.npy:float64:100,3"), empty = parsed("out:y.npy:<i8:0");

        assert_int_equal(out.array.n_dims, 2);
        assert_int_equal(out.array.n_elements, 300);
        assert_int_equal(out.array.n_bytes, 2400);
        assert_int_equal(empty.array.n_bytes, 0);
        argument_clear(&out);
        argument_clear(&empty);
}

static void wrong_outputs_are_named(void **state) {
        assert_refused("out:y.npy", "expected out:FILE:DTYPE:N");
        assert_refused("out:y.npy:f8", "expected out:FILE:DTYPE:N");
        assert_refused("out:y.npy:f9:3", "unknown dtype `f9'; expected one of bool");
        assert_refused("out:y.npy:i8:3", "write int8 or int64");
        assert_refused("out:y.npy:u8:3", "write uint8 or uint64");
        assert_refused("out:y.npy:>f8:3", "big-endian");
        assert_refused("out:y.npy:f8:3,", "`' is not a length");
        assert_refused("out:y.npy:f8:three", "`three' is not a length");
        assert_refused("out:y.npy:f8:-3", "`-3' is not a length");
        assert_refused("out:y.npy:f8:9223372036854775807", "larger than any memory");
        assert_refused("out::f8:3", "the file name is empty");
        assert_refused("in:", "the file name is empty");
}

static void other_words_say_what_is_wanted(void **state) {
        assert_refused("a.npy", "expected in:FILE");
        assert_refused("int:5", "unknown type `int'; expected in:FILE");
        assert_refused(":5", "unknown type `'");
        assert_refused("IN:a.npy", "unknown type `IN'");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(scalars_have_their_type_and_bits, clear_problem),
                cmocka_unit_test_teardown(wrong_scalars_are_named, clear_problem),
                cmocka_unit_test_teardown(files_may_have_colons_in_their_names, clear_problem),
                cmocka_unit_test_teardown(outputs_have_a_shape, clear_problem),
                cmocka_unit_test_teardown(wrong_outputs_are_named, clear_problem),
                cmocka_unit_test_teardown(other_words_say_what_is_wanted, clear_problem),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
