/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activity: what one process stores another reads, whatever the first has made of the page.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/gpuq.pb-c.h"
#include "util/activity.h"

#define S UINT64_C(1000000000)

static void assert_is(Activity activity, const char *wanted) {
        char text[160];

        activity_describe(&activity, text, sizeof(text));
        assert_string_equal(text, wanted);
}

static const ActivityPage *page_of_other(int *ret_fd) {
        const ActivityPage *page;

        assert_int_equal(activity_new(ret_fd, &page), 0);
        assert_int_equal(activity_adopt(*ret_fd), 0);
        return page;
}

static void what_is_stored_is_read_with_its_age(void **state) {
        const ActivityPage *page;
        uint64_t for_ms;
        int fd;

        page = page_of_other(&fd);
        assert_is(activity_read(page, S, &for_ms), "an unknown activity");
        activity_begin(ACTIVITY_REQUEST, 0, 1001, 5);
        assert_is(activity_read(page, S, &for_ms), "a request (session 5, uid 1001)");
        activity_begin(ACTIVITY_REQUEST, 10, 1001, 5);
        assert_is(activity_read(page, S, &for_ms), "request cancel (session 5, uid 1001)");
        assert_int_equal(for_ms, 0);

        activity_sample(S);
        activity_sample(3 * S);
        activity_read(page, 31 * S, &for_ms);
        assert_int_equal(for_ms, 30000);

        /* Other work, and the same work in another turn: no sample has seen that yet. */
        activity_begin(ACTIVITY_REQUEST, 10, 1002, 5);
        activity_read(page, 31 * S, &for_ms);
        assert_int_equal(for_ms, 0);
        activity_begin(ACTIVITY_REQUEST, 10, 1001, 5);
        activity_pause();
        activity_read(page, 31 * S, &for_ms);
        assert_int_equal(for_ms, 0);
        activity_free(page);
        close(fd);
}

static void nothing_in_the_page_is_believed(void **state) {
        const ActivityPage *page;
        uint64_t for_ms;
        int fd;

        page = page_of_other(&fd);
        memset(activity_page, 0xff, ACTIVITY_PAGE_BYTES);
        assert_is(activity_read(page, S, &for_ms), "an unknown activity");
        assert_int_equal(for_ms, 0); /* since a time that is still to come */
        activity_begin(ACTIVITY_REQUEST, UINT32_MAX, 1, 2);
        assert_is(activity_read(page, S, &for_ms),
                  "a request of kind 4294967295 (session 2, uid 1)");
        activity_begin(ACTIVITY_REQUEST, 1, ACTIVITY_NOBODY, 2);
        assert_is(activity_read(page, S, &for_ms), "a request of kind 1 (session 2)");
        activity_begin(ACTIVITY_WORKER, 9, 1001, 2);
        assert_is(activity_read(page, S, &for_ms),
                  "a message of a worker of kind 9 (worker 2, uid 1001)");
        assert_is((Activity){.kind = _ACTIVITY_KIND_N}, "an unknown activity (uid 0)");
        activity_free(page);
        close(fd);
}

static void the_page_keeps_its_size(void **state) {
        const ActivityPage *page;
        int fd;

        page = page_of_other(&fd);
        assert_int_equal(ftruncate(fd, 0), -1);
        assert_int_equal(ftruncate(fd, 1 << 20), -1);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
        activity_free(page);
        close(fd);
}

static void other_descriptors_are_no_page(void **state) {
        ActivityPage *before = activity_page;
        int fds[] = {-1, open("/dev/null", O_RDWR), memfd_create("unsealed", MFD_ALLOW_SEALING),
                     memfd_create("short", MFD_ALLOW_SEALING)};

        assert_int_equal(ftruncate(fds[2], ACTIVITY_PAGE_BYTES), 0);
        assert_int_equal(fcntl(fds[3], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
        for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
                assert_int_equal(activity_adopt(fds[i]), -EINVAL);
                close(fds[i]);
        }
        assert_ptr_equal(activity_page, before);
        activity_shift(ACTIVITY_TICK);
}

/* The names stand twice, in gpuq.proto and in activity.c. */
static void each_request_has_its_name(void **state) {
        const ProtobufCMessageDescriptor *request = &gpuq__v1__request__descriptor;
        unsigned n_named = 0;

        for (unsigned i = 0; i < request->n_fields; i++) {
                const ProtobufCFieldDescriptor *field = &request->fields[i];

                if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
                        continue;
                assert_non_null(activity_request_name(field->id));
                assert_string_equal(activity_request_name(field->id), field->name);
                n_named++;
        }
        for (unsigned i = 0; i < 1000; i++)
                n_named -= activity_request_name(i) != NULL;
        assert_int_equal(n_named, 0);
}

static void each_kind_has_its_name(void **state) {
        char text[160], previous[160] = "";

        for (uint32_t i = 0; i < _ACTIVITY_KIND_N; i++) {
                const Activity activity = {.kind = i, .uid = ACTIVITY_NOBODY};

                activity_describe(&activity, text, sizeof(text));
                assert_string_not_equal(text, previous);
                strcpy(previous, text);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_stored_is_read_with_its_age),
                cmocka_unit_test(nothing_in_the_page_is_believed),
                cmocka_unit_test(the_page_keeps_its_size),
                cmocka_unit_test(other_descriptors_are_no_page),
                cmocka_unit_test(each_request_has_its_name),
                cmocka_unit_test(each_kind_has_its_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
