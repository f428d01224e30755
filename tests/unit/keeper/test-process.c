/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process: what a started program finds, and what is told when it does not start.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/budget.h"
#include "keeper/driver.h"
#include "keeper/process.h"
#include "util/macro.h"

static char output[4096];

/* The plan that a test has in mind. */
static int make_plan(const void *what, ProcessPlan *plan, char **ret_error) {
        *plan = *(const ProcessPlan *)what;
        plan->path = strdup(plan->path);
        return 0;
}

/* Until it runs or has failed to. */
static int await_start(Process *process, char **ret_error) {
        struct pollfd poll_fd = {.fd = process->report, .events = POLLIN};

        assert_int_equal(poll(&poll_fd, 1, 60000), 1);
        return process_check(process, ret_error);
}

static int fail_to_start(const ProcessPlan *plan, char **ret_error) {
        Process process;
        int r;

        assert_int_equal(process_start(make_plan, plan, NULL, 0, &process), 0);
        r = await_start(&process, ret_error);
        assert_int_equal(waitpid(process.pid, NULL, 0), process.pid);
        return r;
}

static bool shell_may_raise;

/* Runs a shell command as descriptor 4 sees it; what it writes to 3 is @output. */
static int run_shell(const char *command, const Identity *identity) {
        char *argv[] = {"sh", "-c", (char *)command, NULL}, *env[] = {"ONE=1", NULL}, *error = NULL;
        const ProcessPlan plan = {.path = "/bin/sh",
                                  .argv.items = argv,
                                  .env.items = env,
                                  .identity = (Identity *)identity,
                                  .may_raise = shell_may_raise};
        int fds[2], status;
        size_t n_output = 0;
        Process process;
        ssize_t n;

        assert_return_code(pipe2(fds, O_CLOEXEC), errno);
        assert_int_equal(process_start(make_plan, &plan, (int[]){fds[1], 2}, 2, &process), 0);
        if (await_start(&process, &error) != 0)
                fail_msg("%s", error);
        close(fds[1]);
        while ((n = read(fds[0], output + n_output, sizeof(output) - 1 - n_output)) > 0)
                n_output += (size_t)n;
        output[n_output] = '\0';
        close(fds[0]);
        assert_int_equal(waitpid(process.pid, &status, 0), process.pid);
        return status;
}

static void program_finds_exactly_its_descriptors_and_environment(void **state) {
        int extra = dup(0); /* without close-on-exec */

        assert_int_equal(
                run_shell("exec >&3; echo $ONE $TWO; pwd; umask; "
                          "test -e /proc/self/fd/4 && echo four; "
                          "for fd in 5 6 7 8 9 10 11 12; do test -e /proc/$$/fd/$fd && echo $fd; "
                          "done; exit 0",
                          NULL),
                0);
        assert_string_equal(output, "1\n/\n0077\nfour\n");
        close(extra);
}

static void blocked_and_ignored_signals_do_not_pass_on(void **state) {
        sigset_t set;
        int status;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        assert_return_code(sigprocmask(SIG_BLOCK, &set, NULL), errno);
        signal(SIGTERM, SIG_IGN);
        status = run_shell("kill -TERM $$; exit 3", NULL);
        signal(SIGTERM, SIG_DFL);
        assert_return_code(sigprocmask(SIG_UNBLOCK, &set, NULL), errno);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void identity_is_taken_whole(void **state) {
        Identity identity = {.uid = 54321, .gid = 54322};
        gid_t groups[] = {54323, 54324};

        if (getuid() != 0)
                return; /* cannot be seen here */
        assert_int_equal(run_shell("exec >&3; id -u; id -G", &identity), 0);
        assert_string_equal(output, "54321\n54322\n");
        identity.groups = groups;
        identity.n_groups = 2;
        assert_int_equal(run_shell("id -G >&3", &identity), 0);
        assert_string_equal(output, "54322 54323 54324\n");
}

/* systemd's LimitNICE= is for all of gpuqd; `ulimit -e` prints the limit. */
static void only_what_runs_no_users_code_may_raise_its_priority(void **state) {
        struct rlimit before, limit = {30, 30};

        assert_return_code(getrlimit(RLIMIT_NICE, &before), errno);
        if (setrlimit(RLIMIT_NICE, &limit) < 0)
                return; /* cannot be seen here */
        assert_int_equal(run_shell("grep nice /proc/self/limits >&3", NULL), 0);
        assert_non_null(strstr(output, " 0 "));
        shell_may_raise = true;
        assert_int_equal(run_shell("grep nice /proc/self/limits >&3", NULL), 0);
        assert_non_null(strstr(output, " 30 "));
        shell_may_raise = false;
        (void)setrlimit(RLIMIT_NICE, &before);
}

static void identity_out_of_reach_is_an_error(void **state) {
        Identity identity = {.uid = getuid() + 1, .gid = getgid() + 1};
        char *error = NULL;

        if (getuid() == 0)
                return; /* cannot be seen here */
        assert_int_equal(
                fail_to_start(&(ProcessPlan){.path = "/bin/true", .identity = &identity}, &error),
                -EPERM);
        assert_non_null(strstr(error, "cannot set groups"));
        free(error);
}

static void program_that_is_not_there_is_told(void **state) {
        char *argv[] = {"program", NULL}, *env[] = {NULL}, *error = NULL;

        assert_int_equal(fail_to_start(&(ProcessPlan){.path = "/nonexistent/program",
                                                      .argv.items = argv,
                                                      .env.items = env},
                                       &error),
                         -ENOENT);
        assert_string_equal(error,
                            "cannot start /nonexistent/program: cannot execute it: No such file or "
                            "directory");
        free(error);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
}

static int make_slowly(const void *what, ProcessPlan *plan, char **ret_error) {
        const int *told = what;

        (void)!write(told[1], ".", 1);
        pause();
        return -ENOENT;
}

/* A name service that does not answer held up the answers to all. */
static void slow_name_service_holds_up_nobody_else(void **state) {
        char *error = NULL, byte;
        Process process;
        int told[2];

        assert_return_code(pipe2(told, O_CLOEXEC), errno);
        assert_int_equal(process_start(make_slowly, told, NULL, 0, &process), 0);
        assert_int_equal(read(told[0], &byte, 1), 1);
        assert_int_equal(process_check(&process, &error), PROCESS_E_STARTING);
        assert_int_equal(run_shell("exit 3", NULL) >> 8, 3);
        assert_int_equal(process_check(&process, &error), PROCESS_E_STARTING);
        kill(process.pid, SIGALRM); /* as when its time is over */
        assert_int_equal(await_start(&process, &error), -ETIMEDOUT);
        assert_non_null(strstr(error, "check the machine's name service"));
        free(error);
        assert_int_equal(waitpid(process.pid, NULL, 0), process.pid);
        close(told[0]);
        close(told[1]);
}

static void root_and_unknown_users_are_no_identity(void **state) {
        Identity *identity = NULL;

        assert_int_equal(identity_by_name("no-such-user", &identity), IDENTITY_E_UNKNOWN);
        assert_int_equal(identity_by_name("root", &identity), IDENTITY_E_ROOT);
        assert_null(identity);
}

static void only_groups_that_open_devices_count(void **state) {
        char folder[] = "/tmp/test-driver-XXXXXX", path[128];
        static const struct {
                const char *name;
                gid_t gid;
                mode_t mode;
        } nodes[] = {{"nvidia0", 44, 0660}, {"nvidiactl", 44, 0660},     {"nvidia-uvm", 55, 0666},
                     {"nvme0", 66, 0660},   {"nvidia-modeset", 0, 0660}, {"nvmap", 77, 0660}};
        gid_t groups[DRIVER_GROUPS_MAX];

        if (getuid() != 0)
                return; /* cannot be seen here */
        assert_non_null(mkdtemp(folder));
        for (unsigned i = 0; i < ARRAY_SIZE(nodes); i++) {
                snprintf(path, sizeof(path), "%s/%s", folder, nodes[i].name);
                close(open(path, O_WRONLY | O_CREAT, 0600));
                assert_return_code(chown(path, 0, nodes[i].gid), errno);
                assert_return_code(chmod(path, nodes[i].mode), errno);
        }
        assert_int_equal(driver_groups(folder, "gpu", groups), 2);
        assert_true(groups[0] == 44 && groups[1] == 77);
        assert_int_equal(driver_groups(folder, "cpu", groups), 0);
        for (unsigned i = 0; i < ARRAY_SIZE(nodes); i++) {
                snprintf(path, sizeof(path), "%s/%s", folder, nodes[i].name);
                unlink(path);
        }
        rmdir(folder);
}

static void budget_gives_so_many_at_once_and_a_second(void **state) {
        Budget budget = {.n_max = 3, .per_s = 10};

        for (unsigned i = 0; i < 3; i++)
                assert_true(budget_take(&budget, 5000));
        assert_false(budget_take(&budget, 5000));
        assert_int_equal(budget_free_at(&budget), 5100);
        assert_false(budget_take(&budget, 5099));
        assert_true(budget_take(&budget, 5100));
        assert_false(budget_take(&budget, 5100));
        for (unsigned i = 0; i < 3; i++)
                assert_true(budget_take(&budget, 60000));
        assert_false(budget_take(&budget, 60000));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(program_finds_exactly_its_descriptors_and_environment),
                cmocka_unit_test(blocked_and_ignored_signals_do_not_pass_on),
                cmocka_unit_test(identity_is_taken_whole),
                cmocka_unit_test(only_what_runs_no_users_code_may_raise_its_priority),
                cmocka_unit_test(identity_out_of_reach_is_an_error),
                cmocka_unit_test(program_that_is_not_there_is_told),
                cmocka_unit_test(slow_name_service_holds_up_nobody_else),
                cmocka_unit_test(only_groups_that_open_devices_count),
                cmocka_unit_test(budget_gives_so_many_at_once_and_a_second),
                cmocka_unit_test(root_and_unknown_users_are_no_identity),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
