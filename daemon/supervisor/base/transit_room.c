/* SPDX-License-Identifier: Apache-2.0 */
#include "transit_room.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/macro.h"

#define ROOM_FDS_MAX   253u /* in one message: the kernel's SCM_MAX_FD */
#define ROOM_PAIRS_MAX 64u  /* each takes about 270 messages: beyond a million nobody asks */
#define ROOM_LITTLE    16u /* parts of the limit: clients together may not hold all but one of them */
#define ROOM_TRIES     8u
#define ROOM_PAUSE_MS  25

/* One message, with @n_fds times the same descriptor. Return: 0, or a negative errno. */
static int room_send(int socket, unsigned n_fds) {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(ROOM_FDS_MAX * sizeof(int))] = {};
        struct iovec iov = {.iov_base = "", .iov_len = 1};
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = control,
                .msg_controllen = CMSG_SPACE(n_fds * sizeof(int)),
        };
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);

        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        for (unsigned i = 0; i < n_fds; ++i)
                memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &(int){STDIN_FILENO}, sizeof(int));
        return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Return: 0 if the socket is full or nothing more is asked for, or a negative errno. */
static int room_fill(int socket, unsigned n_fds, uint64_t limit, uint64_t *n_sent) {
        int r = 0;

        while (*n_sent < limit) {
                r = room_send(socket, n_fds);
                if (r < 0)
                        break;
                *n_sent += n_fds;
        }
        return r == -EAGAIN ? 0 : r;
}

static uint64_t room_measure(uint64_t limit) {
        unsigned n_fds = (unsigned)MIN(limit / TRANSIT_ROOM_BATCHES + 1, (uint64_t)ROOM_FDS_MAX);
        int pairs[ROOM_PAIRS_MAX][2], r = 0;
        unsigned n_pairs = 0;
        uint64_t n_sent = 0;

        while (r == 0 && n_sent < limit && n_pairs < ROOM_PAIRS_MAX) {
                if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pairs[n_pairs]) < 0)
                        break;
                r = room_fill(pairs[n_pairs++][0], n_fds, limit, &n_sent);
        }
        while (n_pairs--) {
                close(pairs[n_pairs][0]);
                close(pairs[n_pairs][1]);
        }
        /* For another reason than the limit it is unknown, as it is for those whom it does not bind. */
        if (r != -ETOOMANYREFS)
                return MAX(limit, (uint64_t)1);
        return MAX(MIN(n_sent, limit), (uint64_t)1);
}

/* Another gpuqd of this uid, which starts now, may hold all of it while it measures. */
uint64_t transit_room_measure(uint64_t limit) {
        uint64_t room = room_measure(limit);

        for (unsigned i = 1; i < ROOM_TRIES && room < limit / ROOM_LITTLE; ++i) {
                (void)poll(NULL, 0, ROOM_PAUSE_MS);
                room = MAX(room, room_measure(limit));
        }
        return room;
}
