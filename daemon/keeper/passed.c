/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passed
 *
 * See passed.h. fstat() and fstatfs() of a file on FUSE ask the process that serves it.
 */

#include "keeper/passed.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "util/macro.h"

/* Files of tmpfs and hugetlbfs alone have seals; the kernel looks at its own memory for that. */
static bool passed_has_seals(int fd) {
        return fcntl(fd, F_GET_SEALS) >= 0;
}

/*
 * A driver's memory is a character device, or an anonymous inode, which has no type. With
 * AT_STATX_DONT_SYNC a file system, FUSE and NFS too, answers from what it knows already.
 */
static bool passed_is_device(int fd) {
        struct statx st;

        if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0)
                return false;
        return S_ISCHR(st.stx_mode) || (st.stx_mode & S_IFMT) == 0;
}

bool passed_is_memory(int fd) {
        return fd >= 0 && (passed_has_seals(fd) || passed_is_device(fd));
}

/* Return: whether close() cannot wait: the kernel's own memory, or a socket that never lingers. */
static bool passed_is_harmless(int fd) {
        socklen_t n_bytes = sizeof(int);
        int domain;

        if (passed_has_seals(fd))
                return true;
        return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n_bytes) == 0 && domain == AF_UNIX;
}

/*
 * A child with our descriptors, not with copies of them, closes these and ends. It may hang for as
 * long as it likes; to the keeper it is an orphan. Return: whether there is one.
 */
static bool passed_close_elsewhere(const int *fds, size_t n_fds) {
        long pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);

        if (pid == 0) {
                for (size_t i = 0; i < n_fds; i++)
                        if (fds[i] >= 0)
                                close(fds[i]);
                _exit(0);
        }
        return pid > 0;
}

bool passed_discard(int *fds, size_t n_fds) {
        bool are_left = false;

        for (size_t i = 0; i < n_fds; i++) {
                if (fds[i] >= 0 && passed_is_harmless(fds[i])) {
                        close(fds[i]);
                        fds[i] = -1;
                }
                are_left |= fds[i] >= 0;
        }
        /* Without a process for it the descriptors stay open, which is better than to hang. */
        if (are_left)
                (void)passed_close_elsewhere(fds, n_fds);
        for (size_t i = 0; i < n_fds; i++)
                fds[i] = -1;
        return are_left;
}
