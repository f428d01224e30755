/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shadows: where those of ranges lie, and which bits an operation sets.
 */
#include "test.h"

#include "util/macro.h"
#include "worker/shadow.h"

/* The block of shadows is this memory. */
static unsigned char block[256];
static CheckRange spans[8];
static size_t n_spans, n_sets;

static CUresult fake_set(CUdeviceptr to, unsigned char value, size_t n, CUstream stream) {
        uintptr_t begin = (uintptr_t)block;

        assert_true(to >= begin && to + n <= begin + sizeof(block));
        memset((void *)(uintptr_t)to, value, n);
        ++n_sets;
        return CUDA_SUCCESS;
}

static const Driver driver = {.cuMemsetD8Async = fake_set};

static CheckRange range(uint64_t begin, uint64_t n_bytes, StagingDirection direction) {
        const StagingBuffer buffer = {.length = n_bytes, .direction = direction};

        return (CheckRange){.begin = begin, .n_bytes = n_bytes, .shadow = shadow_of(&buffer)};
}

/* As the inserted functions read it. */
static bool is_written(const CheckRange *range, uint64_t address) {
        const uint32_t *word =
                (const uint32_t *)(uintptr_t)(range->shadow +
                                              (address / 32 - range->begin / 32) * 4);

        return *word >> address % 32 & 1;
}

static void set(uint64_t begin, uint64_t end) {
        assert_int_equal(shadow_set(&driver, spans, n_spans, begin, end, NULL), CUDA_SUCCESS);
}

static void place(CheckRange *ranges, size_t n) {
        assert_in_range(n, 0, ARRAY_SIZE(spans));
        memset(block, 0, sizeof(block));
        assert_int_equal(shadow_place(ranges, n, (uintptr_t)block, spans, &n_spans), 0);
}

static void only_what_is_only_written_has_a_shadow(void **state) {
        const StagingBuffer buffers[] = {
                {.length = 100, .direction = STAGING_IN},
                {.length = 100, .direction = STAGING_INOUT},
                {.length = 0, .direction = STAGING_OUT},
                {.length = 100, .direction = STAGING_OUT},
        };
        CheckRange ranges[] = {
                range(0x1000, 100, STAGING_IN),
                range(0x2000, 100, STAGING_INOUT),
                range(0x3000, 0, STAGING_OUT),
                range(0x4000, 100, STAGING_OUT),
        };

        assert_int_equal(shadow_bytes(buffers, 3), 0);
        assert_in_range(shadow_bytes(buffers, 4), 16, 32);
        place(ranges, 4);
        assert_int_equal(ranges[0].shadow, CHECK_NO_WRITES);
        assert_int_equal(ranges[1].shadow, CHECK_NO_SHADOW);
        assert_int_equal(ranges[2].shadow, CHECK_NO_SHADOW);
        assert_in_range(ranges[3].shadow, (uintptr_t)block, (uintptr_t)block + 3);
}

static void shadows_of_ranges_that_are_apart_are_apart(void **state) {
        CheckRange ranges[] = {
                range(0x1010, 33, STAGING_OUT), /* neighbours, in the same 32 bytes */
                range(0x1000, 16, STAGING_OUT),
                range(0x1031, 100, STAGING_OUT),
        };

        place(ranges, 3);
        for (size_t i = 0; i < 3; ++i)
                set(ranges[i].begin, ranges[i].begin + 8);
        for (size_t i = 0; i < 3; ++i) {
                assert_true(is_written(&ranges[i], ranges[i].begin));
                assert_false(is_written(&ranges[i], ranges[i].begin + ranges[i].n_bytes - 1));
        }
}

static void ranges_that_overlap_share_their_bits(void **state) {
        CheckRange ranges[] = {
                range(0x1064, 100, STAGING_OUT),
                range(0x1001, 300, STAGING_OUT),
                range(0x1100, 100, STAGING_OUT),
        };

        place(ranges, 3);
        set(0x1080, 0x1088);
        assert_true(is_written(&ranges[1], 0x1080));
        assert_true(is_written(&ranges[1], 0x1087));
        assert_false(is_written(&ranges[1], 0x1088));
        set(0x1120, 0x1128);
        assert_true(is_written(&ranges[2], 0x1120));
}

static void what_is_set_is_cut_to_the_range_and_rounded_to_eight_bytes(void **state) {
        CheckRange ranges[] = {
                range(0x1020, 64, STAGING_OUT),
                range(0x2020, 64, STAGING_OUT),
                range(0x3000, 64, STAGING_INOUT),
        };

        place(ranges, 3);
        set(0x1000, 0x102a);
        for (uint64_t i = 0; i < 64; ++i)
                assert_int_equal(is_written(&ranges[0], 0x1020 + i), i < 16);
        set(0, UINT64_MAX);
        for (uint64_t i = 0; i < 64; ++i) {
                assert_true(is_written(&ranges[0], 0x1020 + i));
                assert_true(is_written(&ranges[1], 0x2020 + i));
        }
}

/* However many ranges lie over one another, one call sets what they share. */
static void each_bit_is_set_once(void **state) {
        CheckRange ranges[8];

        for (size_t i = 0; i < ARRAY_SIZE(ranges); ++i)
                ranges[i] = range(0x1000 + 8 * (i % 4), 64, STAGING_OUT);
        place(ranges, ARRAY_SIZE(ranges));
        assert_int_equal(n_spans, 1);
        n_sets = 0;
        set(0, UINT64_MAX);
        assert_int_equal(n_sets, 1);
        for (size_t i = 0; i < ARRAY_SIZE(ranges); ++i)
                for (uint64_t k = 0; k < 64; ++k)
                        assert_true(is_written(&ranges[i], ranges[i].begin + k));
}

/* The block is large enough wherever buffers begin. */
static void the_block_holds_all_of_them(void **state) {
        for (uint64_t offset = 0; offset < 32; ++offset) {
                CheckRange ranges[] = {
                        range(0x1000 + offset, 31, STAGING_OUT),
                        range(0x2000 + offset, 64, STAGING_OUT),
                        range(0x3000 + offset, 1, STAGING_OUT),
                };
                StagingBuffer buffers[3];
                uintptr_t end;

                for (size_t i = 0; i < 3; ++i)
                        buffers[i] = (StagingBuffer){.length = ranges[i].n_bytes,
                                                     .direction = STAGING_OUT};
                assert_int_equal(shadow_place(ranges, 3, (uintptr_t)block + 1, spans, &n_spans), 0);
                end = ranges[2].shadow + 4;
                assert_in_range(end, (uintptr_t)block + 1,
                                (uintptr_t)block + 1 + shadow_bytes(buffers, 3));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_what_is_only_written_has_a_shadow),
                cmocka_unit_test(shadows_of_ranges_that_are_apart_are_apart),
                cmocka_unit_test(ranges_that_overlap_share_their_bits),
                cmocka_unit_test(what_is_set_is_cut_to_the_range_and_rounded_to_eight_bytes),
                cmocka_unit_test(each_bit_is_set_once),
                cmocka_unit_test(the_block_holds_all_of_them),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
