/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_SANDBOX_H
#define GPUQ_UTIL_SANDBOX_H

/*
 * Sandbox
 *
 * System calls that a process gives up once it has started (seccomp). Code that an
 * attacker runs in the process, through a bug or as a kernel of the CPU driver, cannot make these calls either. The calls that are
 * refused are dangerous and surely not needed; a list of what CUDA and name services may call would be
 * a guess. A refused call fails with EPERM, a socket of a refused family with EAFNOSUPPORT.
 *
 * All processes give up: ptrace and the memory of other processes; descriptors of others (pidfd_getfd);
 * mounts, chroot and namespaces; keyrings, bpf, perf events, userfaultfd, io_uring, handles of files;
 * personality; modules, kexec, reboot, clocks and ports; changes of capabilities and of the owners of files;
 * sockets other than Unix, Internet and netlink. The keeper has the filter of gpuqd.service only.
 *
 * In builds with a sanitizer, ptrace, personality, and what starts a process stay allowed: leaks are
 * looked for by a traced process, and a report's symbols by another program.
 */

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANDBOX_IS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANDBOX_IS_SANITIZED 1
#endif
#ifndef SANDBOX_IS_SANITIZED
#define SANDBOX_IS_SANITIZED 0
#endif

typedef enum SandboxRole {
        SANDBOX_SUPERVISOR, /* also starts no process and no program, does not change its user, and has no
                               ioctl() for devices */
        SANDBOX_WORKER, /* also does not change its user; it starts the compiler, which inherits */
        SANDBOX_SPARE,  /* may still become its user; SANDBOX_WORKER follows */
} SandboxRole;

/**
 * sandbox_enter() - for all threads, for good; also gives up new privileges (no_new_privs)
 *
 * Call after the last change of uid, except for SANDBOX_SPARE.
 *
 * Return: 0, or a negative errno: no call was given up, for example because the kernel has no seccomp.
 */
int sandbox_enter(SandboxRole role);
/**
 * sandbox_close_devices() - no device node can be opened any more, but for null, zero, full and random ones (Landlock)
 *
 * For the calling thread and what it starts; also gives up new privileges. Open descriptors stay. What appears
 * in the root folder later cannot be opened either, and no file can be moved to another folder.
 *
 * Return: 0; a negative errno: nothing was given up. -EOPNOTSUPP: the kernel has no Landlock.
 */
int sandbox_close_devices(void);

#endif
