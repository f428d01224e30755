/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PROTO_UNREAD_H
#define GPUQ_PROTO_UNREAD_H

/*
 * Unread
 *
 * Counts the descriptors that were sent on a Unix stream socket and that its peer has not read. The
 * kernel charges these to the sender's uid, and refuses to send any more over a limit, to whomever
 * they go; they count until the peer reads them or all copies of its end are closed, whatever the
 * sender does with its own end.
 *
 * The kernel does not tell their number, only how much memory waits to be read. A peer reads in
 * order, so all have been read once less waits than what was sent from the last of them on. Until
 * then all of them count.
 */

#include <stdbool.h>

typedef struct Unread {
        unsigned n_fds;
        unsigned n_later; /* sends after the last of them */
} Unread;

/** unread_note() - a sendmsg() succeeded, with one descriptor or without. */
void unread_note(Unread *unread, bool with_fd);
/** unread_look() - Return: how many are unread; too many rather than too few. */
unsigned unread_look(Unread *unread, int socket);

#endif
