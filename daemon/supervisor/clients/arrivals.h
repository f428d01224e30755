/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ARRIVALS_H
#define GPUQ_SUPERVISOR_ARRIVALS_H

/*
 * Arrivals
 *
 * Connections of users who are still being looked up (jobs/lookup.h). They are not read, and become
 * sessions when the lookup has ended, or when nobody waits for it any longer. Users share the places,
 * so that connections under many uids do not keep others out.
 */

#define ARRIVALS_MAX       1024u /* of all users */
#define ARRIVALS_LEAST     128u  /* where descriptors are few */
#define ARRIVALS_SEE_BURST 16u   /* sessions made in one turn of the loop */

typedef struct Clients Clients;
typedef struct Peer Peer;

/** arrivals_init() - nobody is there. */
void arrivals_init(Clients *clients);
/** arrivals_add() - a connected peer: a session now, or once its user is known. Consumes @fd. */
void arrivals_add(Clients *clients, int fd, const Peer *peer);
/** arrivals_run() - once a turn: sessions for those whose users are known, and answers for users that exist. */
void arrivals_run(Clients *clients);
/** arrivals_close() - close them all. */
void arrivals_close(Clients *clients);

#endif
