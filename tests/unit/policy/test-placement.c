/* SPDX-License-Identifier: Apache-2.0 */
#include "placement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000ull

static void a_job_of_known_duration_has_its_rest_left(void **state) {
        assert_int_equal(placement_left_ns(100 * MS, 0, true), 100 * MS);
        assert_int_equal(placement_left_ns(100 * MS, 90 * MS, true), 10 * MS);
        assert_int_equal(placement_left_ns(100 * MS, 100 * MS, true), 0);
}

static void a_late_job_will_be_later_still(void **state) {
        assert_int_equal(placement_left_ns(MS, 1000 * MS, true), 999 * MS);
}

static void a_job_of_unknown_duration_takes_as_long_again(void **state) {
        assert_int_equal(placement_left_ns(26 * MS, 0, false), 26 * MS);
        assert_int_equal(placement_left_ns(26 * MS, 20 * MS, false), 26 * MS);
        assert_int_equal(placement_left_ns(26 * MS, 5000 * MS, false), 5000 * MS);
}

/* A job whose data are on another device than the one it could go to. */
typedef struct Situation {
        const char *what;
        PlacementSite home;
        PlacementSite away;
        bool leaves;
} Situation;

static const Situation situations[] = {
        {"nothing waits", {.run_ns = MS}, {.run_ns = MS}, false},
        {"a long wait, and an idle device",
         {.own_ns = 100 * MS, .run_ns = MS},
         {.run_ns = MS},
         true},
        {"the other device has as much to do",
         {.own_ns = 100 * MS, .run_ns = MS},
         {.own_ns = 50 * MS, .others_ns = 50 * MS, .run_ns = MS},
         false},
        {"less than half of the time is too little a gain",
         {.own_ns = 100 * MS, .run_ns = 10 * MS},
         {.own_ns = 46 * MS, .run_ns = 10 * MS},
         false},
        {"less than a millisecond, too",
         {.own_ns = MS, .run_ns = MS / 100},
         {.run_ns = MS / 50},
         false},
        {"its data are too large to be read from there",
         {.own_ns = 100 * MS, .run_ns = MS},
         {.run_ns = 51 * MS},
         false},
        {"a worker has to start, for a short wait",
         {.own_ns = 100 * MS, .run_ns = MS},
         {.start_ns = PLACEMENT_START_NS, .run_ns = MS},
         false},
        {"a worker has to start, for a long one",
         {.own_ns = 1000 * MS, .run_ns = MS},
         {.start_ns = PLACEMENT_START_NS, .run_ns = MS},
         true},
        {"a spare worker takes less",
         {.own_ns = 200 * MS, .run_ns = MS},
         {.start_ns = PLACEMENT_START_SPARE_NS, .run_ns = MS},
         true},
        {"an hour of another user, with whom the job takes turns",
         {.others_ns = 3600000 * MS, .n_others = 1, .quantum_ns = 4 * MS, .run_ns = 100 * MS},
         {.start_ns = PLACEMENT_START_NS, .run_ns = 100 * MS},
         false},
        {"the same beside an idle worker of its user",
         {.others_ns = 3600000 * MS, .n_others = 1, .quantum_ns = 4 * MS, .run_ns = 100 * MS},
         {.run_ns = 100 * MS},
         true},
        {"three other users",
         {.others_ns = 3600000 * MS, .n_others = 3, .quantum_ns = 4 * MS, .run_ns = 1000 * MS},
         {.start_ns = PLACEMENT_START_NS, .run_ns = 1000 * MS},
         true},
        {"other users who have nearly done",
         {.others_ns = MS, .n_others = 3, .quantum_ns = 4 * MS, .run_ns = 100 * MS},
         {.run_ns = 100 * MS},
         false},
};

static void a_job_leaves_its_data_only_when_that_pays(void **state) {
        for (size_t i = 0; i < sizeof(situations) / sizeof(*situations); ++i) {
                const Situation *situation = &situations[i];

                if (placement_pays(placement_home_ns(&situation->home),
                                   placement_away_ns(&situation->away)) != situation->leaves)
                        fail_msg("%s", situation->what);
        }
}

static void data_elsewhere_cost_what_the_link_between_the_devices_takes(void **state) {
        assert_int_equal(placement_peer_ns(0), 0);
        assert_int_equal(placement_peer_ns(20000000), MS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_job_of_known_duration_has_its_rest_left),
                cmocka_unit_test(a_late_job_will_be_later_still),
                cmocka_unit_test(a_job_of_unknown_duration_takes_as_long_again),
                cmocka_unit_test(a_job_leaves_its_data_only_when_that_pays),
                cmocka_unit_test(data_elsewhere_cost_what_the_link_between_the_devices_takes),
        };

        return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
