/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox filters
 *
 * Runs when gpuq is built, and prints the filters of sandbox.h as C. Not at run time: libseccomp makes some
 * 1,400 allocations for a filter, and frees memory twice if one of them fails (2.5.4).
 *
 * A call that this libseccomp does not know is not refused.
 */
#include "util/sandbox.h"

#include <errno.h>
#include <sched.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/macro.h"

#ifdef __s390__
#define CLONE_FLAGS(op, a, b) SCMP_A1(op, a, b)
#else
#define CLONE_FLAGS(op, a, b) SCMP_A0(op, a, b)
#endif

#define SANDBOX_AS_IT_IS 0xffffffffu /* personality() then changes nothing */

static const char *const for_all[] = {
        /* other processes; ptrace is below */
        "process_vm_readv", "process_vm_writev", "pidfd_getfd",
        /* the view of the machine */
        "mount", "umount", "umount2", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount",
        "fspick", "mount_setattr", "pivot_root", "chroot", "unshare", "setns", "open_by_handle_at",
        /* parts of the kernel that nothing here uses */
        "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
        "io_uring_register", "add_key", "request_key", "keyctl",
        /* the machine itself */
        "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
        "swapon", "swapoff", "acct", "quotactl", "iopl", "ioperm", "settimeofday", "clock_settime",
        "sethostname", "setdomainname", "adjtimex", "clock_adjtime", "quotactl_fd", "nfsservctl",
        "_sysctl", "vhangup", "fanotify_init", "fanotify_mark",
        /* rights: workers have their folders from the keeper, and nothing here makes files another's */
        "capset", "chown", "chown32", "fchown", "fchown32", "fchownat", "lchown", "lchown32"};
static const char *const other_users[] = {
        "setuid",     "setgid",      "setreuid",    "setregid",    "setresuid",  "setresgid",
        "setgroups",  "setfsuid",    "setfsgid",    "setuid32",    "setgid32",   "setreuid32",
        "setregid32", "setresuid32", "setresgid32", "setgroups32", "setfsuid32", "setfsgid32"};
static const char *const processes[] = {"execve", "execveat", "fork", "vfork"};
static const int namespaces[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                 CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

static int sandbox_refuse(scmp_filter_ctx filter, const char *name) {
        int call = seccomp_syscall_resolve_name(name);

        return call == __NR_SCMP_ERROR ? 0
                                       : seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0);
}

static int sandbox_refuse_all(scmp_filter_ctx filter, const char *const *names, size_t n_names) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < n_names; i++)
                r = sandbox_refuse(filter, names[i]);
        return r;
}

/* What @comparison is true of is refused with @error. */
static int sandbox_refuse_if(scmp_filter_ctx filter, int call, int error,
                             struct scmp_arg_cmp comparison) {
        return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(error), call, 1, &comparison);
}

/* Of clone3() a filter cannot see the flags. Without it, the C library calls clone(). */
static int sandbox_refuse_namespaces(scmp_filter_ctx filter) {
        int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(namespaces); i++)
                r = sandbox_refuse_if(filter, SCMP_SYS(clone), EPERM,
                                      CLONE_FLAGS(SCMP_CMP_MASKED_EQ, (scmp_datum_t)namespaces[i],
                                                  (scmp_datum_t)namespaces[i]));
        return r;
}

/* The rest is for the C library's name services, and for libcuda. */
static int sandbox_refuse_sockets(scmp_filter_ctx filter) {
        int r = sandbox_refuse_if(filter, SCMP_SYS(socket), EAFNOSUPPORT,
                                  SCMP_A0(SCMP_CMP_GT, AF_NETLINK));

        for (unsigned family = 0; r == 0 && family < AF_NETLINK; family++)
                if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
                        r = sandbox_refuse_if(filter, SCMP_SYS(socket), EAFNOSUPPORT,
                                              SCMP_A0(SCMP_CMP_EQ, family));
        return r;
}

static int sandbox_refuse_tracing(scmp_filter_ctx filter) {
        int r = sandbox_refuse(filter, "ptrace");

        if (r < 0)
                return r;
        return sandbox_refuse_if(filter, SCMP_SYS(personality), EPERM,
                                 SCMP_A0(SCMP_CMP_NE, SANDBOX_AS_IT_IS));
}

/*
 * Memory of NVIDIA's devices is held by descriptors of their device nodes. Terminals' requests stay,
 * among which are those of any descriptor (FIONBIO, FIOCLEX), but not those that act as its user.
 */
static int sandbox_refuse_device_requests(scmp_filter_ctx filter) {
        const struct scmp_arg_cmp refused[] = {
                SCMP_A1(SCMP_CMP_LT, TCGETS),
                SCMP_A1(SCMP_CMP_EQ, TIOCSTI),
                SCMP_A1(SCMP_CMP_EQ, TIOCLINUX),
                SCMP_A1(SCMP_CMP_GT, FIOCLEX),
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(refused); i++)
                r = sandbox_refuse_if(filter, SCMP_SYS(ioctl), EPERM, refused[i]);
        return r;
}

/* Threads stay allowed. */
static int sandbox_refuse_processes(scmp_filter_ctx filter) {
        int r = sandbox_refuse_all(filter, processes, ARRAY_SIZE(processes));

        if (r < 0)
                return r;
        return sandbox_refuse_if(filter, SCMP_SYS(clone), EPERM,
                                 CLONE_FLAGS(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
}

static int sandbox_fill(scmp_filter_ctx filter, SandboxRole role) {
        int r;

        r = sandbox_refuse_all(filter, for_all, ARRAY_SIZE(for_all));
        if (r == 0)
                r = sandbox_refuse_namespaces(filter);
        if (r == 0)
                r = sandbox_refuse_sockets(filter);
        if (r == 0 && role != SANDBOX_SPARE)
                r = sandbox_refuse_all(filter, other_users, ARRAY_SIZE(other_users));
        if (r == 0 && role == SANDBOX_SUPERVISOR)
                r = sandbox_refuse_device_requests(filter);
        if (r == 0 && !SANDBOX_IS_SANITIZED)
                r = sandbox_refuse_tracing(filter);
        if (r == 0 && !SANDBOX_IS_SANITIZED && role == SANDBOX_SUPERVISOR)
                r = sandbox_refuse_processes(filter);
        return r;
}

static int sandbox_print(const char *name, int fd) {
        struct sock_filter line;

        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        printf("static const struct sock_filter %s[] = {\n", name);
        while (read(fd, &line, sizeof(line)) == sizeof(line))
                printf("        {0x%04x, %u, %u, 0x%08x},\n", line.code, line.jt, line.jf, line.k);
        printf("};\n");
        return 0;
}

/* Calls of another architecture are refused like the others. */
static int sandbox_make(const char *name, SandboxRole role) {
        _cleanup_(closep) int fd = memfd_create(name, MFD_CLOEXEC);
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
        int r;

        if (fd < 0 || !filter)
                return -ENOMEM;
        (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree, not a list */
        r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
        if (r == 0)
                r = sandbox_fill(filter, role);
        if (r == 0)
                r = seccomp_export_bpf(filter, fd);
        if (r == 0)
                r = sandbox_print(name, fd);
        seccomp_release(filter);
        return r;
}

int main(void) {
        int r;

        r = sandbox_make("supervisor_filter", SANDBOX_SUPERVISOR);
        if (r == 0)
                r = sandbox_make("worker_filter", SANDBOX_WORKER);
        if (r == 0)
                r = sandbox_make("spare_filter", SANDBOX_SPARE);
        if (r < 0)
                fprintf(stderr, "sandbox-filters: %s\n", strerror(-r));
        return r < 0 || fflush(stdout) != 0;
}
