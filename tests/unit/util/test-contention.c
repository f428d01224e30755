/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contention, on a simulated clock.
 */
#include "util/contention.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define US      UINT64_C(1000)
#define MS      UINT64_C(1000000)
#define STEP_NS (100 * US)
#define CORES   16u

/* A machine, and a loop on it that polls whenever it may. */
typedef struct Machine {
        Contention contention;
        uint64_t now_ns;
        uint64_t n_waited_ns; /* the loop, for a core */
        uint64_t ran_ns;      /* since it last lost its core */
        unsigned n_others;    /* runnable threads of other programs */
        unsigned n_counted;   /* what the machine says in addition, rightly or not */
        bool is_unknown;      /* the machine does not say */
        unsigned n_lost;      /* how often the loop lost its core */
} Machine;

static Machine machine_new(void) {
        Machine machine = {.now_ns = 5000 * MS};

        contention_init(&machine.contention);
        return machine;
}

/* Without a free core, a loop that has polled for 3 ms waits for as long. */
static void machine_poll(Machine *machine) {
        machine->ran_ns += STEP_NS;
        if (machine->n_others < CORES || machine->ran_ns < 3 * MS)
                return;
        machine->ran_ns = 0;
        machine->now_ns += 3 * MS;
        machine->n_waited_ns += 3 * MS;
        machine->n_lost++;
}

static void machine_step(Machine *machine) {
        Contention *contention = &machine->contention;
        unsigned n = machine->n_others + machine->n_counted + 1;

        machine->now_ns += STEP_NS;
        if (!contention_is_busy(contention))
                machine_poll(machine);
        if (contention_wants_sample(contention, machine->now_ns))
                contention_sample(contention, machine->n_waited_ns, machine->now_ns);
        if (contention_wants_count(contention, machine->now_ns))
                contention_count(contention, machine->is_unknown ? 0 : n, CORES, machine->now_ns);
}

static void machine_run(Machine *machine, uint64_t n_ns) {
        uint64_t until_ns = machine->now_ns + n_ns;

        while (machine->now_ns < until_ns)
                machine_step(machine);
}

/* Return: how long it took until the loop polls, or sleeps. */
static uint64_t machine_run_until(Machine *machine, bool is_busy) {
        uint64_t began_ns = machine->now_ns;

        while (contention_is_busy(&machine->contention) != is_busy)
                machine_step(machine);
        return machine->now_ns - began_ns;
}

static void an_idle_machine_stays_idle(void **state) {
        Machine machine = machine_new();

        for (unsigned i = 0; i < 10000; i++) {
                machine_step(&machine);
                machine.n_waited_ns += 5 * US; /* wake-ups and the kernel's own threads */
                assert_false(contention_is_busy(&machine.contention));
        }
}

static void a_busy_machine_is_noticed_within_milliseconds(void **state) {
        Machine machine = machine_new();

        machine_run(&machine, 50 * MS);
        machine.n_others = CORES;
        assert_true(machine_run_until(&machine, true) <= 8 * MS);
        assert_int_equal(machine.n_lost, 1);
}

static void short_waits_in_a_long_sleep_are_no_contention(void **state) {
        Machine machine = machine_new();

        machine_run(&machine, 5 * MS);
        machine.now_ns += 1000 * MS;
        machine.n_waited_ns += 3 * MS; /* 100 wake-ups */
        machine_step(&machine);
        assert_false(contention_is_busy(&machine.contention));
}

/* As many polling clients as cores: they yield, so each wait is short, though there are many. */
static void waits_for_own_clients_are_no_contention(void **state) {
        Machine machine = machine_new();

        for (unsigned i = 0; i < 10000; i++) {
                machine_step(&machine);
                machine.now_ns += 50 * US;
                machine.n_waited_ns += 50 * US;
                assert_false(contention_is_busy(&machine.contention));
        }
}

static void an_idle_machine_is_noticed_with_the_next_count(void **state) {
        Machine machine = machine_new();

        machine.n_others = 2 * CORES;
        machine_run(&machine, 10000 * MS);
        (void)machine_run_until(&machine, true);
        machine.n_others = 0;
        assert_true(machine_run_until(&machine, false) <= CONTENTION_COUNT_NS + STEP_NS);
        machine_run(&machine, 1000 * MS);
        assert_false(contention_is_busy(&machine.contention));
}

static void on_a_busy_machine_it_loses_its_core_only_in_rare_trials(void **state) {
        Machine machine = machine_new();

        machine.n_others = CORES;
        machine_run(&machine, 10000 * MS);
        assert_in_range(machine.n_lost, 2, 1 + 10000 * MS / CONTENTION_TRIAL_NS);
}

/* Some cores are free, but not for this program. */
static void a_count_that_proves_wrong_is_asked_for_less_often(void **state) {
        Machine machine = machine_new();
        unsigned n_lost;

        machine.n_others = CORES;
        machine.n_counted = -8u;
        machine_run(&machine, 2000 * MS);
        n_lost = machine.n_lost;
        machine_run(&machine, 10000 * MS);
        assert_in_range(machine.n_lost - n_lost, 1, 1 + 10000 * MS / CONTENTION_COUNT_MAX_NS);
}

/* The others' cores are not for this program, and its own are free. */
static void a_count_that_is_always_too_high_only_delays(void **state) {
        Machine machine = machine_new();

        machine_run(&machine, 50 * MS);
        machine.n_counted = 2 * CORES;
        contention_lost(&machine.contention, machine.now_ns);
        assert_true(machine_run_until(&machine, false) <=
                    CONTENTION_TRIAL_NS + CONTENTION_COUNT_NS + STEP_NS);
        machine_run(&machine, 1000 * MS);
        assert_false(contention_is_busy(&machine.contention));
}

static void without_a_count_it_tries_now_and_then(void **state) {
        Machine machine = machine_new();

        machine.is_unknown = true;
        machine.n_others = CORES;
        machine_run(&machine, 10000 * MS);
        assert_in_range(machine.n_lost, 2, 8 + 10000 * MS / CONTENTION_COUNT_MAX_NS);
        (void)machine_run_until(&machine, true);
        machine.n_others = 0;
        assert_true(machine_run_until(&machine, false) <= CONTENTION_COUNT_MAX_NS + STEP_NS);
}

static void after_an_idle_time_a_wrong_count_is_forgotten(void **state) {
        Machine machine = machine_new();

        machine.is_unknown = true;
        machine.n_others = CORES;
        machine_run(&machine, 5000 * MS);
        machine.n_others = 0;
        machine_run(&machine, 2000 * MS);
        contention_lost(&machine.contention, machine.now_ns);
        assert_true(machine_run_until(&machine, false) <= CONTENTION_COUNT_NS + STEP_NS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_idle_machine_stays_idle),
                cmocka_unit_test(a_busy_machine_is_noticed_within_milliseconds),
                cmocka_unit_test(short_waits_in_a_long_sleep_are_no_contention),
                cmocka_unit_test(waits_for_own_clients_are_no_contention),
                cmocka_unit_test(an_idle_machine_is_noticed_with_the_next_count),
                cmocka_unit_test(on_a_busy_machine_it_loses_its_core_only_in_rare_trials),
                cmocka_unit_test(a_count_that_proves_wrong_is_asked_for_less_often),
                cmocka_unit_test(a_count_that_is_always_too_high_only_delays),
                cmocka_unit_test(without_a_count_it_tries_now_and_then),
                cmocka_unit_test(after_an_idle_time_a_wrong_count_is_forgotten),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
