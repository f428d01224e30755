/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <string.h>

#include "queue.h"

#define N_ENTRIES 64

static QueueEntry entries[N_ENTRIES];
static Queue queue;

static int set_up(void **state) {
        queue_init(&queue);
        memset(entries, 0, sizeof(entries));
        return 0;
}

static int tear_down(void **state) {
        QueueEntry *entry;

        while ((entry = queue_pick(&queue, NULL, NULL)))
                queue_take(&queue, entry);
        assert_int_equal(queue.n_entries, 0);
        return 0;
}

static void push(size_t index, uint32_t session, int priority) {
        entries[index].key = index;
        entries[index].session = session;
        entries[index].priority = priority;
        assert_int_equal(queue_push(&queue, &entries[index]), 0);
}

static size_t take(void) {
        QueueEntry *entry = queue_pick(&queue, NULL, NULL);

        assert_non_null(entry);
        queue_take(&queue, entry);
        return (size_t)(entry - entries);
}

/* The first test: what is left of the turn that went then says 0 and 0 too. */
static void a_session_whose_turn_went_has_another(void **state) {
        push(0, 0, 0);
        assert_int_equal(take(), 0);
        push(1, 0, 0);
        assert_int_equal(take(), 1);
        assert_null(queue_pick(&queue, NULL, NULL));
}

static void higher_priority_goes_first(void **state) {
        push(0, 1, 0);
        push(1, 1, -5);
        push(2, 1, 100);
        assert_int_equal(take(), 2);
        assert_int_equal(take(), 0);
        assert_int_equal(take(), 1);
        assert_null(queue_pick(&queue, NULL, NULL));
}

static void sessions_of_one_band_take_turns(void **state) {
        push(0, 1, 0);
        push(1, 1, 0);
        push(2, 1, 0);
        push(3, 2, 0);
        push(4, 2, 0);
        assert_int_equal(take(), 0);
        assert_int_equal(take(), 3);
        assert_int_equal(take(), 1);
        assert_int_equal(take(), 4);
        assert_int_equal(take(), 2);
}

static void a_job_that_comes_back_is_first_of_its_session(void **state) {
        push(0, 1, 0);
        push(1, 1, 0);
        push(2, 1, 0);
        assert_int_equal(take(), 0);
        assert_int_equal(take(), 1);
        assert_int_equal(queue_push(&queue, &entries[1]), 0);
        assert_int_equal(queue_push(&queue, &entries[0]), 0);
        assert_int_equal(take(), 0);
        assert_int_equal(take(), 1);
        assert_int_equal(take(), 2);
}

static bool fits_session_2(QueueEntry *entry, void *userdata) {
        ++*(unsigned *)userdata;
        return entry->session == 2;
}

static void one_that_does_not_fit_lets_other_sessions_by(void **state) {
        unsigned n_asked = 0;

        push(0, 1, 0);
        push(1, 2, 0);
        assert_ptr_equal(queue_pick(&queue, fits_session_2, &n_asked), &entries[1]);
        assert_int_equal(n_asked, 2);
}

static void many_misfits_cost_little(void **state) {
        unsigned n_asked = 0;

        for (size_t i = 0; i < N_ENTRIES; ++i)
                push(i, 100 + (uint32_t)i, 0);
        assert_null(queue_pick(&queue, fits_session_2, &n_asked));
        assert_int_equal(n_asked, QUEUE_LOOK_MAX);
}

static bool fits_key_of(QueueEntry *entry, void *userdata) {
        return entry->key == *(uint64_t *)userdata;
}

static void a_deep_pick_finds_one_behind_others_of_its_session(void **state) {
        uint64_t key = QUEUE_LOOK_MAX - 1;

        for (size_t i = 0; i < N_ENTRIES; ++i)
                push(i, 1, 0);
        assert_null(queue_pick(&queue, fits_key_of, &key));
        assert_ptr_equal(queue_pick_deep(&queue, fits_key_of, &key), &entries[key]);
        queue_take(&queue, &entries[key]);
        key = N_ENTRIES - 1; /* too far behind */
        assert_null(queue_pick_deep(&queue, fits_key_of, &key));
        for (size_t i = 0; i < QUEUE_LOOK_MAX - 1; ++i)
                assert_int_equal(take(), i);
}

static void note_before(QueueEntry *entry, size_t n_before, void *userdata) {
        ((size_t *)userdata)[entry - entries] = n_before;
}

static void those_before_are_counted_as_they_will_be_taken(void **state) {
        size_t before[N_ENTRIES];

        push(0, 1, 0);
        push(1, 1, 0);
        push(2, 1, 0);
        push(3, 2, 0);
        push(4, 3, 7);
        push(5, 2, 0);
        push(6, 1, -1);
        queue_visit(&queue, SIZE_MAX, note_before, before);
        for (size_t i = 0; i < 7; ++i)
                assert_int_equal(before[take()], i);
}

static void those_that_come_back_are_put_in_place_in_a_few_steps(void **state) {
        static QueueEntry many[20000];
        uint64_t before;

        for (size_t i = 0; i < ARRAY_SIZE(many); ++i) {
                many[i] = (QueueEntry){.key = i, .session = 1};
                assert_int_equal(queue_push(&queue, &many[i]), 0);
        }
        for (size_t i = 0; i < 100; ++i)
                queue_take(&queue, &many[i]);
        before = queue.n_steps;
        for (size_t i = 0; i < 100; ++i) { /* 1, 0, 3, 2, … */
                assert_int_equal(queue_push(&queue, &many[i ^ 1]), 0);
        }
        assert_true(queue.n_steps - before < 100 * 100);
        for (size_t i = 0; i < ARRAY_SIZE(many); ++i) {
                assert_ptr_equal(queue_pick(&queue, NULL, NULL), &many[i]);
                queue_take(&queue, &many[i]);
        }
}

/* Followers of one job are older than what was submitted after them, and go between others. */
static void a_row_that_comes_back_goes_in_one_behind_the_other(void **state) {
        static QueueEntry many[30000];
        size_t third = ARRAY_SIZE(many) / 3;
        uint64_t before;

        for (size_t i = 0; i < ARRAY_SIZE(many); ++i)
                many[i] = (QueueEntry){.key = i, .session = 1};
        for (size_t i = 0; i < third; ++i)
                assert_int_equal(queue_push(&queue, &many[i]), 0);
        for (size_t i = 2 * third; i < 3 * third; ++i)
                assert_int_equal(queue_push(&queue, &many[i]), 0);
        before = queue.n_steps;
        for (size_t i = third; i < 2 * third; ++i) {
                assert_int_equal(queue_push(&queue, &many[i]), 0);
                if (i % 100 == 0)
                        queue_take(&queue, &many[i]); /* the one put in last */
        }
        assert_true(queue.n_steps - before < 3 * third);
        for (size_t i = 0; i < third; ++i) {
                assert_ptr_equal(queue_pick(&queue, NULL, NULL), &many[i]);
                queue_take(&queue, &many[i]);
        }
        for (size_t i = third; i < ARRAY_SIZE(many); ++i)
                if (many[i].turn)
                        queue_remove(&queue, &many[i]);
        assert_int_equal(queue.n_entries, 0);
}

static void count_visit(QueueEntry *entry, size_t n_before, void *userdata) {
        ++*(size_t *)userdata;
}

static void visiting_costs_the_same_for_each(void **state) {
        static QueueEntry many[20000];
        size_t n_visited = 0;
        uint64_t before;

        for (size_t i = 0; i < ARRAY_SIZE(many); ++i) { /* one session with half, 10,000 with one */
                many[i] = (QueueEntry){.key = i, .session = i % 2 ? (uint32_t)i : 0};
                assert_int_equal(queue_push(&queue, &many[i]), 0);
        }
        before = queue.n_steps;
        queue_visit(&queue, SIZE_MAX, count_visit, &n_visited);
        assert_int_equal(n_visited, ARRAY_SIZE(many));
        assert_int_equal(queue.n_steps - before, ARRAY_SIZE(many));

        before = queue.n_steps;
        n_visited = 0;
        assert_int_equal(queue_visit(&queue, 100, count_visit, &n_visited), 100);
        assert_int_equal(n_visited, 100);
        assert_int_equal(queue.n_steps - before, 100);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_session_whose_turn_went_has_another, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(higher_priority_goes_first, set_up, tear_down),
                cmocka_unit_test_setup_teardown(sessions_of_one_band_take_turns, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_job_that_comes_back_is_first_of_its_session,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(one_that_does_not_fit_lets_other_sessions_by,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(many_misfits_cost_little, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_deep_pick_finds_one_behind_others_of_its_session,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(those_before_are_counted_as_they_will_be_taken,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        those_that_come_back_are_put_in_place_in_a_few_steps, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_row_that_comes_back_goes_in_one_behind_the_other,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(visiting_costs_the_same_for_each, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
