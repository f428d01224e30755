/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process
 *
 * If a program cannot be executed, the reason comes back through a pipe that a successful exec()
 * closes. The keeper's other thread only closes descriptors, so a forked child may call any function.
 */

#include "keeper/process.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "util/bounds.h"
#include "util/macro.h"

#define PROCESS_FIRST_FD 3

typedef struct ProcessFailure {
        int error;
        char text[252];
} ProcessFailure; /* below PIPE_BUF: written whole */

/* Of this process, which is the child. */
typedef struct Child {
        const char *path; /* "" until it is known */
        int report;
        ProcessFailure late;
} Child;

static Child child;

static _Noreturn void child_report(const ProcessFailure *failure) {
        (void)!write(child.report, failure, sizeof(*failure));
        _exit(127);
}

static _Noreturn void child_fail(const char *step) {
        ProcessFailure failure = {.error = errno};

        snprintf(failure.text, sizeof(failure.text), "cannot start %s: cannot %s: %s", child.path,
                 step, strerror(failure.error));
        child_report(&failure);
}

/* ---- whom and what to become ------------------------------------------------- */

static void child_on_alarm(int signal_number) {
        child_report(&child.late);
}

/* A name service or a disk may never answer; nobody waits for this process, but it is one. */
static void child_limit_time(void) {
        child.late.error = ETIMEDOUT;
        snprintf(child.late.text, sizeof(child.late.text),
                 "cannot start it: looking up its user or making its folder took more than %d s; "
                 "check the machine's name service (getent passwd) and cache_dir",
                 PROCESS_PREPARE_S);
        (void)signal(SIGALRM, child_on_alarm);
        alarm(PROCESS_PREPARE_S);
}

static void child_make(ProcessMake make, const void *what, ProcessPlan *plan) {
        ProcessFailure failure = {};
        char *error = NULL;
        int r;

        r = make(what, plan, &error);
        if (r == 0 && (plan->argv.failed || plan->env.failed))
                r = -ENOMEM;
        if (r < 0) {
                failure.error = -r;
                snprintf(failure.text, sizeof(failure.text), "%s", error ? error : strerror(-r));
                child_report(&failure);
        }
        if (!plan->path)
                _exit(0);
        child.path = plan->path;
}

/* ---- from fork() to exec() ----------------------------------------------------- */

/* Ours to 3, 4, …, the report pipe right behind them, nothing else open. */
static void child_place_fds(const int *fds, unsigned n_fds) {
        int behind = PROCESS_FIRST_FD + (int)n_fds;
        int copies[PROCESS_N_FDS], null;

        /* First out of the way of each other, then into place. */
        for (unsigned i = 0; i < n_fds; i++) {
                copies[i] = fcntl(fds[i], F_DUPFD, behind + 1);
                if (copies[i] < 0)
                        child_fail("duplicate descriptors");
        }
        if (child.report != behind) {
                if (dup3(child.report, behind, O_CLOEXEC) < 0)
                        child_fail("duplicate descriptors");
                child.report = behind;
        }
        for (unsigned i = 0; i < n_fds; i++)
                if (dup2(copies[i], PROCESS_FIRST_FD + (int)i) < 0)
                        child_fail("place descriptors");
        if (close_range((unsigned)behind + 1, ~0u, 0) < 0)
                child_fail("close descriptors");

        null = open("/dev/null", O_RDONLY);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0)
                child_fail("open /dev/null");
        if (null > STDERR_FILENO)
                close(null);
}

static void child_set_output(int fd) {
        if (fd && (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0))
                child_fail("set its standard output");
}

static void child_reset_signals(void) {
        sigset_t none;

        for (int i = 1; i < NSIG; i++)
                (void)signal(i, SIG_DFL);
        sigemptyset(&none);
        if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
                child_fail("unblock signals");
}

/* The keeper may have died before. */
static void child_end_with(pid_t parent) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                child_fail("arrange to end with the keeper");
        if (getppid() != parent)
                _exit(127);
}

/*
 * Once no program can give new privileges, nothing needs the bounding set, except for a spare, which changes
 * its user itself. A worker of a gpuqd without no_new_privs may start nvidia-modprobe, which is setuid.
 */
static void child_drop_bounds(const ProcessPlan *plan) {
        uint64_t kept =
                plan->may_change_user ? 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_SETPCAP : 0;
        int r;

        if (!plan->identity && !plan->may_change_user)
                return;
        if (!plan->no_new_privs && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
                return;
        r = bounds_drop(kept);
        errno = -r;
        if (r < 0 && r != -EPERM) /* a container's, or a unit's, may lack CAP_SETPCAP */
                child_fail("drop capabilities");
}

static void child_become(const Identity *identity) {
        if (!identity)
                return;

        if (setgroups((size_t)identity->n_groups, identity->groups) < 0)
                child_fail("set groups");
        if (setresgid(identity->gid, identity->gid, identity->gid) < 0)
                child_fail("change gid");
        if (setresuid(identity->uid, identity->uid, identity->uid) < 0)
                child_fail("change uid");
}

/* The limit only falls from here on: systemd's LimitNICE= sets it for gpuqd. */
static void child_limit_nice(void) {
        const struct rlimit none = {0, 0};

        if (setrlimit(RLIMIT_NICE, &none) < 0)
                child_fail("give up a higher priority");
}

static _Noreturn void child_run(ProcessMake make, const void *what, const int *fds, unsigned n_fds,
                                pid_t parent, int report) {
        ProcessPlan plan = {};

        child = (Child){.path = "", .report = report};
        child_reset_signals();
        child_end_with(parent);
        if (setsid() < 0)
                child_fail("start a session");
        child_limit_time();
        child_make(make, what, &plan);

        child_set_output(plan.output);
        child_place_fds(fds, n_fds);
        umask(077);
        if (chdir("/") < 0)
                child_fail("change to /");
        child_drop_bounds(&plan);
        child_become(plan.identity);
        if (!plan.may_raise)
                child_limit_nice();
        if (plan.no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                child_fail("give up new privileges");
        child_end_with(parent); /* once more: a change of uid cleared it */

        alarm(0);
        (void)signal(SIGALRM, SIG_DFL);
        execve(plan.path, plan.argv.items, plan.env.items);
        child_fail("execute it");
}

/* ---- the keeper ------------------------------------------------------------------ */

int process_start(ProcessMake make, const void *what, const int *fds, unsigned n_fds,
                  Process *ret_process) {
        pid_t parent = getpid(), pid;
        int ends[2], r;

        if (n_fds > PROCESS_N_FDS)
                return -E2BIG;
        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;

        pid = fork();
        if (pid == 0)
                child_run(make, what, fds, n_fds, parent, ends[1]);
        r = -errno;
        close(ends[1]);
        if (pid < 0) {
                close(ends[0]);
                return r;
        }

        *ret_process = (Process){.pid = pid, .report = ends[0]};
        return 0;
}

int process_check(Process *process, char **ret_error) {
        ProcessFailure failure;
        ssize_t n;

        *ret_error = NULL;
        if (process->report < 0)
                return 0;
        n = read(process->report, &failure, sizeof(failure));
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return PROCESS_E_STARTING;

        process_finish(process);
        if (n != sizeof(failure))
                return 0;
        failure.text[sizeof(failure.text) - 1] = '\0';
        *ret_error = strdup(failure.text);
        return -failure.error;
}

void process_finish(Process *process) {
        closep(&process->report);
        process->report = -1;
}
