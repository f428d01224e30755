/* SPDX-License-Identifier: Apache-2.0 */
/* A message is what was packed, or is refused: nothing behind it is read. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/protocol.h"

static const WorkerEnd ends[] = {{1, 2, 3}, {4, 5, 6}};

static Channel *open_channel(void) {
        int fds[CHANNEL_N_FDS];
        Channel *channel;

        assert_int_equal(channel_new(&channel, fds), 0);
        for (unsigned i = 0; i < CHANNEL_N_FDS; ++i)
                close(fds[i]);
        return channel;
}

/* Return: in memory of its own, exactly as long as it is. */
static uint8_t *pack(const WorkerMessage *message, size_t *ret_n) {
        Channel *channel = open_channel();
        const uint8_t *data;
        uint8_t *copy;

        assert_int_equal(protocol_pack(channel, message, &data, ret_n), 0);
        copy = malloc(*ret_n);
        assert_non_null(copy);
        memcpy(copy, data, *ret_n);
        channel_free(channel);
        return copy;
}

static uint8_t *pack_ends(const char *text, const char *more, size_t *ret_n) {
        return pack(&(WorkerMessage){{.kind = FROM_WORKER_ENDS, .id = 7, .n_items = 2},
                                     .text = text,
                                     .more = more,
                                     .items = ends},
                    ret_n);
}

static bool reads(const uint8_t *data, size_t n_data) {
        uint8_t *exact = malloc(n_data + !n_data);
        WorkerMessage message;
        bool good;

        memcpy(exact, data, n_data);
        good = protocol_read(exact, n_data, &message);
        free(exact);
        return good;
}

static void what_is_packed_is_read(void **state) {
        static const char *const texts[] = {NULL, "", "a", "seven b", "eight by", "some more text"};

        for (size_t i = 0; i < 36; ++i) {
                const char *text = texts[i % 6], *more = texts[i / 6];
                WorkerMessage read;
                size_t n;
                uint8_t *data = pack_ends(text, more, &n);

                assert_true(protocol_read(data, n, &read));
                assert_int_equal(read.head.kind, FROM_WORKER_ENDS);
                assert_int_equal(read.head.id, 7);
                assert_string_equal(read.text, text ? text : "");
                assert_string_equal(read.more, more ? more : "");
                assert_int_equal(read.head.n_items, 2);
                assert_int_equal((uintptr_t)read.items % 8, 0);
                assert_memory_equal(read.items, ends, sizeof(ends));
                free(data);
        }
}

static void what_is_cut_short_or_too_long_is_refused(void **state) {
        uint8_t longer[256] = {0};
        size_t n;
        uint8_t *data = pack_ends("a text", "another", &n);

        assert_true(reads(data, n));
        for (size_t k = 0; k < n; ++k)
                assert_false(reads(data, k));
        memcpy(longer, data, n);
        for (size_t k = n + 1; k < sizeof(longer); ++k)
                assert_false(reads(longer, k));
        free(data);
}

static void lengths_that_are_not_its_own_are_refused(void **state) {
        static const uint32_t lengths[] = {0, 1, 3, 12, 1u << 20, UINT32_MAX - 7, UINT32_MAX};
        size_t n;
        uint8_t *data = pack_ends("a text", "another", &n);
        WorkerHead *head = (WorkerHead *)data, saved = *head;

        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
                head->n_items = lengths[i];
                assert_false(reads(data, n));
                *head = saved;
                head->n_more = lengths[i];
                assert_false(reads(data, n));
                *head = saved;
                head->n_text = lengths[i];
                assert_false(reads(data, n));
                *head = saved;
        }
        free(data);
}

static void text_without_an_end_is_refused(void **state) {
        size_t n;
        uint8_t *data = pack_ends("a text", "another", &n);

        data[sizeof(WorkerHead) + 6] = 'x';
        assert_false(reads(data, n));
        data[sizeof(WorkerHead) + 6] = '\0';
        assert_true(reads(data, n));
        data[sizeof(WorkerHead) + 7 + 7] = 'x';
        assert_false(reads(data, n));
        free(data);
}

static void unknown_kind_is_refused(void **state) {
        WorkerHead head = {0};

        assert_false(reads((const uint8_t *)&head, sizeof(head)));
        for (head.kind = TO_WORKER_ARENA_ADD; head.kind <= FROM_WORKER_STATS; ++head.kind)
                assert_true(reads((const uint8_t *)&head, sizeof(head)));
        assert_false(reads((const uint8_t *)&head, sizeof(head)));
        head.kind = UINT32_MAX;
        assert_false(reads((const uint8_t *)&head, sizeof(head)));
}

static void message_larger_than_the_ring_is_not_packed(void **state) {
        Channel *channel = open_channel();
        WorkerMessage message = {{.kind = FROM_WORKER_ENDS, .n_items = UINT32_MAX}, .items = ends};
        const uint8_t *data;
        size_t n;

        assert_int_equal(protocol_pack(channel, &message, &data, &n), -EMSGSIZE);
        channel_free(channel);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_packed_is_read),
                cmocka_unit_test(what_is_cut_short_or_too_long_is_refused),
                cmocka_unit_test(lengths_that_are_not_its_own_are_refused),
                cmocka_unit_test(text_without_an_end_is_refused),
                cmocka_unit_test(unknown_kind_is_refused),
                cmocka_unit_test(message_larger_than_the_ring_is_not_packed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
