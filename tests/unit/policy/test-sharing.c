/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair share, queues and quanta together, as the scheduler uses them, on a simulated
 * clock: one device that runs what is in flight in order, users with many sessions, and
 * up to a million jobs. Cost is counted in steps, not in time.
 */
#include "fairshare.h"
#include "quanta.h"
#include "util/list.h"
#include "queue.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define US        1000ull
#define MS        1000000ull
#define S         1000000000ull
#define N_FLIGHT  256u
#define FLIGHT_NS (4 * MS) /* expected, in flight at once */

typedef struct SimUser SimUser;

typedef struct SimJob {
        QueueEntry entry;
        QuantaJob quantum;
        SimUser *user;
        uint64_t expected_ns;
        uint64_t cost_ns;
        uint64_t put_ns;
        uint64_t started_ns;
} SimJob;

struct SimUser {
        ShareUser share;
        QuantaDomain domain;
        Queue queue;
        uint64_t cost_ns; /* of its jobs, on average */
        uint64_t used_ns;
        uint64_t last_end_ns;
        size_t n_jobs; /* waiting and in flight */
        size_t n_ended;
        uint64_t think_ns;  /* between a job's end and the next; of one user, with one job */
        uint64_t waited_ns; /* the longest */
        bool is_random;
};

typedef struct Sim {
        FairShare *fs;
        Quanta quanta;
        SimUser *users;
        size_t n_users;
        SimJob *flight[N_FLIGHT]; /* a ring, oldest first */
        size_t n_flight, first;
        uint64_t flight_ns;
        uint64_t free_ns; /* when the device has done all that is in flight */
        uint64_t now_ns;
        uint64_t seed, last_key;
        uint64_t n_dispatched, n_turns;
        SimJob *thought; /* to be put again */
        uint64_t thought_ns;
        bool is_endless; /* each job that ends is followed by another of its session */
        void (*on_dispatch)(const SimJob *job);
} Sim;

static uint64_t sim_random(Sim *sim, uint64_t n) {
        sim->seed ^= sim->seed << 13;
        sim->seed ^= sim->seed >> 7;
        sim->seed ^= sim->seed << 17;
        return sim->seed % n;
}

static void sim_init(Sim *sim, size_t n_users, uint64_t quantum_ns) {
        *sim = (Sim){
                .n_users = n_users,
                .quanta.quantum_ns = quantum_ns,
                .seed = 88172645463325252ull,
        };
        assert_int_equal(fairshare_new(&sim->fs), 0);
        sim->users = calloc(n_users, sizeof(*sim->users));
        assert_non_null(sim->users);
        for (size_t i = 0; i < n_users; i++) {
                shareuser_init(&sim->users[i].share, 1);
                queue_init(&sim->users[i].queue);
                sim->users[i].cost_ns = 100 * US;
        }
}

static void sim_weigh(Sim *sim, size_t i, double weight) {
        fairshare_set_weight(sim->fs, &sim->users[i].share, weight);
}

static uint64_t sim_cost(Sim *sim, const SimUser *user) {
        return user->is_random ? 1 + sim_random(sim, 2 * user->cost_ns) : user->cost_ns;
}

static void sim_put(Sim *sim, SimUser *user, SimJob *job) {
        job->cost_ns = sim_cost(sim, user);
        job->expected_ns = user->cost_ns;
        job->entry.key = ++sim->last_key;
        job->put_ns = sim->now_ns;
        assert_int_equal(queue_push(&user->queue, &job->entry), 0);
        assert_int_equal(fairshare_wake(sim->fs, &user->share), 0);
}

static void sim_submit(Sim *sim, size_t i, uint32_t session, int priority, size_t n) {
        SimUser *user = &sim->users[i];

        while (n--) {
                SimJob *job = calloc(1, sizeof(*job));

                assert_non_null(job);
                job->user = user;
                job->entry.session = session;
                job->entry.priority = priority;
                user->n_jobs++;
                sim_put(sim, user, job);
        }
}

static void sim_forget(SimUser *user, SimJob *job) {
        user->n_jobs--;
        free(job);
}

/* As the scheduler does when a job has ended: by its own clock, side by side counts once. */
static void sim_end(Sim *sim) {
        SimJob *job = sim->flight[sim->first];
        SimUser *user = job->user;
        uint64_t end_ns = sim->free_ns, busy_ns;

        for (size_t i = 1; i < sim->n_flight; i++)
                end_ns -= sim->flight[(sim->first + i) % N_FLIGHT]->cost_ns;
        sim->now_ns = end_ns > sim->now_ns ? end_ns : sim->now_ns;
        sim->first = (sim->first + 1) % N_FLIGHT;
        sim->n_flight--;
        sim->flight_ns -= job->expected_ns;

        busy_ns = sim->now_ns -
                  (job->started_ns > user->last_end_ns ? job->started_ns : user->last_end_ns);
        user->last_end_ns = sim->now_ns;
        user->used_ns += busy_ns;
        user->n_ended++;
        fairshare_settle(sim->fs, &user->share, job->expected_ns, busy_ns, sim->now_ns);
        quanta_leave(&user->domain, &job->quantum, sim->now_ns);
        if (sim->is_endless && user->think_ns) {
                sim->thought = job;
                sim->thought_ns = sim->now_ns + user->think_ns;
        } else if (sim->is_endless)
                sim_put(sim, user, job);
        else
                sim_forget(user, job);
}

static void sim_dispatch(Sim *sim, SimUser *user) {
        SimJob *job = (SimJob *)queue_pick(&user->queue, NULL, NULL);

        for (size_t i = 0; i < sim->n_flight; i++) /* nobody beside another */
                assert_true(!sim->quanta.quantum_ns ||
                            sim->flight[(sim->first + i) % N_FLIGHT]->user == user);
        if (sim->on_dispatch)
                sim->on_dispatch(job);
        queue_take(&user->queue, &job->entry);
        job->started_ns = sim->now_ns;
        if (sim->now_ns - job->put_ns > user->waited_ns)
                user->waited_ns = sim->now_ns - job->put_ns;
        fairshare_charge(sim->fs, &user->share, job->expected_ns, sim->now_ns);
        quanta_enter(&sim->quanta, &user->domain, &job->quantum, job->expected_ns, sim->now_ns);
        sim->flight[(sim->first + sim->n_flight++) % N_FLIGHT] = job;
        sim->flight_ns += job->expected_ns;
        sim->free_ns = (sim->free_ns > sim->now_ns ? sim->free_ns : sim->now_ns) + job->cost_ns;
        sim->n_dispatched++;
        if (user->queue.n_entries == 0)
                fairshare_sleep(sim->fs, &user->share);
}

/* Return: false: nobody may go now; ask again at *ret_until_ns, or after an end. */
static bool sim_turn(Sim *sim, uint64_t *ret_until_ns) {
        SimUser *pick = (SimUser *)fairshare_pick(sim->fs);
        QuantaDomain *holder = sim->quanta.holder;
        bool holder_works, is_contended;
        QuantaTurn turn;

        *ret_until_ns = UINT64_MAX;
        if (!pick || sim->n_flight == N_FLIGHT || sim->flight_ns >= FLIGHT_NS)
                return false;

        sim->n_turns++;
        holder_works = holder && shareuser_is_awake(&container_of(holder, SimUser, domain)->share);
        is_contended = fairshare_n_awake(sim->fs) > 1;
        turn = quanta_turn(&sim->quanta, &pick->domain, holder_works, is_contended, sim->now_ns);
        *ret_until_ns = turn.until_ns;
        if (!turn.domain)
                return false;
        sim_dispatch(sim, container_of(turn.domain, SimUser, domain));
        return true;
}

/* Return: false: there is nothing more to do. */
static bool sim_step(Sim *sim) {
        SimJob *thought = sim->thought;
        uint64_t until_ns;

        if (thought && sim->now_ns >= sim->thought_ns) {
                sim->thought = NULL;
                sim_put(sim, thought->user, thought);
        }
        if (sim_turn(sim, &until_ns))
                return true;
        if (sim->n_flight) {
                sim_end(sim);
                return true;
        }
        if (until_ns == UINT64_MAX)
                return false;
        sim->now_ns = until_ns;
        return true;
}

static void sim_run(Sim *sim, uint64_t duration_ns) {
        uint64_t end_ns = sim->now_ns + duration_ns;

        while (sim->now_ns < end_ns && sim_step(sim))
                ;
}

static void sim_finish(Sim *sim) {
        QueueEntry *entry;

        while (sim->n_flight) {
                sim->is_endless = false;
                sim_end(sim);
        }
        if (sim->thought)
                sim_forget(sim->thought->user, sim->thought);
        for (size_t i = 0; i < sim->n_users; i++) {
                SimUser *user = &sim->users[i];

                while ((entry = queue_pick(&user->queue, NULL, NULL))) {
                        queue_remove(&user->queue, entry);
                        sim_forget(user, (SimJob *)entry);
                }
                assert_int_equal(user->n_jobs, 0);
                assert_int_equal(user->domain.n_in_flight, 0);
        }
        fairshare_free(sim->fs);
        free(sim->users);
}

static void assert_near(double a, double b, double part) {
        if (fabs(a - b) > fabs(b) * part)
                fail_msg("%g is not within %g %% of %g", a, part * 100, b);
}

/* ---- shares --------------------------------------------------------------------- */

static const uint64_t quanta_tried[] = {0, 1 * MS, 2 * MS, 20 * MS};

static void weights_of_one_to_three_hold_with_quanta_and_without(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(quanta_tried); i++) {
                Sim sim;

                sim_init(&sim, 2, quanta_tried[i]);
                sim.is_endless = true;
                sim_weigh(&sim, 1, 3);
                sim.users[0].cost_ns = 700 * US;
                sim.users[1].cost_ns = 15 * US;
                sim.users[1].is_random = true;
                sim_submit(&sim, 0, 1, 0, 300);
                sim_submit(&sim, 1, 2, 0, 300);
                sim_run(&sim, 5 * S);
                assert_near((double)sim.users[1].used_ns / (double)sim.users[0].used_ns, 3, 0.05);
                sim_finish(&sim);
        }
}

static void fifty_connections_gain_nothing(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(quanta_tried); i++) {
                Sim sim;

                sim_init(&sim, 2, quanta_tried[i]);
                sim.is_endless = true;
                sim_weigh(&sim, 1, 3);
                for (uint32_t session = 0; session < 50; session++)
                        sim_submit(&sim, 0, 100 + session, 100, 20);
                sim_submit(&sim, 1, 1, 0, 40);
                sim_run(&sim, 5 * S);
                assert_near((double)sim.users[1].used_ns / (double)sim.users[0].used_ns, 3, 0.05);
                sim_finish(&sim);
        }
}

static void a_pause_saves_no_credit(void **state) {
        uint64_t before_ns;
        Sim sim;

        sim_init(&sim, 2, 2 * MS);
        sim.is_endless = true;
        sim_submit(&sim, 0, 1, 0, 100);
        sim_run(&sim, 20 * S);
        before_ns = sim.users[0].used_ns;
        sim_submit(&sim, 1, 2, 0, 100);
        sim_run(&sim, S);

        assert_near((double)sim.users[1].used_ns, (double)(sim.users[0].used_ns - before_ns), 0.05);
        sim_finish(&sim);
}

/* One job at a time, with a pause, beside one who would fill the device: it waits for a part
 * of a quantum and what is in flight; the other has long quanta for all that. */
static void a_client_that_waits_for_each_job_does_not_wait_for_whole_quanta(void **state) {
        const uint64_t quantum_ns = 2 * MS;
        Sim sim;

        sim_init(&sim, 2, quantum_ns);
        sim.is_endless = true;
        sim.users[0].cost_ns = 15 * US;
        sim.users[1].cost_ns = 30 * US;
        sim.users[1].think_ns = 50 * US;
        sim_submit(&sim, 0, 1, 0, 500);
        sim_submit(&sim, 1, 2, 0, 1);
        sim_run(&sim, 100 * MS);
        sim.users[1].waited_ns = 0;
        sim_run(&sim, S);

        assert_true(sim.users[1].waited_ns <= 2 * quantum_ns / QUANTA_PARTS);
        assert_true(sim.users[1].n_ended > 1000);
        assert_true(sim.users[0].used_ns > 9 * S / 10);
        sim_finish(&sim);
}

/* ---- inside a user ----------------------------------------------------------------- */

static SimJob dispatched[64];
static size_t n_dispatched;

static void note_dispatch(const SimJob *job) {
        if (n_dispatched < ARRAY_SIZE(dispatched))
                dispatched[n_dispatched++] = *job;
}

static void priority_is_inside_a_user_and_sessions_take_turns_inside_it(void **state) {
        Sim sim;

        n_dispatched = 0;
        sim_init(&sim, 2, 2 * MS);
        sim.on_dispatch = note_dispatch;
        sim.users[0].cost_ns = sim.users[1].cost_ns = 3 * MS; /* one job a quantum */
        sim_submit(&sim, 0, 1, 0, 4);
        sim_submit(&sim, 0, 2, 0, 4);
        sim_submit(&sim, 0, 3, 50, 4);
        sim_submit(&sim, 1, 4, -100, 12);
        sim_run(&sim, 100 * S);

        assert_int_equal(n_dispatched, 24);
        for (size_t i = 0; i < 24; i += 2) {
                uint32_t session = i < 8 ? 3 : 1 + (uint32_t)(i / 2) % 2;

                assert_int_equal(dispatched[i].entry.session, session);
                assert_int_equal(dispatched[i + 1].entry.session, 4);
        }
        sim_finish(&sim);
}

/* ---- many ---------------------------------------------------------------------------- */

/* Every user always has work, of his own size, over his own number of sessions. */
static void sim_fill(Sim *sim) {
        sim->is_endless = true;
        for (size_t i = 0; i < sim->n_users; i++) {
                uint32_t n_sessions = i % 10 ? 1 + (uint32_t)sim_random(sim, 3) : 50;

                sim_weigh(sim, i, (double)(1 + i % 3));
                sim->users[i].cost_ns = (20 + sim_random(sim, 200)) * US;
                sim->users[i].is_random = true;
                for (uint32_t session = 0; session < n_sessions; session++)
                        sim_submit(sim, i, session, (int)sim_random(sim, 3), 20);
        }
}

/* Apart by no more than a quantum of each, and what is in flight. */
static void sim_assert_fair(const Sim *sim) {
        double least = INFINITY, most = 0;

        for (size_t i = 0; i < sim->n_users; i++) {
                double used = (double)sim->users[i].used_ns / sim->users[i].share.weight;

                least = fmin(least, used);
                most = fmax(most, used);
        }
        if (most - least > (double)(sim->quanta.quantum_ns + FLIGHT_NS))
                fail_msg("%g ms apart", (most - least) / 1e6);
}

static void a_million_jobs_of_a_thousand_users_are_shared_fairly(void **state) {
        Sim sim;

        sim_init(&sim, 1000, 2 * MS);
        sim_fill(&sim);
        while (sim.n_dispatched < 1000000)
                assert_true(sim_step(&sim));

        sim_assert_fair(&sim);
        assert_int_equal(sim.quanta.n_overruns, 0);
        sim_finish(&sim);
}

/* Steps of every search and comparison, and questions asked, for each job dispatched. */
static double cost_per_job(size_t n_users, uint64_t quantum_ns) {
        uint64_t n_steps = 0;
        Sim sim;

        sim_init(&sim, n_users, quantum_ns);
        sim_fill(&sim);
        for (size_t i = 0; i < n_users; i++)
                n_steps -= sim.users[i].queue.n_steps;
        n_steps -= fairshare_n_compared(sim.fs);
        while (sim.n_dispatched < 50000)
                assert_true(sim_step(&sim));
        for (size_t i = 0; i < n_users; i++)
                n_steps += sim.users[i].queue.n_steps;
        n_steps += fairshare_n_compared(sim.fs) + sim.n_turns;
        sim_finish(&sim);
        return (double)n_steps / 50000;
}

static void cost_of_a_decision_grows_no_faster_than_log_n(void **state) {
        for (size_t i = 0; i < 3; i++) {
                double few = cost_per_job(10, quanta_tried[i]);
                double many = cost_per_job(1000, quanta_tried[i]);

                if (many > few * log2(1000) / log2(10))
                        fail_msg("%g steps with 10 users, %g with 1,000", few, many);
        }
}

static double cost_with_waiting(size_t n_jobs) {
        Sim sim;
        double cost;

        sim_init(&sim, 1, 2 * MS);
        sim.is_endless = true;
        sim_submit(&sim, 0, 1, 0, n_jobs);
        sim.users[0].queue.n_steps = 0;
        while (sim.n_dispatched < 10000)
                assert_true(sim_step(&sim));
        cost = (double)(sim.users[0].queue.n_steps + fairshare_n_compared(sim.fs));
        sim_finish(&sim);
        return cost;
}

static void cost_of_a_decision_does_not_depend_on_how_many_jobs_wait(void **state) {
        assert_near(cost_with_waiting(200000), cost_with_waiting(200), 0.01);
}

/* Users come and go, jobs take what they like: shares of those who stay hold all the same. */
static void those_who_stay_share_fairly_whoever_comes_and_goes(void **state) {
        double a, b;
        Sim sim;

        sim_init(&sim, 40, 2 * MS);
        sim_submit(&sim, 0, 1, 0, 20000);
        sim_submit(&sim, 1, 1, 0, 60000);
        sim_weigh(&sim, 1, 3);
        sim.users[0].is_random = sim.users[1].is_random = true;
        for (unsigned step = 0; step < 60000; step++) {
                size_t i = 2 + sim_random(&sim, sim.n_users - 2);

                sim.users[i].cost_ns = 1 + sim_random(&sim, MS);
                if (!sim_random(&sim, 8))
                        sim_submit(&sim, i, (uint32_t)sim_random(&sim, 5), 0,
                                   1 + sim_random(&sim, 3));
                assert_true(sim_step(&sim));
        }

        assert_true(sim.users[0].n_jobs && sim.users[1].n_jobs);
        a = (double)sim.users[0].used_ns;
        b = (double)sim.users[1].used_ns / 3;
        assert_true(fabs(a - b) <= 2.0 * (double)(sim.quanta.quantum_ns + FLIGHT_NS));
        assert_true(a > 20 * (double)FLIGHT_NS);
        sim_finish(&sim);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(weights_of_one_to_three_hold_with_quanta_and_without),
                cmocka_unit_test(fifty_connections_gain_nothing),
                cmocka_unit_test(a_pause_saves_no_credit),
                cmocka_unit_test(a_client_that_waits_for_each_job_does_not_wait_for_whole_quanta),
                cmocka_unit_test(priority_is_inside_a_user_and_sessions_take_turns_inside_it),
                cmocka_unit_test(a_million_jobs_of_a_thousand_users_are_shared_fairly),
                cmocka_unit_test(cost_of_a_decision_grows_no_faster_than_log_n),
                cmocka_unit_test(cost_of_a_decision_does_not_depend_on_how_many_jobs_wait),
                cmocka_unit_test(those_who_stay_share_fairly_whoever_comes_and_goes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
