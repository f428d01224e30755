/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "worker/staging.h"

static const char arena_a, arena_b;

typedef struct Plan {
        Staging staging;
        void *memory;
} Plan;

static Plan plan(const StagingBuffer *buffers, size_t n) {
        Plan plan = {.memory = malloc(staging_room(n) + 1)};

        assert_int_equal(staging_plan(buffers, n, 0, plan.memory, &plan.staging), 0);
        return plan;
}

static void apart_buffers_get_aligned_places_of_their_own(void **state) {
        const StagingBuffer buffers[] = {
                {&arena_a, 1000, 10, STAGING_IN},
                {&arena_a, 12, 300, STAGING_OUT},
                {&arena_b, 0, 1, STAGING_INOUT},
        };
        Plan p = plan(buffers, 3);
        const Staging *s = &p.staging;

        for (size_t i = 0; i < 3; ++i) {
                assert_int_equal(s->scratch[i] % STAGING_ALIGNMENT, 0);
                for (size_t k = 0; k < i; ++k)
                        assert_true(s->scratch[i] + buffers[i].length <= s->scratch[k] ||
                                    s->scratch[k] + buffers[k].length <= s->scratch[i]);
        }
        assert_int_equal(s->n_bytes, 256 + 512 + 256);
        assert_int_equal(s->n_zero, 1);
        assert_int_equal(s->n_in, 2);
        assert_int_equal(s->n_out, 2);
        free(p.memory);
}

static void with_a_fence_every_byte_of_scratch_is_copied_or_zeroed(void **state) {
        const StagingBuffer buffers[] = {
                {&arena_a, 1000, 10, STAGING_IN},
                {&arena_a, 12, 300, STAGING_OUT},
                {&arena_b, 0, 1, STAGING_INOUT},
                {&arena_b, 4096, 700, STAGING_IN},
        };
        Plan p = plan(buffers, 4);
        Staging *s = &p.staging;
        uint64_t n_bytes = s->n_bytes;
        unsigned char is_set[4096] = {0};

        staging_fence(s, 256);
        assert_int_equal(s->n_bytes, n_bytes + 256);
        for (size_t i = 0; i < s->n_in; ++i)
                for (uint64_t k = 0; k < s->in[i].length; ++k)
                        is_set[s->in[i].scratch + k]++;
        for (size_t i = 0; i < s->n_zero; ++i)
                for (uint64_t k = 0; k < s->zero[i].length; ++k)
                        is_set[s->zero[i].scratch + k]++;
        for (uint64_t k = 0; k < s->n_bytes; ++k)
                assert_int_equal(is_set[k], 1);
        free(p.memory);
}

static void same_slice_twice_is_one_memory_copied_once(void **state) {
        const StagingBuffer buffers[] = {
                {&arena_a, 64, 100, STAGING_IN},
                {&arena_a, 64, 100, STAGING_OUT},
                {&arena_a, 64, 100, STAGING_INOUT},
        };
        Plan p = plan(buffers, 3);

        assert_int_equal(p.staging.scratch[0], p.staging.scratch[1]);
        assert_int_equal(p.staging.scratch[0], p.staging.scratch[2]);
        assert_int_equal(p.staging.n_in, 1);
        assert_int_equal(p.staging.n_out, 1);
        free(p.memory);
}

static void overlapping_slices_keep_their_distance(void **state) {
        const StagingBuffer buffers[] = {
                {&arena_a, 300, 100, STAGING_IN},
                {&arena_a, 100, 250, STAGING_OUT},
                {&arena_a, 399, 100, STAGING_INOUT},
        };
        Plan p = plan(buffers, 3);
        const Staging *s = &p.staging;

        assert_int_equal(s->scratch[0] - s->scratch[1], 200);
        assert_int_equal(s->scratch[2] - s->scratch[1], 299);
        /* the alignment that each has in the arena is kept */
        assert_int_equal(s->scratch[1] % STAGING_ALIGNMENT, 100);
        assert_true(s->n_bytes >= s->scratch[2] + 100);
        assert_int_equal(s->n_in, 1);
        assert_int_equal(s->in[0].offset, 300);
        assert_int_equal(s->in[0].length, 199);
        assert_int_equal(s->n_out, 2);
        assert_int_equal(s->n_zero, 1);
        assert_int_equal(s->zero[0].length, 250);
        free(p.memory);
}

static void touching_slices_are_copied_together_but_not_joined(void **state) {
        const StagingBuffer buffers[] = {
                {&arena_a, 0, 256, STAGING_IN},
                {&arena_a, 256, 256, STAGING_IN},
                {&arena_a, 512, 100, STAGING_IN},
        };
        Plan p = plan(buffers, 3);

        assert_int_equal(p.staging.n_in, 1);
        assert_int_equal(p.staging.in[0].length, 612);
        free(p.memory);
}

static void neighbours_are_one_copy_in_with_the_gap_but_written_one_by_one(void **state) {
        const StagingBuffer buffers[] = {
                {&arena_a, 0, 40000, STAGING_IN},      {&arena_a, 40192, 40000, STAGING_IN},
                {&arena_a, 80384, 40000, STAGING_OUT}, {&arena_a, 120576, 40000, STAGING_OUT},
                {&arena_a, 200000, 100, STAGING_IN}, /* not aligned: apart */
        };
        Plan p = plan(buffers, 5);
        const Staging *s = &p.staging;

        assert_int_equal(s->n_in, 2);
        assert_int_equal(s->in[0].length, 80192);
        assert_int_equal(s->n_out, 2);
        assert_int_equal(s->n_zero, 2);
        assert_false(s->ordered);
        assert_false(s->updates);
        for (size_t i = 0; i < 5; ++i)
                assert_int_equal(s->scratch[i] % STAGING_ALIGNMENT, 0);
        free(p.memory);
}

static void a_gap_keeps_neighbours_apart_but_not_what_overlaps(void **state) {
        const StagingBuffer buffers[] = {
                {&arena_a, 0, 512, STAGING_IN},
                {&arena_a, 512, 512, STAGING_INOUT},
                {&arena_a, 768, 512, STAGING_OUT},
                {&arena_b, 0, 100, STAGING_OUT},
        };
        Plan p = {.memory = malloc(staging_room(4))};
        const Staging *s = &p.staging;

        assert_int_equal(staging_plan(buffers, 4, 4096, p.memory, &p.staging), 0);
        assert_int_equal(s->scratch[2] - s->scratch[1], 256);
        for (size_t i = 0; i < 4; ++i)
                for (size_t k = 0; k < i; ++k)
                        assert_true((i == 2 && k == 1) ||
                                    s->scratch[i] >= s->scratch[k] + buffers[k].length + 4096 ||
                                    s->scratch[k] >= s->scratch[i] + buffers[i].length + 4096);
        assert_int_equal(s->n_in, 2);
        assert_true(s->n_bytes >= s->scratch[3] + 100);
        free(p.memory);
}

static void zeros_under_what_is_copied_have_an_order(void **state) {
        const StagingBuffer plain[] = {{&arena_a, 0, 100, STAGING_IN},
                                       {&arena_a, 256, 100, STAGING_OUT},
                                       {&arena_a, 0, 50, STAGING_IN}};
        const StagingBuffer both[] = {{&arena_a, 0, 100, STAGING_IN},
                                      {&arena_a, 99, 100, STAGING_OUT}};
        const StagingBuffer update[] = {{&arena_a, 0, 100, STAGING_INOUT}};
        Plan p = plan(plain, 3);

        assert_false(p.staging.ordered || p.staging.updates);
        free(p.memory);
        p = plan(both, 2);
        assert_true(p.staging.ordered && p.staging.updates);
        free(p.memory);
        p = plan(update, 1);
        assert_true(!p.staging.ordered && p.staging.updates);
        free(p.memory);
}

static void empty_buffers_begin_inside_the_block(void **state) {
        const StagingBuffer only[] = {{&arena_a, 5, 0, STAGING_OUT}};
        const StagingBuffer beside[] = {{&arena_a, 5, 0, STAGING_OUT},
                                        {&arena_a, 0, 9, STAGING_IN}};
        Plan p = plan(only, 1);

        assert_int_equal(p.staging.n_bytes, STAGING_ALIGNMENT);
        assert_int_equal(p.staging.n_zero + p.staging.n_in + p.staging.n_out, 0);
        free(p.memory);

        p = plan(beside, 2);
        assert_int_equal(p.staging.n_bytes, STAGING_ALIGNMENT);
        assert_true(p.staging.scratch[0] < p.staging.n_bytes);
        assert_int_equal(p.staging.n_zero, 0);
        free(p.memory);
}

static void device_buffers_take_no_scratch(void **state) {
        const StagingBuffer buffers[] = {{NULL, 0, 1 << 20, STAGING_INOUT}};
        Plan p = plan(buffers, 1);

        assert_int_equal(p.staging.n_bytes, 0);
        free(p.memory);
}

static void buffers_beyond_4_gib_keep_their_sizes(void **state) {
        const uint64_t big = UINT64_C(5) << 30;
        const StagingBuffer buffers[] = {{&arena_a, 0, big, STAGING_IN},
                                         {&arena_b, 0, big, STAGING_OUT}};
        Plan p = plan(buffers, 2);

        assert_true(p.staging.n_bytes == 2 * big);
        assert_true(p.staging.in[0].length == big);
        free(p.memory);
}

static void more_than_can_be_addressed_is_refused(void **state) {
        const uint64_t big = UINT64_C(1) << 56;
        const StagingBuffer buffers[] = {{&arena_a, 0, big, STAGING_IN},
                                         {&arena_b, 0, big, STAGING_OUT}};
        void *memory = malloc(staging_room(2));
        Staging staging;

        assert_int_equal(staging_plan(buffers, 2, 0, memory, &staging), -EOVERFLOW);
        free(memory);
}

static void assert_zeroed_in_place(const Staging *staging, const StagingBuffer *buffer) {
        for (uint64_t at = buffer->offset; at < buffer->offset + buffer->length; ++at) {
                bool zeroed = false;

                for (size_t i = 0; i < staging->n_zero; ++i) {
                        const StagingRange *range = &staging->zero[i];

                        zeroed |= !range->whole && range->arena == buffer->arena &&
                                  at >= range->offset && at < range->offset + range->length;
                }
                assert_true(zeroed);
        }
}

/* In scratch it is zeroed too: there it may lie over somebody else's data. */
static void what_is_written_whole_need_not_be_zeroed_in_place(void **state) {
        const StagingBuffer buffers[4] = {
                {&arena_a, 0, 100, STAGING_OUT, .whole = true},
                {&arena_a, 256, 100, STAGING_OUT},
                {&arena_b, 0, 100, STAGING_OUT, .whole = true},
                {&arena_b, 50, 100, STAGING_OUT},
        };
        Plan p = plan(buffers, 4);
        bool any = false;

        assert_int_equal(p.staging.n_zero, 3);
        for (size_t i = 0; i < 3; ++i)
                if (p.staging.zero[i].whole) {
                        assert_ptr_equal(p.staging.zero[i].arena, &arena_a);
                        assert_int_equal(p.staging.zero[i].offset, 0);
                        assert_int_equal(p.staging.zero[i].length, 100);
                        any = true;
                }
        assert_true(any);
        free(p.memory);
}

/* Against the obvious model: what the kernel sees and what comes back, byte by byte. */
static void any_set_of_slices_behaves_as_one_memory(void **state) {
        enum { ARENA = 1500, N = 24 };
        static uint8_t host[2][ARENA], seen[1 << 16];
        StagingBuffer buffers[N];

        srand(7);
        for (int round = 0; round < 2000; ++round) {
                size_t n = (size_t)(rand() % N) + 1;
                Plan p;

                for (size_t i = 0; i < n; ++i) {
                        uint64_t offset = (uint64_t)rand() % ARENA;

                        /* Half of the rounds are of slices as clients place them. */
                        if (round % 2)
                                offset -= offset % STAGING_ALIGNMENT;

                        buffers[i] = (StagingBuffer){
                                .arena = rand() % 2 ? host[0] : host[1],
                                .offset = offset,
                                .length = (uint64_t)rand() % (round % 4 ? ARENA : 300) %
                                          (ARENA - offset + 1),
                                .direction = (StagingDirection)(rand() % 3),
                        };
                        buffers[i].whole = buffers[i].direction == STAGING_OUT && rand() % 2;
                }
                for (size_t i = 0; i < 2 * ARENA; ++i)
                        host[i / ARENA][i % ARENA] = (uint8_t)(1 + rand() % 255);

                p = plan(buffers, n);
                assert_true(p.staging.n_bytes <= sizeof(seen));
                memset(seen, 0xee, sizeof(seen));
                for (size_t i = 0; i < p.staging.n_zero; ++i)
                        memset(seen + p.staging.zero[i].scratch, 0, p.staging.zero[i].length);
                for (size_t i = 0; i < p.staging.n_in; ++i)
                        memcpy(seen + p.staging.in[i].scratch,
                               (const uint8_t *)p.staging.in[i].arena + p.staging.in[i].offset,
                               p.staging.in[i].length);

                for (size_t i = 0; i < n; ++i)
                        if (buffers[i].direction == STAGING_OUT && !buffers[i].whole)
                                assert_zeroed_in_place(&p.staging, &buffers[i]);

                for (size_t i = 0; i < n; ++i)
                        for (uint64_t b = 0; b < buffers[i].length; ++b) {
                                uint64_t at = buffers[i].offset + b;
                                bool read = false;

                                for (size_t k = 0; k < n; ++k)
                                        read |= buffers[k].arena == buffers[i].arena &&
                                                buffers[k].direction != STAGING_OUT &&
                                                at >= buffers[k].offset &&
                                                at < buffers[k].offset + buffers[k].length;
                                assert_int_equal(seen[p.staging.scratch[i] + b],
                                                 read ? ((const uint8_t *)buffers[i].arena)[at]
                                                      : 0);
                        }
                free(p.memory);
        }
}

/* Also neighbours of other arenas, host memory, and slices of no length among them. */
static void device_memory_is_cleared_where_it_is_out_and_not_read(void **state) {
        enum { BYTES = 100, ROUNDS = 3000, MOST = 40 };
        static const char *const arenas[] = {&arena_a, &arena_b};
        unsigned random = 1;

        for (int round = 0; round < ROUNDS; ++round) {
                StagingBuffer buffers[MOST];
                uint8_t wanted[2][BYTES] = {0}, found[2][BYTES] = {0};
                size_t n = 1 + (size_t)round % MOST;
                Plan p;

                for (size_t i = 0; i < n; ++i) {
                        uint64_t offset, length;

                        random = random * 1103515245u + 12345u;
                        offset = (random >> 8) % BYTES;
                        length = (random >> 16) % (round % 2 ? 8 : BYTES) % (BYTES - offset + 1);
                        buffers[i] = (StagingBuffer){arenas[random >> 28 & 1], offset, length,
                                                     (StagingDirection)((random >> 24) % 3),
                                                     random >> 29 & 3};
                        buffers[i].whole = buffers[i].direction == STAGING_OUT && random >> 14 & 1;
                }
                for (size_t i = 0; i < n; ++i)
                        for (uint64_t k = 0; k < buffers[i].length && buffers[i].in_device; ++k)
                                wanted[buffers[i].arena == &arena_b][buffers[i].offset + k] |=
                                        buffers[i].direction != STAGING_OUT ? 2 : !buffers[i].whole;
                p = plan(buffers, n);
                assert_true(p.staging.n_clear <= n);
                for (size_t i = 0; i < p.staging.n_clear; ++i)
                        for (uint64_t k = 0; k < p.staging.clear[i].length; ++k)
                                ++found[p.staging.clear[i].arena == &arena_b]
                                       [p.staging.clear[i].offset + k];
                for (int i = 0; i < 2 * BYTES; ++i)
                        assert_int_equal(found[i / BYTES][i % BYTES],
                                         wanted[i / BYTES][i % BYTES] == 1);
                free(p.memory);
        }
}

/* It was the square of them, and more: a job of these held its worker for a second. */
static void many_that_overlap_in_device_memory_are_one_sweep(void **state) {
        enum { HALF = 100000 };
        StagingBuffer *buffers = calloc(2 * HALF, sizeof(*buffers));
        Plan p;

        for (uint64_t i = 0; i < HALF; ++i) {
                buffers[i] = (StagingBuffer){&arena_a, i, 4 * HALF - i, STAGING_OUT, true};
                buffers[HALF + i] = (StagingBuffer){&arena_a, 4 * i + 1, 1, STAGING_IN, true};
        }
        p = plan(buffers, 2 * HALF);
        assert_int_equal(p.staging.n_clear, HALF + 1);
        assert_int_equal(p.staging.clear[0].length, 1);
        assert_int_equal(p.staging.clear[HALF].length, 2);
        free(p.memory);
        free(buffers);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(apart_buffers_get_aligned_places_of_their_own),
                cmocka_unit_test(with_a_fence_every_byte_of_scratch_is_copied_or_zeroed),
                cmocka_unit_test(same_slice_twice_is_one_memory_copied_once),
                cmocka_unit_test(overlapping_slices_keep_their_distance),
                cmocka_unit_test(touching_slices_are_copied_together_but_not_joined),
                cmocka_unit_test(neighbours_are_one_copy_in_with_the_gap_but_written_one_by_one),
                cmocka_unit_test(a_gap_keeps_neighbours_apart_but_not_what_overlaps),
                cmocka_unit_test(zeros_under_what_is_copied_have_an_order),
                cmocka_unit_test(empty_buffers_begin_inside_the_block),
                cmocka_unit_test(device_buffers_take_no_scratch),
                cmocka_unit_test(buffers_beyond_4_gib_keep_their_sizes),
                cmocka_unit_test(more_than_can_be_addressed_is_refused),
                cmocka_unit_test(what_is_written_whole_need_not_be_zeroed_in_place),
                cmocka_unit_test(any_set_of_slices_behaves_as_one_memory),
                cmocka_unit_test(device_memory_is_cleared_where_it_is_out_and_not_read),
                cmocka_unit_test(many_that_overlap_in_device_memory_are_one_sweep),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
