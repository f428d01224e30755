/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quanta: what each rule says, by hand, and then random domains and jobs, where nobody
 * is ever dispatched beside what holds the device, and nobody waits for ever.
 */
#include "quanta.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define US 1000ull
#define MS 1000000ull
#define Q  (2 * MS)

typedef struct Two {
        Quanta quanta;
        QuantaDomain a, b;
        QuantaJob jobs[64];
} Two;

/* Both used their last quantum to the full. */
static Two two(void) {
        return (Two){.quanta = {.quantum_ns = Q}, .a.held_ns = Q, .b.held_ns = Q};
}

/* @pick asks, the holder has more to do. */
static QuantaTurn ask(Two *two, QuantaDomain *pick, uint64_t now_ns) {
        return quanta_turn(&two->quanta, pick, true, true, now_ns);
}

/* @pick asks, the holder has no more to do. */
static QuantaTurn ask_after(Two *two, QuantaDomain *pick, uint64_t now_ns) {
        return quanta_turn(&two->quanta, pick, false, true, now_ns);
}

static bool run(Two *two, size_t i, QuantaDomain *domain, uint64_t expected_ns, uint64_t now_ns) {
        return quanta_enter(&two->quanta, domain, &two->jobs[i], expected_ns, now_ns);
}

static void end(Two *two, size_t i, QuantaDomain *domain, uint64_t now_ns) {
        quanta_leave(domain, &two->jobs[i], now_ns);
}

static void the_first_is_granted_the_device(void **state) {
        Two t = two();

        assert_ptr_equal(ask(&t, &t.a, 5).domain, &t.a);
        assert_int_equal(t.quanta.n_quanta, 1);
        assert_true(quanta_is_shut(&t.quanta, &t.b));
        assert_false(quanta_is_shut(&t.quanta, &t.a));
}

static void the_holder_goes_on_with_a_part_of_a_quantum_in_flight(void **state) {
        Two t = two();
        size_t n = 0;

        ask(&t, &t.a, 0);
        while (ask(&t, &t.b, 100 * US).domain == &t.a)
                assert_true(run(&t, n++, &t.a, Q / 20, 100 * US));
        assert_int_equal(n, 20 / QUANTA_PARTS);
        assert_int_equal(ask(&t, &t.b, 100 * US).until_ns, Q);

        end(&t, 0, &t.a, 200 * US);
        assert_ptr_equal(ask(&t, &t.b, 200 * US).domain, &t.a);
}

static void two_are_in_flight_however_long_they_are(void **state) {
        Two t = two();

        ask(&t, &t.a, 0);
        run(&t, 0, &t.a, Q / 2, 0);
        assert_ptr_equal(ask(&t, &t.b, 0).domain, &t.a);
        run(&t, 1, &t.a, Q / 4, 0);
        assert_null(ask(&t, &t.b, 0).domain);
}

static void nothing_is_dispatched_that_begins_after_the_end(void **state) {
        Two t = two();

        ask(&t, &t.a, 0);
        run(&t, 0, &t.a, Q / 10, Q - Q / 20);
        assert_null(ask(&t, &t.b, Q - Q / 20).domain);
}

static void the_next_begins_when_all_in_flight_have_ended(void **state) {
        Two t = two();

        ask(&t, &t.a, 0);
        run(&t, 0, &t.a, MS, 0);
        run(&t, 1, &t.a, MS, 0);
        assert_null(ask(&t, &t.b, Q).domain);
        end(&t, 0, &t.a, Q + 10);
        assert_null(ask(&t, &t.b, Q + 10).domain);
        end(&t, 1, &t.a, Q + 20);
        assert_ptr_equal(ask(&t, &t.b, Q + 20).domain, &t.b);
        assert_int_equal(t.quanta.n_quanta, 2);
        assert_int_equal(t.quanta.n_overruns, 0);
}

static void one_with_nothing_to_do_hands_over_at_once(void **state) {
        Two t = two();

        ask(&t, &t.a, 0);
        run(&t, 0, &t.a, 10 * US, 0);
        assert_null(ask_after(&t, &t.b, 5 * US).domain);
        end(&t, 0, &t.a, 10 * US);
        assert_ptr_equal(ask_after(&t, &t.b, 10 * US).domain, &t.b);
}

static void one_that_gets_work_again_goes_on_in_its_quantum(void **state) {
        Two t = two();

        ask(&t, &t.a, 0);
        run(&t, 0, &t.a, 10 * US, 0);
        assert_null(ask_after(&t, &t.b, 5 * US).domain);
        assert_ptr_equal(ask(&t, &t.b, 6 * US).domain, &t.a);
}

static void one_alone_is_never_bounded(void **state) {
        Two t = two();

        for (uint64_t now_ns = 0; now_ns < 20 * Q; now_ns += MS) {
                assert_ptr_equal(quanta_turn(&t.quanta, &t.a, true, false, now_ns).domain, &t.a);
                run(&t, now_ns / MS, &t.a, 2 * Q, now_ns);
        }
        assert_int_equal(t.quanta.n_quanta, 1);
        assert_null(ask(&t, &t.b, 20 * Q).domain); /* who comes then finds it over */
}

static void whose_turn_it_still_is_goes_on_without_draining(void **state) {
        Two t = two();

        ask(&t, &t.a, 0);
        run(&t, 0, &t.a, Q / 10, 0);
        assert_ptr_equal(ask(&t, &t.a, Q).domain, &t.a);
        assert_int_equal(t.quanta.n_quanta, 2);
        assert_ptr_equal(ask(&t, &t.b, Q + Q / 2).domain, &t.a); /* in the new quantum */
}

static void for_one_that_used_little_a_quantum_ends_early(void **state) {
        Two t = two();

        ask(&t, &t.b, 0);
        run(&t, 0, &t.b, 10 * US, 0);
        end(&t, 0, &t.b, 10 * US);
        assert_ptr_equal(ask_after(&t, &t.a, 10 * US).domain, &t.a);
        assert_int_equal(t.b.held_ns, 10 * US);

        assert_ptr_equal(ask(&t, &t.b, Q / QUANTA_PARTS).domain, &t.a);
        assert_ptr_equal(ask(&t, &t.b, 10 * US + Q / QUANTA_PARTS).domain, &t.b);
        assert_ptr_equal(ask(&t, &t.a, 10 * US + Q).domain, &t.b); /* not for one that used more */
}

static void one_whose_quantum_was_renewed_did_not_use_little(void **state) {
        Two t = two();

        ask(&t, &t.b, 0);
        ask(&t, &t.b, Q); /* renewed, and nothing more to do */
        assert_ptr_equal(ask_after(&t, &t.a, Q + 10).domain, &t.a);
        assert_ptr_equal(ask(&t, &t.b, 2 * Q).domain, &t.a);
}

/* Its holder may be alone while a client thinks: it is to be drained when that is back. */
static void in_a_pause_of_the_other_no_more_is_in_flight_than_before(void **state) {
        uint64_t later_ns = 10 + QUANTA_SHARED * Q;
        Two t = two();

        ask(&t, &t.b, 0);
        ask_after(&t, &t.a, 10);
        run(&t, 0, &t.a, Q / 4, 10);
        run(&t, 1, &t.a, Q / 4, 10);
        assert_null(quanta_turn(&t.quanta, &t.a, true, false, 20).domain);
        end(&t, 0, &t.a, later_ns);
        run(&t, 0, &t.a, Q / 4, later_ns);
        assert_ptr_equal(quanta_turn(&t.quanta, &t.a, true, false, later_ns).domain, &t.a);
}

static void a_kernel_that_overruns_stops_nobody(void **state) {
        Two t = two();
        QuantaTurn turn;

        ask(&t, &t.a, 0);
        run(&t, 0, &t.a, MS, 0); /* but it takes for ever */
        turn = ask(&t, &t.b, Q);
        assert_null(turn.domain);
        assert_int_equal(turn.until_ns, 2 * Q);
        assert_null(ask(&t, &t.b, 2 * Q - 1).domain);
        assert_true(quanta_holds(&t.a, &t.jobs[0]));
        turn = ask(&t, &t.b, 2 * Q);
        assert_ptr_equal(turn.domain, &t.b);
        assert_ptr_equal(turn.overran, &t.a);
        assert_false(quanta_holds(&t.a, &t.jobs[0]));
        assert_int_equal(t.quanta.n_overruns, 1);

        /* Nor is it waited for again when its domain has had another quantum. */
        assert_ptr_equal(ask_after(&t, &t.a, 3 * Q).domain, &t.a);
        run(&t, 1, &t.a, 10 * US, 3 * Q);
        end(&t, 1, &t.a, 3 * Q + 10 * US);
        assert_ptr_equal(ask_after(&t, &t.b, 3 * Q + 10 * US).domain, &t.b);
        end(&t, 0, &t.a, 900 * Q);
        end(&t, 0, &t.a, 900 * Q);
        assert_int_equal(t.a.n_in_flight, 0);
        assert_int_equal(t.quanta.n_overruns, 1);
}

static void who_comes_long_after_a_kernel_got_stuck_does_not_wait(void **state) {
        Two t = two();

        quanta_turn(&t.quanta, &t.a, false, false, 0);
        run(&t, 0, &t.a, MS, 0);
        assert_ptr_equal(ask_after(&t, &t.b, 250 * Q).domain, &t.b);
        assert_int_equal(t.quanta.n_overruns, 1);
}

static void what_is_in_flight_when_one_comes_late_may_end_as_expected(void **state) {
        uint64_t now_ns = 250 * Q;
        Two t = two();
        QuantaTurn turn;

        quanta_turn(&t.quanta, &t.a, false, false, 0);
        run(&t, 0, &t.a, 3 * MS / 2, now_ns);
        turn = ask_after(&t, &t.b, now_ns + 10 * US);
        assert_null(turn.domain);
        assert_int_equal(turn.until_ns, now_ns + 3 * MS / 2 + Q);
}

static void a_kernel_known_to_be_long_is_waited_for_by_nobody(void **state) {
        Two t = two();

        ask(&t, &t.a, 0);
        assert_false(run(&t, 0, &t.a, 2000 * MS, 0));
        assert_ptr_equal(ask_after(&t, &t.b, 1).domain, &t.b);
        assert_int_equal(t.quanta.n_overruns, 0);
        end(&t, 0, &t.a, 2000 * MS);
}

/* Each that ends moves on when the rest is given up: but not for ever. */
static void many_late_kernels_hold_it_no_longer_than_a_few_quanta(void **state) {
        Two t = two();
        size_t n = 0;

        ask(&t, &t.a, 0);
        for (; n < 40; n++)
                run(&t, n, &t.a, Q / 40, 0);
        for (uint64_t now_ns = Q;; now_ns += Q / 2, end(&t, --n, &t.a, now_ns)) {
                if (!ask(&t, &t.b, now_ns).domain)
                        continue;
                assert_int_equal(now_ns, Q + QUANTA_LATE_MAX * Q);
                break;
        }
        assert_int_equal(t.quanta.n_overruns, 1);
        while (n--)
                end(&t, n, &t.a, 100 * Q);
        assert_int_equal(t.a.n_in_flight, 0);
}

static void with_others_waiting_it_is_bounded_in_its_own_turn_too(void **state) {
        Two t = two();
        size_t n = 0;

        while (ask(&t, &t.a, 0).domain)
                run(&t, n++, &t.a, Q / 20, 0);
        assert_int_equal(n, 20 / QUANTA_PARTS);
        end(&t, 0, &t.a, 5);
        assert_ptr_equal(ask(&t, &t.a, 5).domain, &t.a);
}

static void a_kernel_that_overruns_does_not_stop_its_own_domain_either(void **state) {
        Two t = two();

        assert_ptr_equal(ask(&t, &t.a, 0).domain, &t.a);
        run(&t, 0, &t.a, Q / 2, 0); /* but these take for ever */
        run(&t, 1, &t.a, Q / 2, 0);
        assert_null(ask(&t, &t.a, 2 * Q - 1).domain);
        assert_ptr_equal(ask(&t, &t.a, 2 * Q).overran, &t.a);
        assert_ptr_equal(ask(&t, &t.a, 2 * Q).domain, &t.a);
}

static void without_quanta_all_run_beside_each_other(void **state) {
        Two t = {0};

        for (unsigned i = 0; i < 10; i++) {
                QuantaDomain *domain = i % 2 ? &t.a : &t.b;

                assert_ptr_equal(ask(&t, domain, i).domain, domain);
                assert_true(run(&t, i, domain, 1000 * MS, i));
        }
        assert_int_equal(t.quanta.n_quanta, 0);
        assert_false(quanta_is_shut(&t.quanta, &t.a));
}

static void quanta_may_come_and_go_while_jobs_run(void **state) {
        Two t = {0};

        run(&t, 0, &t.a, MS, 0);
        t.quanta.quantum_ns = Q;
        assert_ptr_equal(ask(&t, &t.b, 0).domain, &t.b);
        run(&t, 1, &t.b, MS, 0);
        assert_null(ask(&t, &t.a, Q).domain);
        t.quanta.quantum_ns = 0;
        assert_ptr_equal(ask(&t, &t.a, Q).domain, &t.a);
        end(&t, 0, &t.a, Q);
        end(&t, 1, &t.b, Q);
        assert_int_equal(t.a.n_in_flight + t.b.n_in_flight, 0);
        assert_int_equal(t.a.in_flight_ns + t.b.in_flight_ns, 0);
}

static void a_domain_that_goes_holds_nothing(void **state) {
        Two t = two();

        ask(&t, &t.a, 0);
        quanta_forget(&t.quanta, &t.b);
        assert_true(quanta_is_shut(&t.quanta, &t.b));
        quanta_forget(&t.quanta, &t.a);
        assert_false(quanta_is_shut(&t.quanta, &t.b));
}

/* ---- random -------------------------------------------------------------------- */

#define N_DOMAINS 5u
#define N_SLOTS   16u

typedef struct Sim {
        Quanta quanta;
        QuantaDomain domains[N_DOMAINS];
        struct {
                QuantaJob job;
                uint64_t end_ns; /* 0: free */
        } jobs[N_DOMAINS][N_SLOTS];
        uint64_t waits_ns[N_DOMAINS]; /* since when it asks in vain */
        uint64_t now_ns, seed;
} Sim;

static uint64_t sim_random(Sim *sim, uint64_t n) {
        sim->seed ^= sim->seed << 13;
        sim->seed ^= sim->seed >> 7;
        sim->seed ^= sim->seed << 17;
        return sim->seed % n;
}

static void sim_end(Sim *sim) {
        for (size_t d = 0; d < N_DOMAINS; d++)
                for (size_t i = 0; i < N_SLOTS; i++) {
                        if (!sim->jobs[d][i].end_ns || sim->jobs[d][i].end_ns > sim->now_ns)
                                continue;
                        quanta_leave(&sim->domains[d], &sim->jobs[d][i].job, sim->now_ns);
                        sim->jobs[d][i].end_ns = 0;
                }
}

static bool sim_has_slot(const Sim *sim, size_t d, size_t *ret_i) {
        for (size_t i = 0; i < N_SLOTS; i++)
                if (!sim->jobs[d][i].end_ns) {
                        *ret_i = i;
                        return true;
                }
        return false;
}

static void sim_assert_exclusive(const Sim *sim, const QuantaDomain *domain) {
        for (size_t d = 0; d < N_DOMAINS; d++)
                assert_true(&sim->domains[d] == domain || sim->domains[d].n_in_flight == 0);
}

/* Now and then one takes a hundred times what is expected of it. */
static void sim_dispatch(Sim *sim, QuantaDomain *domain) {
        uint64_t expected_ns = 1 + sim_random(sim, sim_random(sim, 9) ? 200 * US : 3 * Q);
        uint64_t cost_ns = sim_random(sim, 50) ? expected_ns : 100 * expected_ns;
        size_t d = (size_t)(domain - sim->domains), i;

        sim_assert_exclusive(sim, domain);
        sim->waits_ns[d] = 0;
        if (!sim_has_slot(sim, d, &i))
                return;
        quanta_enter(&sim->quanta, domain, &sim->jobs[d][i].job, expected_ns, sim->now_ns);
        sim->jobs[d][i].end_ns = sim->now_ns + 1 + cost_ns;
}

static void nobody_runs_beside_a_holder_and_nobody_waits_for_ever(void **state) {
        Sim sim = {.quanta = {.quantum_ns = Q}, .seed = 88172645463325252ull};
        size_t turn = 0;

        for (unsigned step = 0; step < 300000; step++) {
                QuantaDomain *pick = &sim.domains[turn % N_DOMAINS];
                bool works = sim_random(&sim, 4);
                QuantaTurn verdict;

                sim_end(&sim);
                if (!sim.waits_ns[turn % N_DOMAINS])
                        sim.waits_ns[turn % N_DOMAINS] = sim.now_ns + 1;
                verdict = quanta_turn(&sim.quanta, pick, works, true, sim.now_ns);
                assert_true(verdict.domain || verdict.until_ns > sim.now_ns);
                if (verdict.domain)
                        sim_dispatch(&sim, verdict.domain);
                if (verdict.domain == pick && !sim_random(&sim, 20))
                        turn++;
                /* a quantum, another that is in flight with a last job of two, and their late end */
                assert_true(!sim.waits_ns[turn % N_DOMAINS] ||
                            sim.now_ns < sim.waits_ns[turn % N_DOMAINS] +
                                                 (2 + QUANTA_LONG + QUANTA_LATE_MAX) * Q +
                                                 200 * US);
                sim.now_ns += sim_random(&sim, 100 * US);
        }
        assert_true(sim.quanta.n_overruns > 10);
        assert_true(sim.quanta.n_quanta > 1000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_first_is_granted_the_device),
                cmocka_unit_test(the_holder_goes_on_with_a_part_of_a_quantum_in_flight),
                cmocka_unit_test(two_are_in_flight_however_long_they_are),
                cmocka_unit_test(nothing_is_dispatched_that_begins_after_the_end),
                cmocka_unit_test(the_next_begins_when_all_in_flight_have_ended),
                cmocka_unit_test(one_with_nothing_to_do_hands_over_at_once),
                cmocka_unit_test(one_that_gets_work_again_goes_on_in_its_quantum),
                cmocka_unit_test(one_alone_is_never_bounded),
                cmocka_unit_test(whose_turn_it_still_is_goes_on_without_draining),
                cmocka_unit_test(a_kernel_that_overruns_stops_nobody),
                cmocka_unit_test(who_comes_long_after_a_kernel_got_stuck_does_not_wait),
                cmocka_unit_test(what_is_in_flight_when_one_comes_late_may_end_as_expected),
                cmocka_unit_test(a_kernel_known_to_be_long_is_waited_for_by_nobody),
                cmocka_unit_test(many_late_kernels_hold_it_no_longer_than_a_few_quanta),
                cmocka_unit_test(for_one_that_used_little_a_quantum_ends_early),
                cmocka_unit_test(one_whose_quantum_was_renewed_did_not_use_little),
                cmocka_unit_test(in_a_pause_of_the_other_no_more_is_in_flight_than_before),
                cmocka_unit_test(with_others_waiting_it_is_bounded_in_its_own_turn_too),
                cmocka_unit_test(a_kernel_that_overruns_does_not_stop_its_own_domain_either),
                cmocka_unit_test(without_quanta_all_run_beside_each_other),
                cmocka_unit_test(quanta_may_come_and_go_while_jobs_run),
                cmocka_unit_test(a_domain_that_goes_holds_nothing),
                cmocka_unit_test(nobody_runs_beside_a_holder_and_nobody_waits_for_ever),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
