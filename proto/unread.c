/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/unread.h"

#include <limits.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

/*
 * What waits of one sendmsg() is counted with the kernel's own structures for it: 576 bytes or more
 * beside the data. A reader that is just about to be done leaves a byte for a moment.
 */
#define UNREAD_SEND_BYTES 512u

void unread_note(Unread *unread, bool with_fd) {
        if (with_fd) {
                unread->n_fds++;
                unread->n_later = 0;
        } else if (unread->n_fds && unread->n_later < UINT_MAX) {
                unread->n_later++;
        }
}

unsigned unread_look(Unread *unread, int socket) {
        int n_bytes;

        if (!unread->n_fds || ioctl(socket, SIOCOUTQ, &n_bytes) < 0 || n_bytes < 0)
                return unread->n_fds;
        if ((unsigned long long)n_bytes < (unread->n_later + 1ull) * UNREAD_SEND_BYTES)
                *unread = (Unread){};
        return unread->n_fds;
}
