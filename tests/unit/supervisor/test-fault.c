/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "fault.h"

static FaultVerdict judge_beside_another(FaultCause cause, FaultJob job) {
        FaultJob jobs[] = {job, {.phase = FAULT_ISSUED}};
        FaultVerdict verdicts[2];

        fault_triage(cause, jobs, 2, verdicts);
        return verdicts[0];
}

static FaultVerdict judge_one(FaultCause cause, FaultJob job) {
        FaultVerdict verdict;

        fault_triage(cause, &job, 1, &verdict);
        return verdict;
}

static void the_only_job_in_flight_is_guilty(void **state) {
        assert_int_equal(judge_one(FAULT_DEVICE, (FaultJob){.phase = FAULT_ISSUED}), FAULT_GUILTY);
        assert_int_equal(judge_one(FAULT_CRASH, (FaultJob){.phase = FAULT_UNKNOWN}), FAULT_GUILTY);
}

static void queued_jobs_are_no_suspects(void **state) {
        FaultJob jobs[] = {
                {.phase = FAULT_QUEUED}, {.phase = FAULT_ISSUED}, {.phase = FAULT_QUEUED}};
        FaultVerdict verdicts[3];

        fault_triage(FAULT_DEVICE, jobs, 3, verdicts);
        assert_int_equal(verdicts[0], FAULT_AGAIN);
        assert_int_equal(verdicts[1], FAULT_GUILTY);
        assert_int_equal(verdicts[2], FAULT_AGAIN);
}

static void
what_another_may_have_overwritten_is_read_again_only_if_the_worker_could_say_so(void **state) {
        FaultJob job = {.phase = FAULT_UNKNOWN, .overtaken = true};

        assert_int_equal(judge_beside_another(FAULT_CRASH, job), FAULT_HALF_WRITTEN);
        assert_int_equal(judge_beside_another(FAULT_STOPPED, job), FAULT_HALF_WRITTEN);
        job.phase = FAULT_ISSUED;
        assert_int_equal(judge_beside_another(FAULT_STOPPED, job), FAULT_AGAIN);
        job.phase = FAULT_QUEUED;
        assert_int_equal(judge_beside_another(FAULT_CRASH, job), FAULT_AGAIN);
}

static void of_several_the_repeatable_run_alone(void **state) {
        assert_int_equal(judge_beside_another(FAULT_DEVICE, (FaultJob){.phase = FAULT_ISSUED}),
                         FAULT_AGAIN_ALONE);
        assert_int_equal(judge_beside_another(FAULT_DEVICE, (FaultJob){.phase = FAULT_COMMITTING}),
                         FAULT_AGAIN_ALONE);
}

static void device_memory_changed_in_place_is_half_written(void **state) {
        FaultJob job = {.phase = FAULT_ISSUED, .device_inout = true};

        assert_int_equal(judge_beside_another(FAULT_DEVICE, job), FAULT_HALF_WRITTEN);
        job.repeatable = true;
        assert_int_equal(judge_beside_another(FAULT_DEVICE, job), FAULT_AGAIN_ALONE);
}

static void host_inout_is_half_written_only_while_committing(void **state) {
        FaultJob job = {.phase = FAULT_ISSUED, .host_inout = true};

        assert_int_equal(judge_beside_another(FAULT_DEVICE, job), FAULT_AGAIN_ALONE);
        job.phase = FAULT_COMMITTING;
        assert_int_equal(judge_beside_another(FAULT_DEVICE, job), FAULT_HALF_WRITTEN);
        job.phase = FAULT_UNKNOWN;
        assert_int_equal(judge_beside_another(FAULT_CRASH, job), FAULT_HALF_WRITTEN);
}

static void a_job_on_module_variables_does_not_run_twice(void **state) {
        FaultJob job = {.phase = FAULT_ISSUED, .variables = true, .repeatable = true};

        assert_int_equal(judge_beside_another(FAULT_DEVICE, job), FAULT_HALF_WRITTEN);
}

static void alone_and_dead_again_is_guilty_whatever_the_reason(void **state) {
        FaultJob job = {.phase = FAULT_UNKNOWN, .alone = true, .host_inout = true};

        assert_int_equal(judge_one(FAULT_CRASH, job), FAULT_GUILTY_ALONE);
}

static void a_stop_makes_nobody_guilty(void **state) {
        assert_int_equal(judge_one(FAULT_STOPPED, (FaultJob){.phase = FAULT_ISSUED}), FAULT_AGAIN);
        assert_int_equal(judge_one(FAULT_STOPPED, (FaultJob){.phase = FAULT_UNKNOWN}), FAULT_AGAIN);
        assert_int_equal(judge_one(FAULT_STOPPED, (FaultJob){.phase = FAULT_ISSUED, .alone = true}),
                         FAULT_AGAIN_ALONE);
}

static void a_terminated_job_ends_as_terminated(void **state) {
        FaultJob job = {.phase = FAULT_UNKNOWN, .terminated = true, .device_inout = true};

        assert_int_equal(judge_one(FAULT_STOPPED, job), FAULT_TERMINATED);
        assert_int_equal(judge_one(FAULT_CRASH, job), FAULT_TERMINATED);
}

static void a_job_that_never_gets_to_run_is_given_up(void **state) {
        FaultJob job = {.phase = FAULT_QUEUED, .retries = FAULT_RETRIES_MAX};

        assert_int_equal(judge_beside_another(FAULT_DEVICE, job), FAULT_GIVEN_UP);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_only_job_in_flight_is_guilty),
                cmocka_unit_test(queued_jobs_are_no_suspects),
                cmocka_unit_test(
                        what_another_may_have_overwritten_is_read_again_only_if_the_worker_could_say_so),
                cmocka_unit_test(of_several_the_repeatable_run_alone),
                cmocka_unit_test(device_memory_changed_in_place_is_half_written),
                cmocka_unit_test(host_inout_is_half_written_only_while_committing),
                cmocka_unit_test(a_job_on_module_variables_does_not_run_twice),
                cmocka_unit_test(alone_and_dead_again_is_guilty_whatever_the_reason),
                cmocka_unit_test(a_stop_makes_nobody_guilty),
                cmocka_unit_test(a_terminated_job_ends_as_terminated),
                cmocka_unit_test(a_job_that_never_gets_to_run_is_given_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
