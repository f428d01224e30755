/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair share on a simulated clock: one device that runs one job after the other,
 * users whose queues are counted, no time but the simulation's own.
 */
#include "fairshare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000ull
#define S  1000000000ull

typedef struct SimUser {
        ShareUser share; /* first: the picked pointer is the user */
        uint64_t cost_ns;
        uint64_t expected_ns;
        uint64_t n_queued;
        uint64_t served_ns;
} SimUser;

typedef struct Sim {
        FairShare *fs;
        SimUser *users;
        size_t n_users;
        uint64_t now_ns;
} Sim;

static void sim_init(Sim *sim, size_t n_users) {
        *sim = (Sim){.n_users = n_users};
        assert_int_equal(fairshare_new(&sim->fs), 0);
        sim->users = calloc(n_users, sizeof(SimUser));
        assert_non_null(sim->users);
        for (size_t i = 0; i < n_users; i++) {
                shareuser_init(&sim->users[i].share, 1);
                sim->users[i].cost_ns = sim->users[i].expected_ns = MS;
        }
}

static void sim_finish(Sim *sim) {
        fairshare_free(sim->fs);
        free(sim->users);
}

static void sim_queue(Sim *sim, size_t i, uint64_t n_jobs) {
        sim->users[i].n_queued += n_jobs;
        assert_int_equal(fairshare_wake(sim->fs, &sim->users[i].share), 0);
}

/* Dispatches one job and lets it end; returns who it was, or NULL. */
static SimUser *sim_step(Sim *sim) {
        SimUser *user = (SimUser *)fairshare_pick(sim->fs);

        if (!user)
                return NULL;

        assert_true(user->n_queued > 0);
        fairshare_charge(sim->fs, &user->share, user->expected_ns, sim->now_ns);
        if (--user->n_queued == 0)
                fairshare_sleep(sim->fs, &user->share);
        sim->now_ns += user->cost_ns;
        user->served_ns += user->cost_ns;
        fairshare_settle(sim->fs, &user->share, user->expected_ns, user->cost_ns, sim->now_ns);
        return user;
}

static void sim_run(Sim *sim, uint64_t duration_ns) {
        uint64_t end_ns = sim->now_ns + duration_ns;

        while (sim->now_ns < end_ns && sim_step(sim))
                ;
}

static void assert_near(double a, double b, double part) {
        if (a > b * (1 + part) || a < b * (1 - part))
                fail_msg("%g is not within %g %% of %g", a, part * 100, b);
}

static void weights_of_one_to_three_give_one_to_three(void **state) {
        Sim sim;

        sim_init(&sim, 2);
        fairshare_set_weight(sim.fs, &sim.users[1].share, 3);
        sim.users[0].cost_ns = sim.users[0].expected_ns = 7 * MS;
        sim.users[1].cost_ns = sim.users[1].expected_ns = 2 * MS;
        sim_queue(&sim, 0, UINT32_MAX);
        sim_queue(&sim, 1, UINT32_MAX);
        sim_run(&sim, 20 * S);

        assert_near((double)sim.users[1].served_ns / (double)sim.users[0].served_ns, 3, 0.05);
        sim_finish(&sim);
}

static void wrong_expectations_do_not_change_the_shares(void **state) {
        Sim sim;

        sim_init(&sim, 2);
        sim.users[0].expected_ns = MS / 100; /* says a hundredth of what it takes */
        sim.users[1].expected_ns = 50 * MS;
        sim_queue(&sim, 0, UINT32_MAX);
        sim_queue(&sim, 1, UINT32_MAX);
        sim_run(&sim, 20 * S);

        assert_near((double)sim.users[0].served_ns, (double)sim.users[1].served_ns, 0.05);
        sim_finish(&sim);
}

static void returning_user_gets_no_saved_credit(void **state) {
        Sim sim;
        uint64_t before;

        sim_init(&sim, 2);
        sim_queue(&sim, 0, UINT32_MAX);
        sim_run(&sim, 100 * S);

        sim_queue(&sim, 1, UINT32_MAX);
        before = sim.users[0].served_ns;
        sim_run(&sim, 2 * S);

        assert_near((double)(sim.users[0].served_ns - before), (double)sim.users[1].served_ns,
                    0.05);
        sim_finish(&sim);
}

static void a_correction_after_sleep_gives_no_credit_either(void **state) {
        Sim sim;
        ShareUser *late;

        sim_init(&sim, 2);
        late = &sim.users[1].share;
        sim_queue(&sim, 0, UINT32_MAX);
        assert_int_equal(fairshare_wake(sim.fs, late), 0);
        fairshare_charge(sim.fs, late, 100 * S, sim.now_ns); /* thought to be very long */
        fairshare_sleep(sim.fs, late);
        sim_run(&sim, 500 * S);

        assert_int_equal(fairshare_wake(sim.fs, late), 0);
        fairshare_settle(sim.fs, late, 100 * S, 1, sim.now_ns);
        assert_true(late->start >= sim.users[0].share.start - 2.0 * (double)MS);
        sim_finish(&sim);
}

static void nobody_pays_for_time_when_the_device_was_idle(void **state) {
        Sim sim;

        sim_init(&sim, 2);
        sim_queue(&sim, 0, 10000);
        sim_run(&sim, 100 * S);
        assert_null(fairshare_pick(sim.fs));

        sim_queue(&sim, 0, UINT32_MAX);
        sim_queue(&sim, 1, UINT32_MAX);
        sim.users[0].served_ns = 0;
        sim_run(&sim, 2 * S);
        assert_near((double)sim.users[0].served_ns, (double)sim.users[1].served_ns, 0.05);
        sim_finish(&sim);
}

static void greedy_user_with_many_jobs_gains_nothing(void **state) {
        Sim sim;

        sim_init(&sim, 2);
        sim_queue(&sim, 0, 1000000);
        sim_queue(&sim, 1, 1);
        for (int i = 0; i < 4000; i++) {
                if (sim.users[1].n_queued == 0)
                        sim_queue(&sim, 1, 1); /* one at a time, each after the last ended */
                assert_non_null(sim_step(&sim));
        }

        assert_near((double)sim.users[0].served_ns, (double)sim.users[1].served_ns, 0.05);
        sim_finish(&sim);
}

static void one_of_a_thousand_users_never_starves(void **state) {
        enum { N = 1000 };
        size_t waited[N] = {0};
        Sim sim;

        sim_init(&sim, N);
        for (size_t i = 0; i < N; i++)
                sim_queue(&sim, i, UINT32_MAX);
        for (size_t step = 0; step < 10 * N; step++) {
                SimUser *user = sim_step(&sim);

                for (size_t i = 0; i < N; i++)
                        waited[i]++;
                waited[user - sim.users] = 0;
        }

        for (size_t i = 0; i < N; i++)
                assert_true(waited[i] <= N);
        sim_finish(&sim);
}

static void equal_users_take_turns_also_when_jobs_cost_nothing(void **state) {
        Sim sim;

        sim_init(&sim, 3);
        for (size_t i = 0; i < 3; i++) {
                sim.users[i].cost_ns = sim.users[i].expected_ns = 0;
                sim_queue(&sim, i, UINT32_MAX);
        }
        for (size_t step = 0; step < 30; step++)
                assert_ptr_equal(sim_step(&sim), &sim.users[step % 3]);
        sim_finish(&sim);
}

static double compared_per_step(size_t n_users) {
        enum { STEPS = 20000 };
        uint64_t before;
        Sim sim;

        sim_init(&sim, n_users);
        for (size_t i = 0; i < n_users; i++) {
                sim.users[i].cost_ns = sim.users[i].expected_ns = (1 + i % 7) * MS;
                sim_queue(&sim, i, UINT32_MAX);
        }
        before = fairshare_n_compared(sim.fs);
        for (int step = 0; step < STEPS; step++)
                assert_non_null(sim_step(&sim));
        before = fairshare_n_compared(sim.fs) - before;
        sim_finish(&sim);
        return (double)before / STEPS;
}

static void cost_grows_no_faster_than_log_n(void **state) {
        double small = compared_per_step(16), large = compared_per_step(16 * 1024);

        /* log2: 4 and 14. */
        assert_true(large <= small * 14.0 / 4.0 * 1.5);
}

static void a_job_may_be_paid_in_parts(void **state) {
        FairShare *fs = NULL;
        ShareUser at_once, in_parts;

        assert_int_equal(fairshare_new(&fs), 0);
        fairshare_configure(fs, 10 * S, 1);
        shareuser_init(&at_once, 1);
        shareuser_init(&in_parts, 1);
        fairshare_charge(fs, &at_once, 2 * S, S);
        fairshare_charge(fs, &in_parts, 2 * S, S);
        assert_int_equal(fairshare_wake(fs, &at_once), 0);
        assert_int_equal(fairshare_wake(fs, &in_parts), 0);

        fairshare_advance(fs, &in_parts, S, S, S);
        assert_near(in_parts.finish, at_once.finish, 1e-9); /* S was expected, S was used */
        fairshare_advance(fs, &in_parts, S, 3 * S, S);
        fairshare_settle(fs, &in_parts, 0, 4 * S, S);
        fairshare_settle(fs, &at_once, 2 * S, 8 * S, S);
        assert_near(in_parts.finish, at_once.finish, 1e-9);
        assert_near(fairshare_usage(fs, &in_parts, S), fairshare_usage(fs, &at_once, S), 1e-9);
        fairshare_sleep(fs, &at_once);
        fairshare_sleep(fs, &in_parts);
        fairshare_free(fs);
}

static void usage_halves_in_a_half_life(void **state) {
        FairShare *fs = NULL;
        ShareUser user;

        assert_int_equal(fairshare_new(&fs), 0);
        fairshare_configure(fs, 10 * S, 1);
        shareuser_init(&user, 1);
        fairshare_charge(fs, &user, 0, S);
        fairshare_settle(fs, &user, 0, 8 * S, S);

        assert_near(shareuser_recent(&user, S), 8e9, 1e-9);
        assert_near(shareuser_recent(&user, S + FAIRSHARE_RECENT_NS), 4e9, 1e-9);
        assert_near(fairshare_usage(fs, &user, S + 10 * S), 4e9, 1e-9);
        assert_near(fairshare_usage(fs, &user, S + 30 * S), 1e9, 1e-9);
        fairshare_free(fs);
}

/* ---- the past counts -------------------------------------------------------- */

#define HALF_LIFE (100 * S)

static void sim_init_with_past(Sim *sim, size_t n_users) {
        sim_init(sim, n_users);
        fairshare_configure(sim->fs, HALF_LIFE, 1);
}

static void who_used_much_of_late_yields_to_who_did_not(void **state) {
        Sim sim;

        sim_init_with_past(&sim, 2);
        sim_queue(&sim, 0, UINT32_MAX);
        sim_run(&sim, 10 * HALF_LIFE);
        sim.users[0].served_ns = 0;
        sim_queue(&sim, 1, UINT32_MAX);
        sim_run(&sim, S);

        assert_near((double)sim.users[1].served_ns / (double)sim.users[0].served_ns,
                    FAIRSHARE_YIELD_MAX, 0.05);
        sim_finish(&sim);
}

static void yielding_has_a_limit_whatever_the_weights(void **state) {
        Sim sim;

        sim_init_with_past(&sim, 2);
        fairshare_set_weight(sim.fs, &sim.users[0].share, 0.01);
        fairshare_set_weight(sim.fs, &sim.users[1].share, 0.01);
        sim_queue(&sim, 0, UINT32_MAX);
        sim_run(&sim, 10 * HALF_LIFE);
        sim.users[0].served_ns = 0;
        sim_queue(&sim, 1, UINT32_MAX);
        sim_run(&sim, S / 4);

        assert_near((double)sim.users[1].served_ns / (double)sim.users[0].served_ns,
                    FAIRSHARE_YIELD_MAX, 0.3);
        sim_finish(&sim);
}

static void yielding_ends_when_both_used_the_same(void **state) {
        Sim sim;

        sim_init_with_past(&sim, 2);
        sim_queue(&sim, 0, UINT32_MAX);
        sim_run(&sim, 10 * HALF_LIFE);
        sim_queue(&sim, 1, UINT32_MAX);
        sim_run(&sim, 10 * HALF_LIFE);
        sim.users[0].served_ns = sim.users[1].served_ns = 0;
        sim_run(&sim, 20 * S);

        assert_near((double)sim.users[1].served_ns, (double)sim.users[0].served_ns, 0.01);
        sim_finish(&sim);
}

static void the_past_is_forgotten(void **state) {
        Sim sim;

        sim_init_with_past(&sim, 2);
        sim_queue(&sim, 0, UINT32_MAX);
        sim_run(&sim, 5 * HALF_LIFE);
        fairshare_sleep(sim.fs, &sim.users[0].share);
        sim.now_ns += 10 * HALF_LIFE;
        sim_queue(&sim, 0, 0);
        sim_queue(&sim, 1, UINT32_MAX);
        sim.users[0].served_ns = 0;
        sim_run(&sim, S);

        assert_near((double)sim.users[1].served_ns, (double)sim.users[0].served_ns, 0.01);
        sim_finish(&sim);
}

static void weights_hold_in_the_long_run_whatever_the_past(void **state) {
        static const double pairs[][2] = {{1, 3}, {0.01, 0.03}, {100, 300}};

        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
                Sim sim;

                sim_init_with_past(&sim, 2);
                fairshare_set_weight(sim.fs, &sim.users[0].share, pairs[i][0]);
                fairshare_set_weight(sim.fs, &sim.users[1].share, pairs[i][1]);
                sim_queue(&sim, 0, UINT32_MAX);
                sim_queue(&sim, 1, UINT32_MAX);
                sim_run(&sim, 10 * HALF_LIFE);
                assert_near((double)sim.users[1].served_ns / (double)sim.users[0].served_ns, 3,
                            0.02);
                sim_finish(&sim);
        }
}

/* One job at a time is asleep between them: that must not make the past count double. */
static void one_job_at_a_time_is_judged_by_the_same_measure(void **state) {
        Sim sim;

        sim_init_with_past(&sim, 2);
        sim_queue(&sim, 0, UINT32_MAX);
        while (sim.now_ns < 3 * HALF_LIFE) {
                if (sim.users[1].n_queued == 0)
                        sim_queue(&sim, 1, 1);
                assert_non_null(sim_step(&sim));
        }

        assert_near((double)sim.users[0].served_ns, (double)sim.users[1].served_ns, 0.05);
        sim_finish(&sim);
}

/* ---- out of turn ------------------------------------------------------------- */

static void who_wakes_beside_one_out_of_turn_is_not_put_behind_him(void **state) {
        Sim sim;
        ShareUser *holder, *waiting, *late;

        sim_init(&sim, 3);
        holder = &sim.users[0].share;
        waiting = &sim.users[1].share;
        late = &sim.users[2].share;
        sim_queue(&sim, 0, UINT32_MAX);
        sim_queue(&sim, 1, UINT32_MAX);
        for (int i = 0; i < 100; i++) /* a quantum of its own, whoever waits */
                fairshare_charge(sim.fs, holder, MS, sim.now_ns);
        sim_queue(&sim, 2, UINT32_MAX);

        assert_ptr_equal(fairshare_pick(sim.fs), waiting);
        assert_true(late->start <= waiting->start + (double)MS);
        assert_int_equal(fairshare_n_awake(sim.fs), 3);
        sim_finish(&sim);
}

static void useless_weights_are_bounded(void **state) {
        static const double weights[] = {0, -1, 0.0 / 0.0};

        for (size_t i = 0; i < ARRAY_SIZE(weights); i++) {
                ShareUser user;

                shareuser_init(&user, weights[i]);
                assert_true(user.weight >= FAIRSHARE_WEIGHT_MIN);
        }
}

static void freeing_it_puts_everybody_to_sleep(void **state) {
        FairShare *fs = NULL;
        ShareUser user;

        assert_int_equal(fairshare_new(&fs), 0);
        shareuser_init(&user, 1);
        assert_int_equal(fairshare_wake(fs, &user), 0);
        assert_int_equal(fairshare_wake(fs, &user), 0);
        fairshare_free(fs);
        assert_false(shareuser_is_awake(&user));
}

static uint64_t random_next(uint64_t *seed) {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        return *seed;
}

/*
 * Whatever comes and goes: two users who both have work during a whole interval
 * get shares that differ by no more than the jobs of each, and the pick is the
 * smallest tag.
 */
static void random_workloads_stay_fair(void **state) {
        uint64_t seed = 0x9e3779b97f4a7c15ull;

        for (int round = 0; round < 50; round++) {
                Sim sim;
                double a, b, bound;

                sim_init(&sim, 20);
                for (size_t i = 0; i < sim.n_users; i++) {
                        SimUser *user = &sim.users[i];

                        fairshare_set_weight(sim.fs, &user->share,
                                             (double)(1 + random_next(&seed) % 5));
                        user->cost_ns = (1 + random_next(&seed) % 20) * MS;
                        user->expected_ns = user->cost_ns;
                }
                sim_queue(&sim, 0, UINT32_MAX);
                sim_queue(&sim, 1, UINT32_MAX);

                for (int step = 0; step < 3000; step++) {
                        size_t i = 2 + random_next(&seed) % (sim.n_users - 2);
                        ShareUser *picked = fairshare_pick(sim.fs);

                        for (size_t k = 0; k < sim.n_users; k++)
                                assert_true(!shareuser_is_awake(&sim.users[k].share) ||
                                            sim.users[k].share.start >= picked->start);
                        if (random_next(&seed) % 2)
                                sim_queue(&sim, i, 1 + random_next(&seed) % 5);
                        else if (sim.users[i].n_queued) {
                                sim.users[i].n_queued = 0;
                                fairshare_sleep(sim.fs, &sim.users[i].share);
                        }
                        assert_non_null(sim_step(&sim));
                }

                a = (double)sim.users[0].served_ns / sim.users[0].share.weight;
                b = (double)sim.users[1].served_ns / sim.users[1].share.weight;
                bound = (double)sim.users[0].cost_ns / sim.users[0].share.weight +
                        (double)sim.users[1].cost_ns / sim.users[1].share.weight;
                assert_true((a > b ? a - b : b - a) <= bound + 1);
                sim_finish(&sim);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(weights_of_one_to_three_give_one_to_three),
                cmocka_unit_test(wrong_expectations_do_not_change_the_shares),
                cmocka_unit_test(returning_user_gets_no_saved_credit),
                cmocka_unit_test(a_correction_after_sleep_gives_no_credit_either),
                cmocka_unit_test(nobody_pays_for_time_when_the_device_was_idle),
                cmocka_unit_test(greedy_user_with_many_jobs_gains_nothing),
                cmocka_unit_test(one_of_a_thousand_users_never_starves),
                cmocka_unit_test(equal_users_take_turns_also_when_jobs_cost_nothing),
                cmocka_unit_test(cost_grows_no_faster_than_log_n),
                cmocka_unit_test(a_job_may_be_paid_in_parts),
                cmocka_unit_test(usage_halves_in_a_half_life),
                cmocka_unit_test(who_used_much_of_late_yields_to_who_did_not),
                cmocka_unit_test(yielding_has_a_limit_whatever_the_weights),
                cmocka_unit_test(yielding_ends_when_both_used_the_same),
                cmocka_unit_test(the_past_is_forgotten),
                cmocka_unit_test(weights_hold_in_the_long_run_whatever_the_past),
                cmocka_unit_test(one_job_at_a_time_is_judged_by_the_same_measure),
                cmocka_unit_test(who_wakes_beside_one_out_of_turn_is_not_put_behind_him),
                cmocka_unit_test(useless_weights_are_bounded),
                cmocka_unit_test(freeing_it_puts_everybody_to_sleep),
                cmocka_unit_test(random_workloads_stay_fair),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
