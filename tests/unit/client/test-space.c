/* SPDX-License-Identifier: Apache-2.0 */

#include "support.h"

#include "client/lib/base/space.h"

#define MIB (UINT64_C(1) << 20)

static Extent *taken(Space *space, uint64_t size) {
        Extent *extent = NULL;

        assert_int_equal(space_take(space, size, &extent), 0);
        assert_int_equal(extent->offset % SPACE_ALIGN, 0);
        assert_true(extent->size >= size);
        return extent;
}

static void extents_are_aligned_and_do_not_overlap(void **state) {
        Space space;
        Extent *a, *b, *c;

        assert_int_equal(space_init(&space, MIB), 0);
        a = taken(&space, 1);
        b = taken(&space, 257);
        c = taken(&space, 4096);
        assert_int_equal(a->offset, 0);
        assert_int_equal(b->offset, 256);
        assert_int_equal(c->offset, 768);
        space_finish(&space);
}

static void full_space_says_so_and_stays_whole(void **state) {
        Space space;
        Extent *extent;

        assert_int_equal(space_init(&space, 4096), 0);
        extent = taken(&space, 4096);
        assert_int_equal(space_take(&space, 1, &extent), SPACE_E_FULL);
        space_give(&space, extent);
        assert_true(space_idle(&space));
        assert_int_equal(taken(&space, 4096)->offset, 0);
        assert_int_equal(space_take(&space, UINT64_MAX, &extent), SPACE_E_FULL);
        space_finish(&space);
}

static void freed_neighbours_become_one_gap(void **state) {
        Space space;
        Extent *a, *b, *c;

        assert_int_equal(space_init(&space, 3 * 256), 0);
        a = taken(&space, 256);
        b = taken(&space, 256);
        c = taken(&space, 256);
        space_give(&space, a);
        space_give(&space, c);
        space_give(&space, b);
        assert_int_equal(taken(&space, 3 * 256)->offset, 0);
        space_finish(&space);
}

static void only_what_was_used_is_dirty(void **state) {
        Space space;
        Extent *a;

        assert_int_equal(space_init(&space, MIB), 0);
        a = taken(&space, 1024);
        assert_int_equal(a->dirty, 0);
        space_give(&space, a);
        a = taken(&space, 4096);
        assert_int_equal(a->offset, 0);
        assert_int_equal(a->dirty, 1024);
        space_finish(&space);
}

static void retired_extent_is_never_handed_out_again(void **state) {
        Space space;
        Extent *extent;

        assert_int_equal(space_init(&space, 256), 0);
        space_retire(&space, taken(&space, 256));
        assert_true(space_idle(&space));
        assert_int_equal(space_take(&space, 1, &extent), SPACE_E_FULL);
        space_finish(&space);
}

/* Against a plain map of who owns each unit. */
static void random_taking_and_giving_keeps_everything_apart(void **state) {
        enum { N_UNITS = 1024, N_EXTENTS = 256 };
        Extent *extents[N_EXTENTS] = {0};
        uint8_t owner[N_UNITS] = {0};
        Space space;

        srand(1);
        assert_int_equal(space_init(&space, N_UNITS * SPACE_ALIGN), 0);
        for (unsigned i = 0; i < 200000; i++) {
                unsigned who = 1 + (unsigned)rand() % (N_EXTENTS - 1);
                uint64_t size = 1 + (uint64_t)rand() % (16 * SPACE_ALIGN);

                if (extents[who]) {
                        memset(owner + extents[who]->offset / SPACE_ALIGN, 0,
                               extents[who]->size / SPACE_ALIGN);
                        space_give(&space, extents[who]);
                        extents[who] = NULL;
                } else if (space_take(&space, size, &extents[who]) == 0) {
                        for (uint64_t u = 0; u < extents[who]->size / SPACE_ALIGN; u++) {
                                assert_int_equal(owner[extents[who]->offset / SPACE_ALIGN + u], 0);
                                owner[extents[who]->offset / SPACE_ALIGN + u] = (uint8_t)who;
                        }
                }
        }

        for (unsigned who = 0; who < N_EXTENTS; who++)
                if (extents[who])
                        space_give(&space, extents[who]);
        assert_int_equal(taken(&space, N_UNITS * SPACE_ALIGN)->offset, 0);
        space_finish(&space);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(extents_are_aligned_and_do_not_overlap),
                cmocka_unit_test(full_space_says_so_and_stays_whole),
                cmocka_unit_test(freed_neighbours_become_one_gap),
                cmocka_unit_test(only_what_was_used_is_dirty),
                cmocka_unit_test(retired_extent_is_never_handed_out_again),
                cmocka_unit_test(random_taking_and_giving_keeps_everything_apart),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
