/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm jobs: which control groups count as Slurm's, and that no user can imitate one.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "slurm_job.h"

#define ALICE 1000u
#define BOB   1001u

static uint32_t parse(const char *text) {
        return slurm_job_parse(text, strlen(text), ALICE);
}

static void a_step_of_cgroup_v2_is_of_its_job(void **state) {
        assert_int_equal(parse("0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0\n"),
                         123);
        assert_int_equal(
                parse("0::/system.slice/slurmstepd.scope/job_123/step_batch/user/task_special\n"),
                123);
        assert_int_equal(parse("0::/system.slice/slurmstepd.scope/job_7/step_extern/user\n"), 7);
        assert_int_equal(parse("0::/system.slice/slurmstepd.scope/job_7\n"), 7);
}

static void several_slurmd_have_scopes_named_after_their_nodes(void **state) {
        assert_int_equal(
                parse("0::/system.slice/node1_slurmstepd.scope/job_8/step_0/user/task_0\n"), 8);
        assert_int_equal(parse("0::/system.slice/gpu_a_slurmstepd.scope/job_8/step_0\n"), 8);
}

static void a_step_of_cgroup_v1_is_of_its_job(void **state) {
        static const char text[] = "12:devices:/system.slice/slurmd.service\n"
                                   "11:cpuset:/slurm/uid_1000/job_123/step_batch/task_0\n"
                                   "10:memory:/slurm/uid_1000/job_123/step_batch/task_0\n"
                                   "9:freezer:/slurm/uid_1000/job_123/step_batch\n"
                                   "1:name=systemd:/system.slice/slurmd.service\n"
                                   "0::/system.slice/slurmd.service\n";

        assert_int_equal(parse(text), 123);
        assert_int_equal(parse("9:freezer:/slurm_node0/uid_1000/job_4294967295/step_0\n"),
                         4294967295u);
}

static void other_processes_are_of_no_job(void **state) {
        assert_int_equal(parse(""), 0);
        assert_int_equal(parse("0::/\n"), 0);
        assert_int_equal(parse("0::/user.slice/user-1000.slice/session-3.scope\n"), 0);
        assert_int_equal(parse("0::/system.slice/slurmd.service\n"), 0);
        assert_int_equal(parse("0::/system.slice/slurmstepd.scope/system\n"), 0);
}

/* Users make groups below their own slice, services below theirs. */
static void a_group_that_a_user_made_is_none_of_slurm(void **state) {
        assert_int_equal(parse("0::/user.slice/user-1000.slice/user@1000.service/job_5\n"), 0);
        assert_int_equal(parse("0::/user.slice/user-1000.slice/user@1000.service/system.slice/"
                               "slurmstepd.scope/job_5/step_0\n"),
                         0);
        assert_int_equal(parse("0::/user.slice/user-1000.slice/user@1000.service/slurm/uid_1000/"
                               "job_5\n"),
                         0);
        assert_int_equal(parse("0::/system.slice/web.service/slurmstepd.scope/job_5\n"), 0);
        assert_int_equal(parse("0::/system.slice/notslurmstepd.scope/job_5\n"), 0);
        assert_int_equal(parse("0::/system.slice/slurmstepd.scope.d/job_5\n"), 0);
        assert_int_equal(parse("0::/../system.slice/slurmstepd.scope/job_5\n"), 0);
}

/* A job may delegate its group to its user. */
static void a_group_below_a_job_is_of_that_job(void **state) {
        assert_int_equal(parse("0::/system.slice/slurmstepd.scope/job_5/step_0/user/task_0/"
                               "system.slice/slurmstepd.scope/job_6\n"),
                         5);
        assert_int_equal(parse("9:freezer:/slurm/uid_1000/job_5/step_0/uid_1000/job_6\n"), 5);
}

static void in_cgroup_v1_the_job_is_its_users(void **state) {
        static const char text[] = "9:freezer:/slurm/uid_1000/job_5/step_0\n";

        assert_int_equal(slurm_job_parse(text, strlen(text), BOB), 0);
        assert_int_equal(slurm_job_parse(text, strlen(text), 100), 0);
        assert_int_equal(slurm_job_parse(text, strlen(text), ALICE), 5);
}

static void what_is_no_number_is_no_job(void **state) {
        assert_int_equal(parse("0::/system.slice/slurmstepd.scope/job_\n"), 0);
        assert_int_equal(parse("0::/system.slice/slurmstepd.scope/job_0/step_0\n"), 0);
        assert_int_equal(parse("0::/system.slice/slurmstepd.scope/job_-5/step_0\n"), 0);
        assert_int_equal(parse("0::/system.slice/slurmstepd.scope/job_5x/step_0\n"), 0);
        assert_int_equal(parse("0::/system.slice/slurmstepd.scope/job_4294967296/step_0\n"), 0);
        assert_int_equal(parse("0::/system.slice/slurmstepd.scope/job_99999999999999999999999\n"),
                         0);
        assert_int_equal(parse("0:/system.slice/slurmstepd.scope/job_5\n"), 0);
}

static void a_text_that_was_cut_tells_no_wrong_number(void **state) {
        static const char text[] = "0::/system.slice/slurmstepd.scope/job_123/step_0\n";

        for (size_t n = 0; n < strlen(text); ++n)
                assert_int_equal(slurm_job_parse(text, n, ALICE), 0);
        assert_int_equal(slurm_job_parse(text, strlen(text), ALICE), 123);
}

static void a_process_that_is_gone_is_of_no_job(void **state) {
        assert_int_equal(slurm_job_of(0, ALICE), 0);
        assert_int_equal(slurm_job_of(INT32_MAX, ALICE), 0);
        (void)slurm_job_of(getpid(), ALICE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_step_of_cgroup_v2_is_of_its_job),
                cmocka_unit_test(several_slurmd_have_scopes_named_after_their_nodes),
                cmocka_unit_test(a_step_of_cgroup_v1_is_of_its_job),
                cmocka_unit_test(other_processes_are_of_no_job),
                cmocka_unit_test(a_group_that_a_user_made_is_none_of_slurm),
                cmocka_unit_test(a_group_below_a_job_is_of_that_job),
                cmocka_unit_test(in_cgroup_v1_the_job_is_its_users),
                cmocka_unit_test(what_is_no_number_is_no_job),
                cmocka_unit_test(a_text_that_was_cut_tells_no_wrong_number),
                cmocka_unit_test(a_process_that_is_gone_is_of_no_job),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
