/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process
 *
 * Between fork() and exec() the child makes system calls only. Which of them
 * failed comes back through a pipe that exec() closes.
 */

#include "keeper/process.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "util/macro.h"

#define PROCESS_FIRST_FD 3

typedef struct ProcessFailure {
        char step[40];
        int error;
} ProcessFailure;

static _Noreturn void child_fail(int report, const char *step) {
        ProcessFailure failure = {.error = errno};

        strncpy(failure.step, step, sizeof(failure.step) - 1);
        (void)!write(report, &failure, sizeof(failure));
        _exit(127);
}

/* Ours to 3, 4, …, the report pipe right behind them, nothing else open. Return: the pipe's new number. */
static int child_place_fds(const ProcessPlan *plan, int report) {
        int behind = PROCESS_FIRST_FD + (int)plan->n_fds;
        int copies[PROCESS_N_FDS], null;

        /* First out of the way of each other, then into place. */
        for (unsigned i = 0; i < plan->n_fds; i++) {
                copies[i] = fcntl(plan->fds[i], F_DUPFD, behind + 1);
                if (copies[i] < 0)
                        child_fail(report, "duplicate descriptors");
        }
        if (report != behind) {
                if (dup3(report, behind, O_CLOEXEC) < 0)
                        child_fail(report, "duplicate descriptors");
                report = behind;
        }
        for (unsigned i = 0; i < plan->n_fds; i++)
                if (dup2(copies[i], PROCESS_FIRST_FD + (int)i) < 0)
                        child_fail(report, "place descriptors");
        if (close_range((unsigned)behind + 1, ~0u, 0) < 0)
                child_fail(report, "close descriptors");

        null = open("/dev/null", O_RDONLY);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0)
                child_fail(report, "open /dev/null");
        if (null > STDERR_FILENO)
                close(null);
        return report;
}

static void child_reset_signals(int report) {
        sigset_t none;

        for (int i = 1; i < NSIG; i++)
                (void)signal(i, SIG_DFL);
        sigemptyset(&none);
        if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
                child_fail(report, "unblock signals");
}

static void child_become(const Identity *identity, int report) {
        if (!identity)
                return;

        if (setgroups((size_t)identity->n_groups, identity->groups) < 0)
                child_fail(report, "set groups");
        if (setresgid(identity->gid, identity->gid, identity->gid) < 0)
                child_fail(report, "change gid");
        if (setresuid(identity->uid, identity->uid, identity->uid) < 0)
                child_fail(report, "change uid");
}

static _Noreturn void child_run(const ProcessPlan *plan, pid_t parent, int report) {
        report = child_place_fds(plan, report);
        child_reset_signals(report);
        umask(077);
        if (chdir("/") < 0)
                child_fail(report, "change to /");
        if (setsid() < 0)
                child_fail(report, "start a session");
        child_become(plan->identity, report);
        if (plan->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                child_fail(report, "give up new privileges");

        /* A change of uid clears it, so it comes last; the keeper may have died before. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                child_fail(report, "arrange to end with the keeper");
        if (getppid() != parent)
                _exit(127);

        execve(plan->path, plan->argv, plan->env);
        child_fail(report, "execute it");
}

/* Blocks until the child's exec() closes the pipe or a failure comes through it. */
static bool process_failed(int report, ProcessFailure *ret_failure) {
        ProcessFailure failure;
        ssize_t n;

        do
                n = read(report, &failure, sizeof(failure));
        while (n < 0 && errno == EINTR);
        if (n != sizeof(failure))
                return false;
        *ret_failure = failure;
        return true;
}

static int process_error(const ProcessPlan *plan, const char *step, int error, char **ret_error) {
        char *text;

        if (asprintf(&text, "cannot start %s: cannot %s: %s", plan->path, step, strerror(error)) <
            0)
                text = NULL;
        *ret_error = text;
        return -error;
}

int process_start(const ProcessPlan *plan, pid_t *ret_pid, char **ret_error) {
        _cleanup_(closep) int report = -1;
        ProcessFailure failure;
        pid_t parent = getpid(), pid;
        int pipe_fds[2];

        if (plan->n_fds > PROCESS_N_FDS)
                return process_error(plan, "pass descriptors", E2BIG, ret_error);
        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return process_error(plan, "make a pipe", errno, ret_error);
        report = pipe_fds[0];

        pid = fork();
        if (pid == 0)
                child_run(plan, parent, pipe_fds[1]);
        close(pipe_fds[1]);
        if (pid < 0)
                return process_error(plan, "fork", errno, ret_error);

        if (process_failed(report, &failure)) {
                (void)waitpid(pid, NULL, 0);
                failure.step[sizeof(failure.step) - 1] = '\0';
                return process_error(plan, failure.step, failure.error, ret_error);
        }

        *ret_pid = pid;
        return 0;
}
