/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "worker/quiesce.h"

#define START_NS UINT64_C(1000000000)

static int nothing(QuiesceTask *task, void *userdata) {
        return 0;
}

typedef struct Fixture {
        Quiesce quiesce;
        QuiesceTask first, second;
} Fixture;

static int set_up(void **state) {
        static Fixture fixture;

        fixture = (Fixture){
                .first = {.func = nothing},
                .second = {.func = nothing},
        };
        quiesce_init(&fixture.quiesce);
        *state = &fixture;
        return 0;
}

static void without_a_task_nothing_is_held(void **state) {
        Fixture *fixture = *state;

        assert_false(quiesce_holds(&fixture->quiesce, 0, START_NS));
        assert_false(quiesce_holds(&fixture->quiesce, 1, START_NS));
        assert_false(quiesce_is_wanted(&fixture->quiesce));
}

static void a_task_holds_new_jobs_until_it_has_run(void **state) {
        Fixture *fixture = *state;

        quiesce_add(&fixture->quiesce, &fixture->first);
        assert_true(quiesce_holds(&fixture->quiesce, START_NS - 1, START_NS));
        assert_true(quiesce_is_wanted(&fixture->quiesce));
        assert_int_equal(quiesce_run(&fixture->quiesce), 0);
        assert_false(quiesce_holds(&fixture->quiesce, START_NS - 1, START_NS));
        assert_false(quiesce_is_wanted(&fixture->quiesce));
}

static void not_while_older_work_turns_out_long(void **state) {
        Fixture *fixture = *state;

        quiesce_add(&fixture->quiesce, &fixture->first);
        assert_true(quiesce_holds(&fixture->quiesce, START_NS - 1, START_NS));
        assert_true(quiesce_holds(&fixture->quiesce, START_NS - 1, START_NS + QUIESCE_LONG_NS - 2));
        assert_false(quiesce_holds(&fixture->quiesce, START_NS - 1, START_NS + QUIESCE_LONG_NS));
        assert_true(quiesce_is_wanted(&fixture->quiesce));
}

/* Else a task would wait for ever behind jobs that overlap. */
static void younger_work_is_waited_for_however_long_it_takes(void **state) {
        Fixture *fixture = *state;
        uint64_t later_ns = START_NS + 10 * QUIESCE_LONG_NS;

        quiesce_add(&fixture->quiesce, &fixture->first);
        assert_true(quiesce_holds(&fixture->quiesce, START_NS - 1, START_NS));
        assert_false(quiesce_holds(&fixture->quiesce, START_NS - 1, later_ns));
        assert_true(quiesce_holds(&fixture->quiesce, later_ns, 2 * later_ns));
        quiesce_add(&fixture->quiesce, &fixture->second); /* does not begin anew */
        assert_true(quiesce_holds(&fixture->quiesce, later_ns, 2 * later_ns));
}

/* And not from when an earlier one did. */
static void assert_counts_from_when_it_came(Quiesce *quiesce, QuiesceTask *task) {
        uint64_t came_ns = START_NS + 100 * QUIESCE_LONG_NS;

        quiesce_add(quiesce, task);
        assert_true(quiesce_holds(quiesce, came_ns - 1, came_ns));
        assert_false(quiesce_holds(quiesce, came_ns - 1, came_ns + QUIESCE_LONG_NS));
}

static void a_task_that_was_removed_holds_nothing(void **state) {
        Fixture *fixture = *state;

        quiesce_add(&fixture->quiesce, &fixture->first);
        assert_true(quiesce_holds(&fixture->quiesce, 0, START_NS));
        quiesce_remove(&fixture->quiesce, &fixture->first);
        assert_false(quiesce_holds(&fixture->quiesce, 0, START_NS));

        assert_counts_from_when_it_came(&fixture->quiesce, &fixture->second);
}

static void many_tasks_hold_whatever_runs(void **state) {
        static QuiesceTask tasks[QUIESCE_TASKS_MAX];
        Fixture *fixture = *state;
        uint64_t later_ns = START_NS + 2 * QUIESCE_LONG_NS;

        for (unsigned i = 0; i < QUIESCE_TASKS_MAX; ++i) {
                assert_false(i && quiesce_holds(&fixture->quiesce, START_NS - 1, later_ns));
                tasks[i] = (QuiesceTask){.func = nothing};
                quiesce_add(&fixture->quiesce, &tasks[i]);
                if (i == 0)
                        assert_true(quiesce_holds(&fixture->quiesce, START_NS - 1, START_NS));
        }
        assert_true(quiesce_holds(&fixture->quiesce, START_NS - 1, later_ns));
        assert_int_equal(quiesce_run(&fixture->quiesce), 0);
        assert_counts_from_when_it_came(&fixture->quiesce, &fixture->second);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(without_a_task_nothing_is_held, set_up),
                cmocka_unit_test_setup(a_task_holds_new_jobs_until_it_has_run, set_up),
                cmocka_unit_test_setup(not_while_older_work_turns_out_long, set_up),
                cmocka_unit_test_setup(younger_work_is_waited_for_however_long_it_takes, set_up),
                cmocka_unit_test_setup(a_task_that_was_removed_holds_nothing, set_up),
                cmocka_unit_test_setup(many_tasks_hold_whatever_runs, set_up),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
