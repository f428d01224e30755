/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orphans: what is found and killed, and that other users' processes do not make it dear.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "keeper/orphans.h"
#include "util/macro.h"

#define N_OTHERS 400u
#define N_TRIES  20u

/* Forks a process that waits for its end. @pipe: it writes a byte when it is there; -1: it does not. */
static pid_t start_sleeper(int pipe) {
        pid_t pid = fork();

        if (pid)
                return pid;
        if (pipe >= 0)
                (void)!write(pipe, "!", 1);
        for (;;)
                pause();
}

static bool is_own(pid_t pid, void *userdata) {
        return pid == *(pid_t *)userdata;
}

static void end_child(pid_t pid) {
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void orphans_are_killed_and_own_children_are_not(void **state) {
        pid_t earlier = start_sleeper(-1), own, parent, found;
        Orphans *orphans = NULL;
        int status, fds[2];
        char byte;

        assert_int_equal(orphans_new(&orphans), 0);
        own = start_sleeper(-1);
        assert_return_code(pipe(fds), errno);
        parent = fork();
        if (parent == 0) {
                (void)start_sleeper(fds[1]);
                _exit(0);
        }
        assert_int_equal(waitpid(parent, NULL, 0), parent);
        assert_int_equal(read(fds[0], &byte, 1), 1);

        assert_int_equal(orphans_kill(orphans, is_own, &own), 1);
        found = waitpid(-1, &status, 0);
        assert_true(found > 0 && found != own && found != earlier);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_int_equal(orphans_kill(orphans, is_own, &own), 0);

        end_child(own);
        end_child(earlier);
        close(fds[0]);
        close(fds[1]);
        orphans_free(orphans);
}

static bool first_thread_has_ended(void) {
        char path[48], text[128] = "";
        FILE *file;

        snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
        file = fopen(path, "re");
        if (file) {
                (void)!fread(text, 1, sizeof(text) - 1, file);
                fclose(file);
        }
        return strstr(text, ") Z ");
}

static void *outlive_first_thread(void *userdata) {
        while (!first_thread_has_ended())
                sched_yield();
        (void)!write(*(int *)userdata, "!", 1);
        for (;;)
                pause();
        return NULL;
}

/* To the kernel such a process is a zombie that nobody can reap. */
static void an_orphan_whose_first_thread_has_ended_is_killed(void **state) {
        Orphans *orphans = NULL;
        pid_t parent, none = 0;
        int status, fds[2];
        pthread_t thread;
        char byte;

        assert_int_equal(orphans_new(&orphans), 0);
        assert_return_code(pipe(fds), errno);
        parent = fork();
        if (parent == 0) {
                if (fork() == 0) {
                        pthread_create(&thread, NULL, outlive_first_thread, &fds[1]);
                        syscall(SYS_exit, 0);
                }
                _exit(0);
        }
        assert_int_equal(waitpid(parent, NULL, 0), parent);
        assert_int_equal(read(fds[0], &byte, 1), 1);

        assert_int_equal(orphans_kill(orphans, is_own, &none), 1);
        assert_true(waitpid(-1, &status, 0) > 0);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

        close(fds[0]);
        close(fds[1]);
        orphans_free(orphans);
}

/* ---- cost -------------------------------------------------------------------- */

static uint64_t cpu_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The least of many, which other processes do not disturb. */
static uint64_t cost_ns(const Orphans *orphans, pid_t own) {
        uint64_t least = UINT64_MAX;

        for (unsigned i = 0; i < N_TRIES; i++) {
                uint64_t begin = cpu_ns();

                assert_int_equal(orphans_kill(orphans, is_own, &own), 0);
                least = MIN(least, cpu_ns() - begin);
        }
        return least;
}

/* Starts N_OTHERS processes and waits until all are there. */
static void start_others(int pipe) {
        setsid();
        for (unsigned i = 0; i < N_OTHERS; i++)
                if (start_sleeper(-1) < 0)
                        _exit(1);
        (void)!write(pipe, "!", 1);
        for (;;)
                pause();
}

static void other_processes_cost_nothing(void **state) {
        uint64_t alone_ns, crowded_ns;
        Orphans *orphans = NULL;
        int fds[2];
        char byte;
        pid_t own;

        if (access("/proc/thread-self/children", R_OK) < 0)
                skip();
        assert_int_equal(orphans_new(&orphans), 0);
        assert_return_code(pipe(fds), errno);
        own = start_sleeper(-1);
        alone_ns = cost_ns(orphans, own);
        end_child(own);

        own = fork();
        if (own == 0)
                start_others(fds[1]);
        assert_int_equal(read(fds[0], &byte, 1), 1);
        crowded_ns = cost_ns(orphans, own);
        kill(-own, SIGKILL);
        for (unsigned i = 0; i <= N_OTHERS;
             i++) /* the others are ours once their parent has ended */
                assert_true(waitpid(-1, NULL, 0) > 0);
        assert_in_range(crowded_ns, 0, 3 * alone_ns);

        close(fds[0]);
        close(fds[1]);
        orphans_free(orphans);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(orphans_are_killed_and_own_children_are_not),
                cmocka_unit_test(an_orphan_whose_first_thread_has_ended_is_killed),
                cmocka_unit_test(other_processes_cost_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
