/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "extent.h"

static ExtentSlice slice(uint64_t arena, uint64_t offset, uint64_t length) {
        return (ExtentSlice){.arena = arena, .offset = offset, .length = length, .read = true};
}

static void a_job_without_buffers_has_an_arena_of_a_byte(void **state) {
        Extent extents[1];
        uint64_t size;

        assert_int_equal(extents_pack(NULL, 0, extents, &size), 0);
        assert_int_equal(size, 1);
}

static void slices_of_one_arena_that_do_not_touch_are_packed_close(void **state) {
        ExtentSlice slices[] = {slice(1, 1 << 30, 100), slice(1, 0, 100)};
        Extent extents[2];
        uint64_t size;

        assert_int_equal(extents_pack(slices, 2, extents, &size), 2);
        assert_int_equal(slices[1].new_offset, 0);
        assert_int_equal(slices[0].new_offset, 256);
        assert_int_equal(size, 356);
}

static void slices_that_overlap_go_on_overlapping(void **state) {
        ExtentSlice slices[] = {slice(7, 1000, 100), slice(7, 1050, 200), slice(7, 1040, 10)};
        Extent extents[3];
        uint64_t size;

        slices[1].written = true;
        assert_int_equal(extents_pack(slices, 3, extents, &size), 1);
        assert_int_equal(extents[0].length, 250);
        assert_true(extents[0].read && extents[0].written);
        assert_int_equal(slices[1].new_offset - slices[0].new_offset, 50);
        assert_int_equal(slices[2].new_offset - slices[0].new_offset, 40);
}

static void the_same_place_of_two_arenas_is_two_extents(void **state) {
        ExtentSlice slices[] = {slice(1, 0, 64), slice(2, 0, 64)};
        Extent extents[2];
        uint64_t size;

        assert_int_equal(extents_pack(slices, 2, extents, &size), 2);
        assert_int_not_equal(slices[0].new_offset, slices[1].new_offset);
}

static void an_address_keeps_its_alignment(void **state) {
        ExtentSlice slices[] = {slice(1, 4096 + 24, 7), slice(1, 65536 + 128, 7)};
        Extent extents[2];
        uint64_t size;

        extents_pack(slices, 2, extents, &size);
        assert_int_equal(slices[0].new_offset % 256, 24);
        assert_int_equal(slices[1].new_offset % 256, 128);
}

static void empty_slices_are_somewhere(void **state) {
        ExtentSlice slices[] = {slice(1, 10, 0), slice(1, 0, 20), slice(1, 20, 0), slice(2, 0, 0)};
        Extent extents[4];
        uint64_t size;

        extents_pack(slices, 4, extents, &size);
        for (size_t i = 0; i < 4; ++i)
                assert_true(slices[i].new_offset + slices[i].length <= size);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_job_without_buffers_has_an_arena_of_a_byte),
                cmocka_unit_test(slices_of_one_arena_that_do_not_touch_are_packed_close),
                cmocka_unit_test(slices_that_overlap_go_on_overlapping),
                cmocka_unit_test(the_same_place_of_two_arenas_is_two_extents),
                cmocka_unit_test(an_address_keeps_its_alignment),
                cmocka_unit_test(empty_slices_are_somewhere),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
