/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "npy.h"

static Problem problem;

static int clear_problem(void **state) {
        problem_clear(&problem);
        return 0;
}

static int file_of(const void *bytes, size_t n_bytes) {
        int fd = memfd_create("npy", MFD_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, bytes, n_bytes), n_bytes);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        return fd;
}

static int parse(const char *text, NpyArray *ret_array) {
        return npy_parse_header(text, strlen(text), "x.npy", &problem, ret_array);
}

static void assert_refused(const char *text, const char *words) {
        NpyArray array;

        assert_int_equal(parse(text, &array), -EINVAL);
        assert_text_has(problem_text(&problem), "x.npy: ");
        assert_text_has(problem_text(&problem), words);
}

static void a_header_is_read_in_any_order(void **state) {
        NpyArray array;

        assert_int_equal(
                parse("{'shape': (3, 4), 'descr': \"<f8\",'fortran_order':True}  \n", &array), 0);
        assert_string_equal(array.dtype->name, "float64");
        assert_true(array.fortran_order);
        assert_int_equal(array.n_dims, 2);
        assert_int_equal(array.shape[0], 3);
        assert_int_equal(array.shape[1], 4);
        assert_int_equal(array.n_elements, 12);
        assert_int_equal(array.n_bytes, 96);
}

static void zero_dimensions_are_one_element(void **state) {
        NpyArray array;

        assert_int_equal(parse("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", &array),
                         0);
        assert_int_equal(array.n_dims, 0);
        assert_int_equal(array.n_bytes, 1);
}

static void an_empty_array_may_have_long_sides(void **state) {
        NpyArray array;

        assert_int_equal(parse("{'descr': '<c16', 'fortran_order': False, "
                               "'shape': (9223372036854775807, 4611686018427387904L, 0), }",
                               &array),
                         0);
        assert_int_equal(array.n_elements, 0);
        assert_int_equal(array.n_bytes, 0);
}

static void broken_headers_are_refused(void **state) {
        static const char *const headers[] = {
                "",
                "x",
                "{",
                "{}",
                "{'descr': '<f8'}",
                "{'descr': '<f8', 'fortran_order': False, 'shape': (3), }",
                "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), } x",
                "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), ",
                "{'descr': '<f8', 'fortran_order': False, 'shape': (3,",
                "{'descr': '<f8', 'fortran_order': False, 'shape': 3, }",
                "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }",
                "{'descr': '<f8', 'fortran_order': False, 'shape': (3 4), }",
                "{'descr': '<f8', 'fortran_order': False, 'shape': (,), }",
                "{'descr': '<f8', 'fortran_order': False, 'shape': (18446744073709551616,), }",
                "{'descr': '<f8', 'fortran_order': 0, 'shape': (3,), }",
                "{'descr': '<f8', 'fortran_order': False 'shape': (3,), }",
                "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (3,), }",
                "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'more': 1}",
                "{'descr': <f8, 'fortran_order': False, 'shape': (3,), }",
                "{'descr': '<f8, 'fortran_order': False, 'shape': (3,), }",
                "{'descr': '\\x3cf8', 'fortran_order': False, 'shape': (3,), }",
        };

        for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
                assert_refused(headers[i], "malformed NPY header");
}

static void a_nul_in_the_header_is_refused(void **state) {
        static const char text[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\0";
        NpyArray array;

        assert_int_equal(npy_parse_header(text, sizeof(text), "x.npy", &problem, &array), -EINVAL);
}

static void too_many_dimensions_are_refused(void **state) {
        char text[1024] = "{'descr': '<f8', 'fortran_order': False, 'shape': (";

        for (int i = 0; i < NPY_DIMS_MAX + 1; i++)
                strcat(text, "1,");
        strcat(text, ")}");
        assert_refused(text, "64 dimensions");
}

static void a_shape_beyond_memory_is_refused(void **state) {
        assert_refused(
                "{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976,), }",
                "larger than any memory");
        assert_refused(
                "{'descr': '|i1', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
                "larger than any memory");
}

static void other_dtypes_say_what_was_found(void **state) {
        assert_refused("{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }",
                       "big-endian (`>f8')");
        assert_refused("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
                       "Python objects");
        assert_refused("{'descr': '<U3', 'fortran_order': False, 'shape': (3,), }",
                       "its dtype is `<U3'; expected one of");
        assert_refused("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }",
                       "structured");
}

/* Version 1.0 by hand, with the smallest padding there can be: none. */
#define DICTIONARY "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n"
#define FILE_1_0   "\x93NUMPY\x01\x00\x3a\x00" DICTIONARY
_Static_assert(sizeof(DICTIONARY) - 1 == 0x3a, "the length above");

static void assert_reads(const char *bytes, size_t n_bytes) {
        int fd = file_of(bytes, n_bytes);
        int16_t data[2] = {};
        NpyArray array;

        assert_int_equal(npy_read_header(fd, "x.npy", &problem, &array), 0);
        assert_int_equal(array.n_bytes, sizeof(data));
        assert_int_equal(npy_read_data(fd, "x.npy", &array, data, &problem), 0);
        assert_int_equal(data[0], 1);
        assert_int_equal(data[1], -2);
        close(fd);
}

static void all_versions_are_read(void **state) {
        static const char v1[] = FILE_1_0 "\x01\x00\xfe\xff";
        static const char v2[] = "\x93NUMPY\x02\x00\x3a\x00\x00\x00" DICTIONARY "\x01\x00\xfe\xff";
        static const char v3[] = "\x93NUMPY\x03\x00\x3a\x00\x00\x00" DICTIONARY "\x01\x00\xfe\xff";

        assert_reads(v1, sizeof(v1) - 1);
        assert_reads(v2, sizeof(v2) - 1);
        assert_reads(v3, sizeof(v3) - 1);
}

static void assert_file_refused(const char *bytes, size_t n_bytes, const char *words) {
        int fd = file_of(bytes, n_bytes);
        NpyArray array;

        assert_int_equal(npy_read_header(fd, "x.npy", &problem, &array), -EINVAL);
        assert_text_has(problem_text(&problem), words);
        close(fd);
}

#define REFUSED(bytes, words) assert_file_refused(bytes, sizeof(bytes) - 1, words)

static void files_that_are_something_else_are_refused(void **state) {
        REFUSED("", "not an NPY file");
        REFUSED("\x93NUMP", "not an NPY file");
        REFUSED("PK\x03\x04 a zip file, as numpy's savez makes", "does not start with");
        REFUSED("\x93NUMPY\x04\x00\x3a\x00" DICTIONARY, "version 4.0");
        REFUSED("\x93NUMPY\x01\x01\x3a\x00" DICTIONARY, "version 1.1");
        REFUSED("\x93NUMPY\x01\x00\xff\x00" DICTIONARY, "truncated");
        REFUSED("\x93NUMPY\x02\x00\xff\xff\xff\xff" DICTIONARY, "the limit is");
}

static void the_data_must_be_as_long_as_promised(void **state) {
        REFUSED(FILE_1_0 "\x01\x00\xfe", "it holds 3 bytes of data, but its header declares 4");
        REFUSED(FILE_1_0, "it holds 0 bytes");
        REFUSED(FILE_1_0 "\x01\x00\xfe\xff\x00", "it holds 5 bytes");
}

static void assert_pipe_refused(const char *bytes, size_t n_bytes, const char *words) {
        int16_t data[2];
        NpyArray array;
        int fds[2];

        assert_int_equal(pipe(fds), 0);
        assert_int_equal(write(fds[1], bytes, n_bytes), n_bytes);
        close(fds[1]);

        assert_int_equal(npy_read_header(fds[0], "x.npy", &problem, &array), 0);
        assert_int_equal(npy_read_data(fds[0], "x.npy", &array, data, &problem), -EINVAL);
        assert_text_has(problem_text(&problem), words);
        close(fds[0]);
}

static void a_pipe_is_measured_as_it_is_read(void **state) {
        static const char cut[] = FILE_1_0 "\x01\x00\xfe", more[] = FILE_1_0 "\x01\x00\xfe\xff\x00";

        assert_pipe_refused(cut, sizeof(cut) - 1, "it holds 3 bytes");
        assert_pipe_refused(more, sizeof(more) - 1, "too long");
}

static void assert_round_trip(const char *dtype, bool fortran, const uint64_t *shape,
                              unsigned n_dims) {
        NpyArray array = {.fortran_order = fortran}, again;
        uint8_t data[256], read_back[256];
        int fd = memfd_create("npy", MFD_CLOEXEC);

        for (size_t i = 0; i < sizeof(data); i++)
                data[i] = (uint8_t)(i * 7);
        assert_int_equal(dtype_from_name(dtype, &array.dtype), 0);
        assert_int_equal(npy_array_set_shape(&array, shape, n_dims), 0);
        assert_true(array.n_bytes <= sizeof(data));

        assert_int_equal(npy_write(fd, &array, data), 0);
        assert_int_equal((lseek(fd, 0, SEEK_CUR) - (off_t)array.n_bytes) % 64, 0);
        lseek(fd, 0, SEEK_SET);
        assert_int_equal(npy_read_header(fd, "x.npy", &problem, &again), 0);
        assert_int_equal(npy_read_data(fd, "x.npy", &again, read_back, &problem), 0);

        assert_ptr_equal(again.dtype, array.dtype);
        assert_int_equal(again.fortran_order, fortran);
        assert_int_equal(again.n_dims, n_dims);
        assert_memory_equal(again.shape, shape, n_dims * sizeof(*shape));
        assert_memory_equal(read_back, data, array.n_bytes);
        close(fd);
}

static void what_is_written_is_read_again(void **state) {
        uint64_t ones[NPY_DIMS_MAX];

        for (size_t i = 0; i < NPY_DIMS_MAX; i++)
                ones[i] = 1;
        assert_round_trip("float64", false, (uint64_t[]){5}, 1);
        assert_round_trip("complex128", true, (uint64_t[]){2, 3, 2}, 3);
        assert_round_trip("bool", false, NULL, 0);
        assert_round_trip("int8", false, (uint64_t[]){0}, 1);
        assert_round_trip("uint16", false, ones, NPY_DIMS_MAX);
}

static void what_is_written_is_what_numpy_writes(void **state) {
        static const char wanted[] = "\x93NUMPY\x01\x00\x76\x00"
                                     "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
        NpyArray array = {};
        char bytes[128 + 24], data[24] = {};
        int fd = memfd_create("npy", MFD_CLOEXEC);

        assert_int_equal(dtype_from_name("float32", &array.dtype), 0);
        assert_int_equal(npy_array_set_shape(&array, (uint64_t[]){2, 3}, 2), 0);
        assert_int_equal(npy_write(fd, &array, data), 0);
        assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
        assert_memory_equal(bytes, wanted, sizeof(wanted) - 1);
        for (size_t i = sizeof(wanted) - 1; i < 127; i++)
                assert_int_equal(bytes[i], ' ');
        assert_int_equal(bytes[127], '\n');
        close(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(a_header_is_read_in_any_order, clear_problem),
                cmocka_unit_test_teardown(zero_dimensions_are_one_element, clear_problem),
                cmocka_unit_test_teardown(an_empty_array_may_have_long_sides, clear_problem),
                cmocka_unit_test_teardown(broken_headers_are_refused, clear_problem),
                cmocka_unit_test_teardown(a_nul_in_the_header_is_refused, clear_problem),
                cmocka_unit_test_teardown(too_many_dimensions_are_refused, clear_problem),
                cmocka_unit_test_teardown(a_shape_beyond_memory_is_refused, clear_problem),
                cmocka_unit_test_teardown(other_dtypes_say_what_was_found, clear_problem),
                cmocka_unit_test_teardown(all_versions_are_read, clear_problem),
                cmocka_unit_test_teardown(files_that_are_something_else_are_refused, clear_problem),
                cmocka_unit_test_teardown(the_data_must_be_as_long_as_promised, clear_problem),
                cmocka_unit_test_teardown(a_pipe_is_measured_as_it_is_read, clear_problem),
                cmocka_unit_test_teardown(what_is_written_is_read_again, clear_problem),
                cmocka_unit_test_teardown(what_is_written_is_what_numpy_writes, clear_problem),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
