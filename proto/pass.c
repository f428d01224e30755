/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pass
 */

#include "proto/pass.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef union PassControl {
        char bytes[CMSG_SPACE(PASS_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
} PassControl;

static void pass_attach(struct msghdr *message, PassControl *control, const int *fds,
                        size_t n_fds) {
        struct cmsghdr *cmsg;

        memset(control, 0, sizeof(*control));
        message->msg_control = control->bytes;
        message->msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        cmsg = CMSG_FIRSTHDR(message);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
}

ssize_t pass_send(int socket, const void *data, size_t n_bytes, const int *fds, size_t n_fds) {
        struct iovec iov = {.iov_base = (void *)data, .iov_len = n_bytes};
        struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
        PassControl control;
        ssize_t n;

        assert(n_fds <= PASS_FDS_MAX);
        if (n_fds)
                pass_attach(&message, &control, fds, n_fds);

        do
                n = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
}

static size_t pass_take(struct msghdr *message, int *fds) {
        size_t n_fds = 0, n;

        for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(message); cmsg;
             cmsg = CMSG_NXTHDR(message, cmsg)) {
                if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
                        continue;
                n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(fds + n_fds, CMSG_DATA(cmsg), n * sizeof(int));
                n_fds += n;
        }
        return n_fds;
}

ssize_t pass_receive(int socket, void *data, size_t n_max, int *fds, size_t n_fds_max,
                     size_t *ret_n_fds) {
        struct iovec iov = {.iov_base = data, .iov_len = n_max};
        struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
        PassControl control;
        size_t n_fds;
        ssize_t n;

        assert(n_fds_max <= PASS_FDS_MAX);
        if (n_fds_max) {
                message.msg_control = control.bytes;
                message.msg_controllen = CMSG_LEN(n_fds_max * sizeof(int)); /* no room for more */
        }

        do
                n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;

        n_fds = pass_take(&message, fds);
        if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
                while (n_fds)
                        close(fds[--n_fds]);
                return -EBADMSG;
        }
        *ret_n_fds = n_fds;
        return n;
}
