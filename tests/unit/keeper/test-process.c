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
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/process.h"

static char output[4096];

/* Runs a shell command as descriptor 4 sees it; what it writes to 3 is @output. */
static int run_shell(const char *command, const Identity *identity) {
        char *argv[] = {"sh", "-c", (char *)command, NULL}, *env[] = {"ONE=1", NULL}, *error = NULL;
        int fds[2], status;
        size_t n_output = 0;
        ssize_t n;
        pid_t pid;

        assert_return_code(pipe2(fds, O_CLOEXEC), errno);
        if (process_start(&(ProcessPlan){.path = "/bin/sh",
                                         .argv = argv,
                                         .env = env,
                                         .identity = identity,
                                         .fds = (int[]){fds[1], 2},
                                         .n_fds = 2},
                          &pid, &error) != 0)
                fail_msg("%s", error);
        close(fds[1]);
        while ((n = read(fds[0], output + n_output, sizeof(output) - 1 - n_output)) > 0)
                n_output += (size_t)n;
        output[n_output] = '\0';
        close(fds[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
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

static void identity_out_of_reach_is_an_error(void **state) {
        Identity identity = {.uid = getuid() + 1, .gid = getgid() + 1};
        char *error = NULL;
        pid_t pid;

        if (getuid() == 0)
                return; /* cannot be seen here */
        assert_int_equal(process_start(&(ProcessPlan){.path = "/bin/true",
                                                      .argv = (char *[]){"true", NULL},
                                                      .env = (char *[]){NULL},
                                                      .identity = &identity},
                                       &pid, &error),
                         -EPERM);
        assert_non_null(strstr(error, "cannot set groups"));
        free(error);
}

static void program_that_is_not_there_is_told(void **state) {
        char *error = NULL;
        pid_t pid;

        assert_int_equal(process_start(&(ProcessPlan){.path = "/nonexistent/program",
                                                      .argv = (char *[]){"program", NULL},
                                                      .env = (char *[]){NULL}},
                                       &pid, &error),
                         -ENOENT);
        assert_string_equal(error,
                            "cannot start /nonexistent/program: cannot execute it: No such file or "
                            "directory");
        free(error);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
}

static void root_and_unknown_users_are_no_identity(void **state) {
        Identity *identity = NULL;

        assert_int_equal(identity_by_name("no-such-user", true, &identity), IDENTITY_E_UNKNOWN);
        assert_int_equal(identity_by_name("root", true, &identity), IDENTITY_E_ROOT);
        assert_int_equal(identity_by_uid(0, 5, &identity), IDENTITY_E_ROOT);
        assert_int_equal(identity_by_uid(54321, 0, &identity), IDENTITY_E_ROOT);
        assert_int_equal(identity_by_uid((uid_t)-1, 5, &identity), IDENTITY_E_ROOT);
        assert_int_equal(identity_by_uid(54321, (gid_t)-1, &identity), IDENTITY_E_ROOT);
        assert_null(identity);

        assert_int_equal(identity_by_uid(54321, 54322, &identity), 0);
        assert_int_equal(identity->uid, 54321);
        assert_int_equal(identity->gid, 54322);
        assert_int_equal(identity->n_groups, 0);
        identity_free(identity);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(program_finds_exactly_its_descriptors_and_environment),
                cmocka_unit_test(blocked_and_ignored_signals_do_not_pass_on),
                cmocka_unit_test(identity_is_taken_whole),
                cmocka_unit_test(identity_out_of_reach_is_an_error),
                cmocka_unit_test(program_that_is_not_there_is_told),
                cmocka_unit_test(root_and_unknown_users_are_no_identity),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
