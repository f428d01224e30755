/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for gpuqd-worker: tells on descriptor 5 what it was started with,
 * then lives until it is killed, with a child of its own and a stray: a process in
 * a session of its own whose parent has ended.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/assignment.h"

static char report[8192];

static void tell(const char *format, ...) {
        va_list args;

        va_start(args, format);
        vsnprintf(report + strlen(report), sizeof(report) - strlen(report), format, args);
        va_end(args);
}

static pid_t start_stray(void) {
        int ends[2];
        pid_t stray = 0, between;

        if (pipe(ends) < 0)
                _exit(1);
        between = fork();
        if (between == 0) {
                setsid();
                stray = fork();
                if (stray == 0) {
                        setsid();
                        close(ends[0]);
                        close(ends[1]);
                        for (;;)
                                pause();
                }
                (void)!write(ends[1], &stray, sizeof(stray));
                _exit(0);
        }
        (void)!read(ends[0], &stray, sizeof(stray));
        waitpid(between, NULL, 0);
        close(ends[0]);
        close(ends[1]);
        return stray;
}

/* As a spare worker gets it. */
static void tell_assignment(void) {
        static Assignment assignment;
        char text[sizeof(assignment.cache) + 64];

        fcntl(ASSIGNMENT_FD, F_SETFL, 0); /* wait */
        if (assignment_receive(ASSIGNMENT_FD, &assignment) < 0)
                _exit(1);
        if (assignment.changes_user)
                snprintf(text, sizeof(text), "assigned uid %u gid %u cache %s", assignment.uid,
                         assignment.gid, assignment.cache);
        else
                snprintf(text, sizeof(text), "stays, cache %s", assignment.cache);
        (void)!send(5, text, strlen(text), 0);
}

int main(int argc, char **argv, char **env) {
        gid_t groups[64];
        int death = 0;
        sigset_t set;
        pid_t child;

        child = fork();
        if (child == 0)
                for (;;)
                        pause();

        if (fcntl(STDERR_FILENO, F_GETFL) &
            O_NONBLOCK) /* the keeper's pipe, not a private gpuqd's output */
                fprintf(stderr,
                        "gpuqd: all is well\033[2J\n"); /* as a kernel on the CPU driver may */
        tell("args");
        for (int i = 1; i < argc; i++)
                tell(" %s", argv[i]);
        tell("\nuid %u gid %u groups %d\n", getuid(), getgid(), getgroups(64, groups));
        tell("fds");
        for (int fd = 0; fd < 64; fd++)
                if (fcntl(fd, F_GETFD) >= 0)
                        tell(" %d", fd);
        prctl(PR_GET_PDEATHSIG, &death);
        sigprocmask(SIG_BLOCK, NULL, &set);
        tell("\nsession %d death %d blocked %d child %d stray %d\n", getsid(0) == getpid(), death,
             sigismember(&set, SIGTERM), child, start_stray());
        for (; *env; env++)
                tell("env %s\n", *env);

        if (send(5, report, strlen(report), 0) < 0)
                return 1;
        if (strstr(report, " --spare "))
                tell_assignment();
        for (;;)
                pause();
}
