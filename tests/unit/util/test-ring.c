/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring: order, wrap-around, rewinding, a hostile other side, two threads.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "proto/ring.h"

#define SMALL 256u
#define LARGE (4u << 20)

typedef struct Both {
        uint8_t *memory;
        Ring in;
        Ring out;
        uint8_t *buffer;
} Both;

/* Where the two positions lie in shared memory: part of no promise, but of an attacker's knowledge. */
#define SHARED_HEAD 0
#define SHARED_TAIL 64

static Both both_new(uint32_t capacity) {
        size_t n_bytes = (ring_bytes(capacity) + 63) & ~(size_t)63;
        Both both = {.memory = aligned_alloc(64, n_bytes), .buffer = malloc(capacity)};

        assert_non_null(both.memory);
        assert_non_null(both.buffer);
        memset(both.memory, 0, n_bytes);
        ring_init(&both.out, both.memory, capacity, RING_PRODUCER);
        ring_init(&both.in, both.memory, capacity, RING_CONSUMER);
        return both;
}

static void both_end(Both *both) {
        free(both->buffer);
        free(both->memory);
}

static void poke(Both *both, size_t offset, uint32_t value) {
        memcpy(both->memory + offset, &value, sizeof(value));
}

static void messages_come_out_as_they_went_in(void **state) {
        Both both = both_new(SMALL);
        uint32_t n;

        assert_int_equal(ring_read(&both.in, both.buffer, &n), RING_E_AGAIN);
        assert_int_equal(ring_write(&both.out, "one", 3), 0);
        assert_int_equal(ring_write(&both.out, NULL, 0), 0);
        assert_int_equal(ring_write(&both.out, "three", 5), 0);
        assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
        assert_int_equal(n, 3);
        assert_memory_equal(both.buffer, "one", 3);
        assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
        assert_int_equal(n, 0);
        assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
        assert_memory_equal(both.buffer, "three", 5);
        assert_int_equal(ring_read(&both.in, both.buffer, &n), RING_E_AGAIN);
        both_end(&both);
}

static void every_length_survives_the_wrap(void **state) {
        Both both = both_new(SMALL);
        uint8_t data[SMALL];
        uint32_t n;

        for (unsigned round = 0; round < 20; round++)
                for (uint32_t length = 0; length <= SMALL - 4; length++) {
                        memset(data, (int)(length + round), length);
                        assert_int_equal(ring_write(&both.out, data, length), 0);
                        assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
                        assert_int_equal(n, length);
                        assert_memory_equal(both.buffer, data, length);
                }
        both_end(&both);
}

/* Begun and not ended, as if there was no memory for the rest. */
static void abandon_message(Both *both) {
        assert_int_equal(ring_begin(&both->out, 20), 0);
        ring_add(&both->out, "abandoned", 9);
}

static void message_in_parts_comes_out_whole(void **state) {
        Both both = both_new(SMALL);
        uint8_t data[SMALL];
        uint32_t n;

        for (unsigned i = 0; i < SMALL; i++)
                data[i] = (uint8_t)i;
        for (uint32_t length = 0; length <= SMALL - 4; length++)
                for (uint32_t first = 0; first <= length; first += 3) {
                        abandon_message(&both);
                        assert_int_equal(ring_read(&both.in, both.buffer, &n), RING_E_AGAIN);
                        assert_int_equal(ring_begin(&both.out, length), 0);
                        ring_add(&both.out, data, first);
                        assert_int_equal(ring_read(&both.in, both.buffer, &n), RING_E_AGAIN);
                        ring_add(&both.out, data + first, length - first);
                        ring_end(&both.out);
                        assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
                        assert_int_equal(n, length);
                        assert_memory_equal(both.buffer, data, length);
                }
        both_end(&both);
}

static void positions_may_overflow(void **state) {
        Both both = both_new(SMALL);
        uint32_t n;

        poke(&both, SHARED_HEAD, UINT32_MAX - 7);
        poke(&both, SHARED_TAIL, UINT32_MAX - 7);
        ring_init(&both.out, both.memory, SMALL, RING_PRODUCER);
        ring_init(&both.in, both.memory, SMALL, RING_CONSUMER);
        for (unsigned i = 0; i < 100; i++) {
                assert_int_equal(ring_write(&both.out, &i, sizeof(i)), 0);
                assert_int_equal(ring_write(&both.out, &i, sizeof(i)), 0);
                assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
                assert_memory_equal(both.buffer, &i, sizeof(i));
                assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
        }
        both_end(&both);
}

static void used_ring_is_attached_to_where_it_was(void **state) {
        Both both = both_new(SMALL);
        uint32_t n;

        assert_int_equal(ring_write(&both.out, "one", 3), 0);
        assert_int_equal(ring_write(&both.out, "two", 3), 0);
        assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
        ring_init(&both.out, both.memory, SMALL, RING_PRODUCER);
        ring_init(&both.in, both.memory, SMALL, RING_CONSUMER);
        assert_int_equal(ring_write(&both.out, "six", 3), 0);
        assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
        assert_memory_equal(both.buffer, "two", 3);
        assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
        assert_memory_equal(both.buffer, "six", 3);
        both_end(&both);
}

static void producer_sees_what_was_released(void **state) {
        Both both = both_new(SMALL);
        uint32_t n, first, second;

        assert_int_equal(ring_write(&both.out, "one", 3), 0);
        first = both.out.position;
        assert_int_equal(ring_write(&both.out, "two", 3), 0);
        second = both.out.position;
        assert_false(ring_has_passed(&both.out, first));
        assert_int_equal(ring_take(&both.in, both.buffer, &n), 0);
        assert_false(ring_has_passed(&both.out, first));
        assert_int_equal(ring_take(&both.in, both.buffer, &n), 0);
        assert_true(ring_has_passed(&both.out, first));
        assert_false(ring_has_passed(&both.out, second));
        assert_int_equal(ring_take(&both.in, both.buffer, &n), RING_E_AGAIN);
        assert_true(ring_has_passed(&both.out, second));
        both_end(&both);
}

static void room_of_a_message_is_free_once_its_reader_sleeps(void **state) {
        Both both = both_new(SMALL);
        uint8_t data[SMALL - 4] = {};
        uint32_t n;

        assert_int_equal(ring_write(&both.out, data, sizeof(data)), 0);
        assert_int_equal(ring_take(&both.in, both.buffer, &n), 0);
        assert_int_equal(ring_room(&both.out, 0), RING_E_AGAIN);
        assert_true(ring_sleep(&both.in));
        assert_int_equal(ring_room(&both.out, sizeof(data)), 0);
        both_end(&both);
}

static void nonsense_that_is_attached_to_is_noticed(void **state) {
        static const uint32_t positions[] = {4, 1, SMALL + 8, 0x80000000, UINT32_MAX - 7 - SMALL};
        uint32_t n;

        for (size_t i = 0; i < sizeof(positions) / sizeof(*positions); i++) {
                Both both = both_new(SMALL);

                poke(&both, SHARED_HEAD, positions[i]);
                ring_init(&both.out, both.memory, SMALL, RING_PRODUCER);
                ring_init(&both.in, both.memory, SMALL, RING_CONSUMER);
                assert_int_equal(ring_write(&both.out, "x", 1), RING_E_CORRUPT);
                assert_int_equal(ring_take(&both.in, both.buffer, &n), RING_E_CORRUPT);
                both_end(&both);
        }
        for (size_t i = 0; i < sizeof(positions) / sizeof(*positions); i++) {
                Both both = both_new(SMALL);

                poke(&both, SHARED_TAIL, positions[i]);
                ring_init(&both.out, both.memory, SMALL, RING_PRODUCER);
                ring_init(&both.in, both.memory, SMALL, RING_CONSUMER);
                assert_int_equal(ring_write(&both.out, "x", 1), RING_E_CORRUPT);
                assert_int_equal(ring_take(&both.in, both.buffer, &n), RING_E_CORRUPT);
                both_end(&both);
        }
}

static void full_ring_says_again_and_remembers_who_waits(void **state) {
        Both both = both_new(SMALL);
        uint8_t data[60] = {};
        uint32_t n;

        for (unsigned i = 0; i < 4; i++)
                assert_int_equal(ring_write(&both.out, data, sizeof(data)), 0);
        assert_false(ring_has_waiter(&both.in));
        assert_int_equal(ring_write(&both.out, data, sizeof(data)), RING_E_AGAIN);
        assert_int_equal(ring_room(&both.out, 0), RING_E_AGAIN);
        assert_true(ring_has_waiter(&both.in));
        assert_false(ring_has_waiter(&both.in));
        assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
        assert_int_equal(ring_room(&both.out, sizeof(data)), 0);
        assert_int_equal(ring_write(&both.out, data, sizeof(data)), 0);
        both_end(&both);
}

static void message_that_can_never_fit_is_told_apart(void **state) {
        Both both = both_new(SMALL);
        uint8_t data[SMALL] = {};

        assert_int_equal(ring_write(&both.out, data, SMALL - 3), RING_E_TOO_BIG);
        assert_int_equal(ring_write(&both.out, data, UINT32_MAX), RING_E_TOO_BIG);
        assert_int_equal(ring_write(&both.out, data, SMALL - 4), 0);
        both_end(&both);
}

static void light_traffic_stays_at_the_start_of_the_memory(void **state) {
        Both both = both_new(LARGE);
        size_t n_data = 100000;
        uint8_t *data = malloc(n_data);
        uint32_t n;

        memset(data, 0xab, n_data);
        for (unsigned i = 0; i < 200; i++) {
                assert_int_equal(ring_write(&both.out, data, (uint32_t)n_data), 0);
                assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
                assert_int_equal(n, n_data);
                assert_memory_equal(both.buffer, data, n_data);
        }
        for (size_t i = 2u << 20; i < LARGE; i++)
                assert_int_equal(both.memory[i], 0);

        /* The largest one still goes through, from wherever the ring stands. */
        free(data);
        data = calloc(1, LARGE);
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(ring_write(&both.out, data, LARGE - 4), 0);
                assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
                assert_int_equal(n, LARGE - 4);
                assert_int_equal(ring_write(&both.out, data, 1000), 0);
                assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
                assert_int_equal(n, 1000);
        }
        free(data);
        both_end(&both);
}

static void nonsense_from_the_producer_is_noticed(void **state) {
        static const uint32_t heads[] = {4, 1, SMALL + 8, UINT32_MAX - 7, 0x80000000};
        static const uint32_t lengths[] = {13, SMALL, UINT32_MAX, UINT32_MAX - 3, 0x7fffffff};
        uint32_t n = 77;

        for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
                Both both = both_new(SMALL);

                poke(&both, SHARED_HEAD, heads[i]);
                assert_int_equal(ring_read(&both.in, both.buffer, &n), RING_E_CORRUPT);
                both_end(&both);
        }
        for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
                Both both = both_new(SMALL);

                assert_int_equal(ring_write(&both.out, "12345678", 8), 0);
                poke(&both, ring_bytes(0), lengths[i]);
                assert_int_equal(ring_read(&both.in, both.buffer, &n), RING_E_CORRUPT);
                both_end(&both);
        }
        assert_int_equal(n, 77);
}

static void nonsense_from_the_consumer_is_noticed(void **state) {
        static const uint32_t tails[] = {8, 4, 0x80000000, UINT32_MAX - 7 - SMALL};

        for (size_t i = 0; i < sizeof(tails) / sizeof(*tails); i++) {
                Both both = both_new(SMALL);

                poke(&both, SHARED_TAIL, tails[i]);
                assert_int_equal(ring_write(&both.out, "x", 1), RING_E_CORRUPT);
                both_end(&both);
        }
}

static void sleeper_is_woken_once(void **state) {
        Both both = both_new(SMALL);
        uint32_t n;

        assert_false(ring_needs_bell(&both.out));
        assert_true(ring_sleep(&both.in));
        assert_int_equal(ring_write(&both.out, "x", 1), 0);
        assert_true(ring_needs_bell(&both.out));
        assert_false(ring_needs_bell(&both.out));
        ring_wake(&both.in);

        assert_false(ring_sleep(&both.in));
        assert_false(ring_needs_bell(&both.out));
        assert_int_equal(ring_read(&both.in, both.buffer, &n), 0);
        assert_true(ring_sleep(&both.in));
        both_end(&both);
}

#define N_MESSAGES 200000u

static void *produce(void *argument) {
        Both *both = argument;
        uint32_t data[16];

        for (uint32_t i = 0; i < N_MESSAGES; i++) {
                uint32_t n = sizeof(uint32_t) * (1 + i % 16);

                for (unsigned k = 0; k < 16; k++)
                        data[k] = i + k;
                while (ring_write(&both->out, data, n) == RING_E_AGAIN)
                        sched_yield();
        }
        return NULL;
}

static void two_threads_lose_nothing(void **state) {
        Both both = both_new(4096);
        pthread_t thread;
        uint32_t n;

        assert_int_equal(pthread_create(&thread, NULL, produce, &both), 0);
        for (uint32_t i = 0; i < N_MESSAGES; i++) {
                const uint32_t *data = (const uint32_t *)both.buffer;
                int r;

                while ((r = ring_read(&both.in, both.buffer, &n)) == RING_E_AGAIN)
                        sched_yield();
                assert_int_equal(r, 0);
                assert_int_equal(n, sizeof(uint32_t) * (1 + i % 16));
                assert_int_equal(data[0], i);
                assert_int_equal(data[i % 16], i + i % 16);
        }
        pthread_join(thread, NULL);
        both_end(&both);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(messages_come_out_as_they_went_in),
                cmocka_unit_test(every_length_survives_the_wrap),
                cmocka_unit_test(message_in_parts_comes_out_whole),
                cmocka_unit_test(positions_may_overflow),
                cmocka_unit_test(used_ring_is_attached_to_where_it_was),
                cmocka_unit_test(producer_sees_what_was_released),
                cmocka_unit_test(room_of_a_message_is_free_once_its_reader_sleeps),
                cmocka_unit_test(nonsense_that_is_attached_to_is_noticed),
                cmocka_unit_test(full_ring_says_again_and_remembers_who_waits),
                cmocka_unit_test(message_that_can_never_fit_is_told_apart),
                cmocka_unit_test(light_traffic_stays_at_the_start_of_the_memory),
                cmocka_unit_test(nonsense_from_the_producer_is_noticed),
                cmocka_unit_test(nonsense_from_the_consumer_is_noticed),
                cmocka_unit_test(sleeper_is_woken_once),
                cmocka_unit_test(two_threads_lose_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
