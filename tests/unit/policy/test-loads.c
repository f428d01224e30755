/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many modules load at once, and whose turn it is.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy.h"

#define N_PERSONS 3u
#define N_LOADS   4u

/* Persons with some loads each. */
typedef struct Scene {
        Loads loads;
        LoadPerson persons[N_PERSONS];
        Load all[N_PERSONS][N_LOADS];
} Scene;

static void scene_init(Scene *scene, unsigned n_cores) {
        *scene = (Scene){};
        loads_init(&scene->loads, n_cores);
        for (unsigned i = 0; i < N_PERSONS; i++)
                load_person_init(&scene->persons[i]);
}

static void scene_begin(Scene *scene, unsigned person) {
        for (unsigned i = 0; i < N_LOADS; i++)
                loads_begin(&scene->loads, &scene->persons[person], &scene->all[person][i]);
}

/* Return: how many others start. */
static unsigned scene_end(Scene *scene, unsigned person, unsigned i) {
        unsigned n = 0;

        loads_end(&scene->loads, &scene->all[person][i]);
        while (loads_next(&scene->loads))
                n++;
        return n;
}

static void person_loads_two_at_once_in_order(void **state) {
        Scene scene;

        scene_init(&scene, 16);
        scene_begin(&scene, 0);
        assert_int_equal(scene.loads.n_running, 2);
        assert_int_equal(scene_end(&scene, 0, 1), 1);
        assert_int_equal(scene.all[0][2].state, LOAD_RUNNING);
        assert_int_equal(scene_end(&scene, 0, 0), 1);
        assert_int_equal(scene_end(&scene, 0, 2), 0);
        assert_int_equal(scene_end(&scene, 0, 3), 0);
        assert_int_equal(scene_end(&scene, 0, 3), 0); /* repeated */
        assert_int_equal(scene.loads.n_running, 0);
}

/* Nobody's load waits for those of others, even if those never end. */
static void first_of_each_person_always_starts(void **state) {
        Scene scene;

        scene_init(&scene, 1);
        for (unsigned i = 0; i < N_PERSONS; i++) {
                scene_begin(&scene, i);
                assert_int_equal(scene.persons[i].n_running, 1);
        }
        assert_int_equal(scene_end(&scene, 1, 0), 1);
        assert_int_equal(scene.all[1][1].state, LOAD_RUNNING);
}

static void persons_take_turns_for_what_the_machine_has(void **state) {
        Scene scene;

        scene_init(&scene, 6); /* four at once */
        for (unsigned i = 0; i < N_PERSONS; i++)
                scene_begin(&scene, i);
        assert_int_equal(scene.loads.n_running, 5); /* the first of the last person */

        assert_int_equal(scene_end(&scene, 0, 0), 0);
        assert_int_equal(scene_end(&scene, 1, 0), 1);
        assert_int_equal(scene.persons[0].n_running, 2); /* the first in turn; now the last */
        assert_int_equal(scene_end(&scene, 0, 1), 1);
        assert_int_equal(scene.persons[1].n_running, 2);
        assert_int_equal(scene_end(&scene, 0, 2), 2);
        assert_int_equal(scene.persons[2].n_running, 2);
        assert_int_equal(scene.persons[0].n_running, 1); /* its first */
}

static void one_that_is_given_up_waits_no_longer(void **state) {
        Scene scene;

        scene_init(&scene, 16);
        scene_begin(&scene, 0);
        assert_int_equal(scene_end(&scene, 0, 2), 0);
        assert_int_equal(scene_end(&scene, 0, 0), 1);
        assert_int_equal(scene.all[0][3].state, LOAD_RUNNING);
        assert_true(TAILQ_EMPTY(&scene.loads.waiting));
}

static void one_that_could_not_start_comes_first(void **state) {
        Scene scene;
        Load *load;

        scene_init(&scene, 16);
        scene_begin(&scene, 0);
        loads_end(&scene.loads, &scene.all[0][0]);
        load = loads_next(&scene.loads);
        assert_ptr_equal(load, &scene.all[0][2]);
        loads_put_back(&scene.loads, load);
        assert_int_equal(scene.loads.n_running, 1);
        assert_ptr_equal(loads_next(&scene.loads), load);
        assert_null(loads_next(&scene.loads));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(person_loads_two_at_once_in_order),
                cmocka_unit_test(first_of_each_person_always_starts),
                cmocka_unit_test(persons_take_turns_for_what_the_machine_has),
                cmocka_unit_test(one_that_is_given_up_waits_no_longer),
                cmocka_unit_test(one_that_could_not_start_comes_first),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
