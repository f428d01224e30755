/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "util/memory_stream.h"

#define MIB ((rlim_t)1 << 20)

static void what_is_written_is_there_after_a_flush(void **state) {
        char *data;
        size_t n_data;
        FILE *stream = memory_stream_open(&data, &n_data);

        assert_non_null(stream);
        fputs("one ", stream);
        assert_int_equal(ftello(stream), 4);
        assert_int_equal(memory_stream_flush(stream), 0);
        assert_string_equal(data, "one ");
        fprintf(stream, "%d", 2);
        assert_int_equal(ftello(stream), 5);
        assert_int_equal(memory_stream_close(stream), 0);
        assert_string_equal(data, "one 2");
        assert_int_equal(n_data, 5);
        free(data);
}

static void nothing_may_be_written(void **state) {
        char *data;
        size_t n_data;
        FILE *stream = memory_stream_open(&data, &n_data);

        assert_int_equal(memory_stream_close(stream), 0);
        assert_int_equal(n_data, 0);
        assert_string_equal(data, "");
        free(data);
}

static void much_is_written_in_parts(void **state) {
        char *data, part[1000];
        size_t n_data;
        FILE *stream = memory_stream_open(&data, &n_data);

        memset(part, 'x', sizeof(part));
        for (unsigned i = 0; i < 1000; i++)
                assert_int_equal(fwrite(part, 1, sizeof(part), stream), sizeof(part));
        assert_int_equal(memory_stream_close(stream), 0);
        assert_int_equal(n_data, 1000000);
        assert_int_equal(strspn(data, "x"), n_data);
        free(data);
}

/* As of a compiler's memory limit. Later writes, for which there may be memory again, change nothing. */
static void a_write_without_memory_is_never_forgotten(void **state) {
        struct rlimit before, limit;
        char *data, *part = malloc(MIB);
        size_t n_data;
        FILE *stream = memory_stream_open(&data, &n_data);

        assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
        limit = before;
        limit.rlim_cur = 64 * MIB;
        memset(part, 'x', MIB);
        assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
        for (unsigned i = 0; i < 128; i++)
                (void)fwrite(part, 1, MIB, stream);
        assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
        fputs("more", stream);
        assert_true(memory_stream_flush(stream) < 0);
        assert_true(memory_stream_close(stream) < 0);
        free(data);
        free(part);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_written_is_there_after_a_flush),
                cmocka_unit_test(nothing_may_be_written),
                cmocka_unit_test(much_is_written_in_parts),
#ifndef __SANITIZE_ADDRESS__ /* whose shadow is larger than any limit */
                cmocka_unit_test(a_write_without_memory_is_never_forgotten),
#endif
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
