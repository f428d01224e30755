/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox: what a process of each role can still ask of the kernel, tried in a child that took the role.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <stdbool.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/macro.h"
#include "util/sandbox.h"

#define CANNOT_ENTER 99

typedef struct Call {
        const char *name;
        long number;
        long arguments[5];
} Call;

static long here[4];

/* Most of these succeed, or fail otherwise, where they are not refused. */
static const Call refused_for_all[] = {
        {"process_vm_readv", SYS_process_vm_readv, {0, 0, 0, 0, 0}},
        {"process_vm_writev", SYS_process_vm_writev, {0, 0, 0, 0, 0}},
        {"pidfd_getfd", SYS_pidfd_getfd, {-1, 0, 0}},
        {"mount", SYS_mount, {0, 0, 0, 0, 0}},
        {"umount2", SYS_umount2, {0, 0}},
        {"fsopen", SYS_fsopen, {0, 0}},
        {"pivot_root", SYS_pivot_root, {0, 0}},
        {"chroot", SYS_chroot, {(long)"/"}},
        {"unshare", SYS_unshare, {0}},
        {"setns", SYS_setns, {-1, 0}},
        {"open_by_handle_at", SYS_open_by_handle_at, {-1, 0, 0}},
        {"bpf", SYS_bpf, {0, 0, 0}},
        {"perf_event_open", SYS_perf_event_open, {0, 0, 0, 0, 0}},
        {"userfaultfd", SYS_userfaultfd, {0}},
        {"io_uring_setup", SYS_io_uring_setup, {1, (long)here}},
        {"add_key", SYS_add_key, {0, 0, 0, 0, 0}},
        {"keyctl", SYS_keyctl, {0, 0, 0, 0, 0}},
        {"kexec_load", SYS_kexec_load, {0, 0, 0, 0}},
        {"init_module", SYS_init_module, {0, 0, 0}},
        {"clock_adjtime", SYS_clock_adjtime, {0, 0}},
        {"vhangup", SYS_vhangup, {0}},
        {"fanotify_init", SYS_fanotify_init, {0, 0}},
        {"capset", SYS_capset, {0, 0}},
        {"fchown", SYS_fchown, {-1, -1, -1}},
        {"fchownat", SYS_fchownat, {-1, (long)"x", -1, -1, 0}},
        {"clone into a user namespace", SYS_clone, {CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0}},
        {"clone into a network namespace", SYS_clone, {CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0}},
};
static const Call tracing[] = {
        {"ptrace", SYS_ptrace, {PTRACE_DETACH, INT32_MAX, 0, 0}},
        {"personality", SYS_personality, {ADDR_NO_RANDOMIZE}},
};
static const Call other_users[] = {
        {"setuid", SYS_setuid, {-1}},           {"setgid", SYS_setgid, {-1}},
        {"setreuid", SYS_setreuid, {-1, -1}},   {"setregid", SYS_setregid, {-1, -1}},
        {"setresuid", SYS_setresuid, {-1, -1}}, {"setresgid", SYS_setresgid, {-1, -1}},
        {"setgroups", SYS_setgroups, {0, 0}},
};
static const Call processes[] = {
        {"execve", SYS_execve, {0, 0, 0}},
        {"execveat", SYS_execveat, {-1, 0, 0, 0, 0}},
#ifdef SYS_fork
        {"fork", SYS_fork, {0}},
        {"vfork", SYS_vfork, {0}},
#endif
        {"clone", SYS_clone, {SIGCHLD, 0, 0, 0, 0}},
};
/* As NVIDIA's are, by number, whatever the descriptor is. */
static const Call device_requests[] = {
        {"a device's ioctl()", SYS_ioctl, {-1, _IOWR('F', 0x2a, long[4])}},
        {"a device's old ioctl()", SYS_ioctl, {-1, 0x30}},
        {"a network's ioctl()", SYS_ioctl, {-1, 0x8912}},
        {"a terminal's input", SYS_ioctl, {-1, TIOCSTI, 0}},
};
/* What libcuda and our own loops need. */
static const Call allowed_for_all[] = {
        {"memfd_create", SYS_memfd_create, {(long)"x", 0}},
        {"eventfd2", SYS_eventfd2, {0, 0}},
        {"pidfd_open", SYS_pidfd_open, {1, 0}},
        {"sched_getaffinity", SYS_sched_getaffinity, {0, sizeof(here), (long)here}},
        {"setpriority", SYS_setpriority, {0, 0, 0}},
        {"get_mempolicy", SYS_get_mempolicy, {0, 0, 0, 0, 0}},
        {"set_mempolicy", SYS_set_mempolicy, {0, 0, 0}},
        {"membarrier", SYS_membarrier, {0, 0, 0}},
        {"personality, asked for", SYS_personality, {0xffffffff}},
        {"a Unix socket", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}},
};

/* A call that should have been refused may have stopped it. */
static pid_t fork_for_a_while(void) {
        pid_t pid = fork();

        if (pid == 0)
                alarm(60);
        return pid;
}

static long call_kernel(const Call *call) {
        const long *a = call->arguments;

        return syscall(call->number, a[0], a[1], a[2], a[3], a[4]);
}

/* In the child, as are all below. Return: how many are not as they should be. */
static int count_allowed(const Call *calls, size_t n_calls) {
        pid_t self = getpid();
        int n_wrong = 0;

        for (size_t i = 0; i < n_calls; i++) {
                long r = call_kernel(&calls[i]);

                if (getpid() != self)
                        _exit(0); /* it was a call that makes a process */
                if (r >= 0 || errno != EPERM) {
                        fprintf(stderr, "# %s: %ld, not refused\n", calls[i].name, r);
                        n_wrong++;
                }
        }
        return n_wrong;
}

static int count_refused(const Call *calls, size_t n_calls) {
        int n_wrong = 0;

        for (size_t i = 0; i < n_calls; i++)
                if (call_kernel(&calls[i]) < 0) {
                        fprintf(stderr, "# %s: %s\n", calls[i].name, strerror(errno));
                        n_wrong++;
                }
        return n_wrong;
}

static void *count_in_thread(void *what) {
        int *n_wrong = what;

        *n_wrong = count_allowed(refused_for_all, ARRAY_SIZE(refused_for_all));
        return NULL;
}

/* A new thread, and none of the sockets that need care. */
static int count_wrong_for_all(void) {
        int n_wrong = count_allowed(refused_for_all, ARRAY_SIZE(refused_for_all)), of_thread = 1;
        pthread_t thread;

        n_wrong += count_refused(allowed_for_all, ARRAY_SIZE(allowed_for_all));
        if (!SANDBOX_IS_SANITIZED)
                n_wrong += count_allowed(tracing, ARRAY_SIZE(tracing));
        if (pthread_create(&thread, NULL, count_in_thread, &of_thread) == 0)
                pthread_join(thread, NULL);
        for (int family = AF_NETLINK + 1; family < AF_MAX; family++)
                n_wrong += socket(family, SOCK_RAW, 0) >= 0 || errno != EAFNOSUPPORT;
        n_wrong += socket(AF_INET, SOCK_DGRAM, 0) < 0 && errno == EPERM;
        n_wrong += prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
        return n_wrong + of_thread;
}

static int count_programs_that_do_not_start(void) {
        pid_t pid = fork();
        int status = 0;

        if (pid == 0) {
                execl("/bin/true", "true", NULL);
                _exit(1);
        }
        return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

static int wrong_in_supervisor(void) {
        int n_wrong = count_wrong_for_all();

        n_wrong += count_allowed(other_users, ARRAY_SIZE(other_users));
        n_wrong += count_allowed(device_requests, ARRAY_SIZE(device_requests));
        n_wrong += ioctl(STDERR_FILENO, FIOCLEX) < 0;
        if (!SANDBOX_IS_SANITIZED)
                n_wrong += count_allowed(processes, ARRAY_SIZE(processes));
        return n_wrong;
}

static bool is_closed(const char *path, int flags) {
        int fd = open(path, flags | O_NOCTTY | O_CLOEXEC, 0600);

        if (fd >= 0)
                close(fd);
        return fd < 0 && errno == EACCES;
}

/* /dev/ptmx is open to everybody; the rest of the file system stays as it is. */
static int wrong_without_devices(void) {
        char path[] = "/tmp/test-sandbox-XXXXXX", aside[sizeof(path) + 1];
        int r = sandbox_close_devices(), n_wrong = 0;

        if (r == -EOPNOTSUPP)
                return CANNOT_ENTER;
        n_wrong += r != 0;
        n_wrong += !is_closed("/dev/ptmx", O_RDWR);
        n_wrong += !is_closed("/dev/shm/test-sandbox", O_RDWR | O_CREAT);
        n_wrong += is_closed("/dev/null", O_RDWR) + is_closed("/dev/urandom", O_RDONLY);
        n_wrong += is_closed("/proc/self/stat", O_RDONLY) + is_closed("/etc/passwd", O_RDONLY);
        n_wrong += close(mkstemp(path)) < 0;
        snprintf(aside, sizeof(aside), "%s~", path);
        n_wrong += rename(path, aside) < 0 || unlink(aside) < 0;
        return n_wrong;
}

static int wrong_in_worker(void) {
        return count_wrong_for_all() + count_allowed(other_users, ARRAY_SIZE(other_users)) +
               count_programs_that_do_not_start();
}

static int wrong_in_spare(void) {
        int n_wrong = count_wrong_for_all() + (setresuid(-1, -1, -1) < 0) +
                      count_programs_that_do_not_start();

        /* As it gets its user. */
        if (sandbox_enter(SANDBOX_WORKER) < 0)
                return n_wrong + 1;
        return n_wrong + wrong_in_worker();
}

static void *wait_for_word(void *what) {
        const int *end = what;
        char word;

        (void)!read(*end, &word, 1);
        return (void *)(intptr_t)count_allowed(refused_for_all, ARRAY_SIZE(refused_for_all));
}

static void run_in_child(SandboxRole role, int (*count)(void)) {
        pid_t pid = fork_for_a_while();
        int status;

        if (pid == 0)
                _exit(sandbox_enter(role) < 0 ? CANNOT_ENTER : count());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_ENTER)
                skip(); /* a kernel without seccomp */
        assert_int_equal(status, 0);
}

static void supervisor_starts_nothing_and_stays_its_user(void **state) {
        run_in_child(SANDBOX_SUPERVISOR, wrong_in_supervisor);
}

static void worker_starts_programs_but_stays_its_user(void **state) {
        run_in_child(SANDBOX_WORKER, wrong_in_worker);
}

static void spare_stays_its_user_once_it_has_one(void **state) {
        run_in_child(SANDBOX_SPARE, wrong_in_spare);
}

static void devices_are_closed_and_files_are_not(void **state) {
        pid_t pid = fork_for_a_while();
        int status;

        if (pid == 0)
                _exit(wrong_without_devices());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_ENTER)
                skip(); /* a kernel without Landlock */
        assert_int_equal(status, 0);
}

/* As libcuda's are. */
static int wrong_in_earlier_thread(void) {
        pthread_t thread;
        int ends[2];
        void *n_wrong;

        if (pipe(ends) < 0 || pthread_create(&thread, NULL, wait_for_word, &ends[0]) != 0)
                return 1;
        if (sandbox_enter(SANDBOX_WORKER) < 0)
                return CANNOT_ENTER;
        (void)!write(ends[1], "", 1);
        return pthread_join(thread, &n_wrong) != 0 || n_wrong;
}

static void threads_that_were_there_before_are_bound_too(void **state) {
        pid_t pid = fork_for_a_while();
        int status;

        if (pid == 0)
                _exit(wrong_in_earlier_thread());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_ENTER)
                skip();
        assert_int_equal(status, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(supervisor_starts_nothing_and_stays_its_user),
                cmocka_unit_test(worker_starts_programs_but_stays_its_user),
                cmocka_unit_test(spare_stays_its_user_once_it_has_one),
                cmocka_unit_test(devices_are_closed_and_files_are_not),
                cmocka_unit_test(threads_that_were_there_before_are_bound_too),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
