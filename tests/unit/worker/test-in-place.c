/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "worker/in_place.h"

enum { SMALL = 60000, LARGE = 3 << 20, MICROSECOND = 1000 };

/* One run at a time, each way taking a time of its own. Return: how many runs were in place. */
static unsigned run(InPlace *in_place, uint64_t n_bytes, size_t n_jobs, uint64_t staged_ns,
                    uint64_t in_place_ns, unsigned n_runs, uint64_t *now_ns) {
        unsigned n = 0;

        for (unsigned i = 0; i < n_runs; ++i) {
                InPlaceChoice choice =
                        in_place_choose(in_place, n_bytes, n_jobs, IN_PLACE_ALONE, *now_ns);
                uint64_t took_ns = choice.in_place ? in_place_ns : staged_ns;
                size_t n_run = choice.only_one ? 1 : n_jobs;

                *now_ns += took_ns;
                in_place_told(in_place, &choice, n_bytes / n_jobs * n_run, n_run, took_ns, *now_ns);
                n += choice.in_place;
        }
        return n;
}

static void first_run_is_staged_then_both_are_tried(void **state) {
        InPlace in_place = {0};
        uint64_t now_ns = 1;

        assert_int_equal(in_place_state(&in_place, SMALL), IN_PLACE_UNTRIED);
        assert_int_equal(run(&in_place, SMALL, 1, 30 * MICROSECOND, 12 * MICROSECOND, 1, &now_ns),
                         0);
        assert_int_equal(in_place_state(&in_place, SMALL), IN_PLACE_TRYING);
        run(&in_place, SMALL, 1, 30 * MICROSECOND, 12 * MICROSECOND, 2 * IN_PLACE_TRIALS - 1,
            &now_ns);
        assert_int_equal(in_place_state(&in_place, SMALL), IN_PLACE_WON);
        assert_int_equal(run(&in_place, SMALL, 1, 30 * MICROSECOND, 12 * MICROSECOND, 100, &now_ns),
                         100);
}

static void hopeless_way_is_tried_once(void **state) {
        InPlace in_place = {0};
        uint64_t now_ns = 1;

        assert_int_equal(
                run(&in_place, SMALL, 1, 24 * MICROSECOND, 10700 * MICROSECOND, 1000, &now_ns), 1);
        assert_int_equal(in_place_state(&in_place, SMALL), IN_PLACE_LOST);
}

static void somewhat_slower_way_is_tried_a_few_times(void **state) {
        InPlace in_place = {0};
        uint64_t now_ns = 1;

        assert_int_equal(
                run(&in_place, SMALL, 1, 24 * MICROSECOND, 40 * MICROSECOND, 1000, &now_ns),
                IN_PLACE_TRIALS);
}

static void about_as_good_is_better_in_place(void **state) {
        InPlace in_place = {0};
        uint64_t now_ns = 1;

        run(&in_place, SMALL, 1, 24 * MICROSECOND, 35 * MICROSECOND, 100, &now_ns);
        assert_int_equal(in_place_state(&in_place, SMALL), IN_PLACE_WON);
}

/* In one class, where the staged runs happen to be of half the size. */
static void it_is_time_for_a_byte_that_counts(void **state) {
        InPlace in_place = {0};
        uint64_t now_ns = 1;

        for (unsigned i = 0; i < 2 * IN_PLACE_TRIALS; ++i) {
                InPlaceChoice choice =
                        in_place_choose(&in_place, 40000, 1, IN_PLACE_ALONE, ++now_ns);

                in_place_told(&in_place, &choice, choice.in_place ? 64000 : 33000, 1,
                              choice.in_place ? 20 * MICROSECOND : 15 * MICROSECOND, now_ns);
        }
        assert_int_equal(in_place_state(&in_place, 40000), IN_PLACE_WON);
}

static void loser_is_tried_again_at_a_falling_rate(void **state) {
        InPlace in_place = {0};
        uint64_t now_ns = 1, gap_ns = IN_PLACE_AGAIN_NS;

        run(&in_place, SMALL, 1, 24 * MICROSECOND, 2400 * MICROSECOND, 10, &now_ns);
        for (int round = 0; round < 4; ++round, gap_ns *= 2) {
                now_ns += gap_ns - 2400 * MICROSECOND;
                assert_int_equal(run(&in_place, SMALL, 1, 1, 2400 * MICROSECOND, 1, &now_ns), 0);
                now_ns += 2400 * MICROSECOND;
                assert_int_equal(
                        run(&in_place, SMALL, 1, 24 * MICROSECOND, 2400 * MICROSECOND, 10, &now_ns),
                        1);
        }
        /* The other way round: once it wins, it stays. */
        now_ns += gap_ns;
        run(&in_place, SMALL, 1, 24 * MICROSECOND, 5 * MICROSECOND, 20, &now_ns);
        assert_int_equal(in_place_state(&in_place, SMALL), IN_PLACE_WON);
}

static void sizes_are_judged_apart(void **state) {
        InPlace in_place = {0};
        uint64_t now_ns = 1;

        run(&in_place, 1000, 1, 20 * MICROSECOND, 10 * MICROSECOND, 20, &now_ns);
        run(&in_place, SMALL, 1, 20 * MICROSECOND, 90 * MICROSECOND, 20, &now_ns);
        assert_int_equal(in_place_state(&in_place, 1000), IN_PLACE_WON);
        assert_int_equal(in_place_state(&in_place, SMALL), IN_PLACE_LOST);
        assert_int_equal(in_place_state(&in_place, UINT64_MAX), IN_PLACE_UNTRIED);
}

static void sizes_that_were_not_judged_follow_their_neighbours(void **state) {
        InPlace in_place = {0};
        uint64_t now_ns = 1;

        run(&in_place, SMALL, 1, 20 * MICROSECOND, 10 * MICROSECOND, 20, &now_ns);
        for (uint64_t n_bytes = 1000; n_bytes <= LARGE; n_bytes *= 2)
                assert_true(in_place_choose(&in_place, n_bytes, 1, IN_PLACE_BESIDE_OLD, now_ns)
                                    .in_place);

        /* The smaller one, where both are. */
        run(&in_place, LARGE, 1, 20 * MICROSECOND, 90 * MICROSECOND, 20, &now_ns);
        assert_true(in_place_choose(&in_place, LARGE / 4, 1, IN_PLACE_BESIDE_OLD, now_ns).in_place);
        assert_false(
                in_place_choose(&in_place, LARGE * 4, 1, IN_PLACE_BESIDE_OLD, now_ns).in_place);

        /* A trial of its own begins all the same. */
        assert_true(in_place_choose(&in_place, LARGE / 4, 1, IN_PLACE_ALONE, now_ns).trial);
}

static void several_jobs_are_tried_only_when_one_was_quick(void **state) {
        InPlace quick = {0}, slow = {0};
        uint64_t now_ns = 1;

        /* Of the many, one alone goes first. */
        assert_int_equal(run(&quick, LARGE, 32, 100 * MICROSECOND, 50 * MICROSECOND, 1, &now_ns),
                         0);
        assert_true(in_place_choose(&quick, LARGE, 32, IN_PLACE_ALONE, now_ns).only_one);
        quick.in_trial = false;
        run(&quick, LARGE, 32, 100 * MICROSECOND, 50 * MICROSECOND, 30, &now_ns);
        assert_int_equal(in_place_state(&quick, LARGE), IN_PLACE_WON);

        assert_int_equal(
                run(&slow, LARGE, 32, 100 * MICROSECOND, 10700 * MICROSECOND, 100, &now_ns), 1);
        assert_int_equal(in_place_state(&slow, LARGE), IN_PLACE_LOST);
}

static void one_trial_is_in_flight_at_a_time(void **state) {
        InPlace in_place = {0};
        InPlaceChoice trial;
        uint64_t now_ns = 1;

        run(&in_place, SMALL, 1, 20 * MICROSECOND, 10 * MICROSECOND, 1, &now_ns);
        trial = in_place_choose(&in_place, SMALL, 1, IN_PLACE_ALONE, now_ns);
        assert_true(trial.trial && trial.in_place);
        for (int i = 0; i < 10; ++i)
                assert_false(
                        in_place_choose(&in_place, SMALL, 1, IN_PLACE_BESIDE_NEW, now_ns).in_place);

        /* One that came to nothing makes room for another. */
        in_place_forget(&in_place, &trial);
        assert_true(in_place_choose(&in_place, SMALL, 1, IN_PLACE_ALONE, now_ns).trial);
}

static void trial_waits_for_what_may_end_in_a_moment(void **state) {
        InPlace in_place = {0};
        InPlaceChoice choice;
        uint64_t now_ns = 1;

        choice = in_place_choose(&in_place, SMALL, 1, IN_PLACE_BESIDE_NEW, now_ns);
        assert_true(choice.wait);
        assert_int_equal(choice.quiet_ns, now_ns + QUIET_NS);
        choice = in_place_choose(&in_place, SMALL, 1, IN_PLACE_ALONE, now_ns + 1000);
        assert_true(choice.trial);
        assert_false(choice.wait);
        assert_int_equal(choice.quiet_ns, now_ns + QUIET_NS); /* of the whole round */
}

static void what_lasts_is_not_waited_for(void **state) {
        InPlace in_place = {0};
        uint64_t now_ns = 1;

        assert_false(in_place_choose(&in_place, SMALL, 1, IN_PLACE_BESIDE_OLD, now_ns).wait);
        assert_true(in_place_choose(&in_place, SMALL, 1, IN_PLACE_BESIDE_NEW, now_ns).wait);
        now_ns += QUIET_NS;
        assert_false(in_place_choose(&in_place, SMALL, 1, IN_PLACE_BESIDE_NEW, now_ns).wait);

        /* What is alone by itself holds nobody. */
        run(&in_place, SMALL, 1, 30 * MICROSECOND, 12 * MICROSECOND, 1, &now_ns);
        assert_int_equal(in_place_choose(&in_place, SMALL, 1, IN_PLACE_ALONE, now_ns).quiet_ns, 0);
}

/* How long it is until somebody is waited for again, at most @most_ns. */
static uint64_t gap(InPlace *in_place, uint64_t *now_ns, uint64_t most_ns) {
        uint64_t from_ns = *now_ns;

        while (!in_place_choose(in_place, SMALL, 1, IN_PLACE_BESIDE_NEW, *now_ns).wait) {
                assert_true(*now_ns - from_ns < most_ns);
                *now_ns += QUIET_NS;
        }
        return *now_ns - from_ns;
}

static void trials_that_never_come_about_are_waited_for_less_and_less(void **state) {
        InPlace in_place = {0};
        uint64_t now_ns = 1, gap_ns, before_ns;

        gap(&in_place, &now_ns, 1);
        now_ns += QUIET_NS;
        before_ns = gap(&in_place, &now_ns, IN_PLACE_AGAIN_NS);
        for (int i = 0; i < 3; ++i) {
                now_ns += QUIET_NS;
                gap_ns = gap(&in_place, &now_ns, IN_PLACE_AGAIN_MAX_NS);
                assert_true(gap_ns > before_ns + before_ns / 2);
                before_ns = gap_ns;
        }

        /* And then they do. */
        run(&in_place, SMALL, 1, 30 * MICROSECOND, 12 * MICROSECOND, 2 * IN_PLACE_TRIALS, &now_ns);
        assert_int_equal(in_place_state(&in_place, SMALL), IN_PLACE_WON);
}

static void one_slow_trial_says_little(void **state) {
        InPlace in_place = {0};
        uint64_t now_ns = 1;

        run(&in_place, SMALL, 1, 20 * MICROSECOND, 10 * MICROSECOND, 1, &now_ns);
        run(&in_place, SMALL, 1, 20 * MICROSECOND, 400 * MICROSECOND, 1, &now_ns);
        assert_int_equal(in_place_state(&in_place, SMALL), IN_PLACE_TRYING);
        run(&in_place, SMALL, 1, 20 * MICROSECOND, 10 * MICROSECOND, 2 * IN_PLACE_TRIALS - 2,
            &now_ns);
        assert_int_equal(in_place_state(&in_place, SMALL), IN_PLACE_WON);
}

static void winner_is_used_while_both_are_tried_again(void **state) {
        InPlace in_place = {0};
        InPlaceChoice trial;
        uint64_t now_ns = 1;

        run(&in_place, SMALL, 1, 30 * MICROSECOND, 12 * MICROSECOND, 2 * IN_PLACE_TRIALS, &now_ns);
        now_ns += IN_PLACE_AGAIN_NS;
        trial = in_place_choose(&in_place, SMALL, 1, IN_PLACE_ALONE, now_ns);
        assert_true(trial.trial);
        assert_false(trial.in_place);
        assert_true(in_place_choose(&in_place, SMALL, 1, IN_PLACE_BESIDE_NEW, now_ns).in_place);

        in_place_forget(&in_place, &trial);
        assert_true(in_place_choose(&in_place, SMALL, 1, IN_PLACE_BESIDE_OLD, now_ns).in_place);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(first_run_is_staged_then_both_are_tried),
                cmocka_unit_test(hopeless_way_is_tried_once),
                cmocka_unit_test(somewhat_slower_way_is_tried_a_few_times),
                cmocka_unit_test(about_as_good_is_better_in_place),
                cmocka_unit_test(it_is_time_for_a_byte_that_counts),
                cmocka_unit_test(loser_is_tried_again_at_a_falling_rate),
                cmocka_unit_test(sizes_are_judged_apart),
                cmocka_unit_test(sizes_that_were_not_judged_follow_their_neighbours),
                cmocka_unit_test(several_jobs_are_tried_only_when_one_was_quick),
                cmocka_unit_test(one_trial_is_in_flight_at_a_time),
                cmocka_unit_test(trial_waits_for_what_may_end_in_a_moment),
                cmocka_unit_test(what_lasts_is_not_waited_for),
                cmocka_unit_test(trials_that_never_come_about_are_waited_for_less_and_less),
                cmocka_unit_test(one_slow_trial_says_little),
                cmocka_unit_test(winner_is_used_while_both_are_tried_again),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
