/* SPDX-License-Identifier: Apache-2.0 */
#include "util/assignment.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int assignment_pair(int ret_fds[static 2]) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret_fds) < 0)
                return -errno;
        return 0;
}

int assignment_send(int fd, const Assignment *assignment) {
        ssize_t n = send(fd, assignment, sizeof(*assignment), MSG_NOSIGNAL);

        return n < 0 ? -errno : 0;
}

int assignment_receive(int fd, Assignment *ret_assignment) {
        ssize_t n = recv(fd, ret_assignment, sizeof(*ret_assignment), 0);

        if (n < 0)
                return -errno;
        if (n == 0)
                return -EPIPE;
        if (n != sizeof(*ret_assignment) || ret_assignment->n_groups < 0 ||
            ret_assignment->n_groups > ASSIGNMENT_GROUPS_MAX ||
            !memchr(ret_assignment->cache, '\0', sizeof(ret_assignment->cache)))
                return -EBADMSG;
        return 0;
}
