/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "extent.h"

#define BUFFERS_MAX 4u

/* A job with these buffers, packed. */
typedef struct Packed {
        Gpuq__V1__Job job;
        Gpuq__V1__Buffer buffers[BUFFERS_MAX];
        Gpuq__V1__Buffer *list[BUFFERS_MAX];
        Extent extents[BUFFERS_MAX];
        size_t n;
        Extent again[BUFFERS_MAX]; /* as they are found in the packed job */
        size_t n_again;
} Packed;

static Gpuq__V1__Buffer slice(uint64_t arena, uint64_t offset, uint64_t length) {
        Gpuq__V1__Buffer buffer = GPUQ__V1__BUFFER__INIT;

        buffer.arena = arena;
        buffer.offset = offset;
        buffer.length = length;
        buffer.direction = GPUQ__V1__DIRECTION__IN;
        return buffer;
}

static void pack(Packed *packed, const Gpuq__V1__Buffer *buffers, size_t n) {
        gpuq__v1__job__init(&packed->job);
        packed->job.buffers = packed->list;
        packed->job.n_buffers = n;
        for (size_t i = 0; i < n; ++i) {
                packed->buffers[i] = buffers[i];
                packed->list[i] = &packed->buffers[i];
        }
        packed->n = extents_of(&packed->job, packed->extents);
        extents_pack(packed->extents, packed->n, &packed->job);
        packed->n_again = extents_of(&packed->job, packed->again);
}

static uint64_t size_of(const Packed *packed) {
        return extents_size(packed->again, packed->n_again);
}

static void a_job_without_buffers_has_an_arena_of_a_byte(void **state) {
        Packed packed;

        pack(&packed, NULL, 0);
        assert_int_equal(packed.n, 0);
        assert_int_equal(size_of(&packed), 1);
}

static void slices_of_one_arena_that_do_not_touch_are_packed_close(void **state) {
        Gpuq__V1__Buffer slices[] = {slice(1, 1 << 30, 100), slice(1, 0, 100)};
        Packed packed;

        pack(&packed, slices, 2);
        assert_int_equal(packed.n, 2);
        assert_int_equal(packed.buffers[1].offset, 0);
        assert_int_equal(packed.buffers[0].offset, 256);
        assert_int_equal(size_of(&packed), 356);
}

static void slices_that_overlap_go_on_overlapping(void **state) {
        Gpuq__V1__Buffer slices[] = {slice(7, 1000, 100), slice(7, 1050, 200), slice(7, 1040, 10)};
        Packed packed;

        slices[1].direction = GPUQ__V1__DIRECTION__OUT;
        pack(&packed, slices, 3);
        assert_int_equal(packed.n, 1);
        assert_int_equal(packed.extents[0].length, 250);
        assert_true(packed.extents[0].read && packed.extents[0].written);
        assert_int_equal(packed.buffers[1].offset - packed.buffers[0].offset, 50);
        assert_int_equal(packed.buffers[2].offset - packed.buffers[0].offset, 40);
}

static void the_same_place_of_two_arenas_is_two_extents(void **state) {
        Gpuq__V1__Buffer slices[] = {slice(1, 0, 64), slice(2, 0, 64)};
        Packed packed;

        pack(&packed, slices, 2);
        assert_int_equal(packed.n, 2);
        assert_int_not_equal(packed.buffers[0].offset, packed.buffers[1].offset);
}

static void an_address_keeps_its_alignment(void **state) {
        Gpuq__V1__Buffer slices[] = {slice(1, 4096 + 24, 7), slice(1, 65536 + 128, 7)};
        Packed packed;

        pack(&packed, slices, 2);
        assert_int_equal(packed.buffers[0].offset % 256, 24);
        assert_int_equal(packed.buffers[1].offset % 256, 128);
}

static void empty_slices_are_somewhere(void **state) {
        Gpuq__V1__Buffer slices[] = {slice(1, 10, 0), slice(1, 0, 20), slice(1, 20, 0),
                                     slice(2, 0, 0)};
        Packed packed;

        pack(&packed, slices, 4);
        for (size_t i = 0; i < 4; ++i)
                assert_true(packed.buffers[i].offset + packed.buffers[i].length <=
                            size_of(&packed));
}

/* What was stored is read back by these. */
static void the_packed_job_has_the_same_extents(void **state) {
        Gpuq__V1__Buffer slices[] = {slice(2, 3, 100), slice(1, 0, 300), slice(1, 100, 400),
                                     slice(1, 500, 1)};
        Packed packed;

        slices[2].direction = GPUQ__V1__DIRECTION__INOUT;
        pack(&packed, slices, 4);
        assert_int_equal(packed.n, 3);
        assert_int_equal(packed.n_again, 3);
        for (size_t i = 0; i < 3; ++i) {
                assert_int_equal(packed.again[i].offset, packed.extents[i].new_offset);
                assert_int_equal(packed.again[i].length, packed.extents[i].length);
                assert_int_equal(packed.again[i].read, packed.extents[i].read);
                assert_int_equal(packed.again[i].written, packed.extents[i].written);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_job_without_buffers_has_an_arena_of_a_byte),
                cmocka_unit_test(slices_of_one_arena_that_do_not_touch_are_packed_close),
                cmocka_unit_test(slices_that_overlap_go_on_overlapping),
                cmocka_unit_test(the_same_place_of_two_arenas_is_two_extents),
                cmocka_unit_test(an_address_keeps_its_alignment),
                cmocka_unit_test(empty_slices_are_somewhere),
                cmocka_unit_test(the_packed_job_has_the_same_extents),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
