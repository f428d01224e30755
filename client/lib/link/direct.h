/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LINK_DIRECT_H
#define GPUQ_LINK_DIRECT_H

/*
 * Direct
 *
 * The client's side of a direct ring (proto/direct_ring.h): a client that fires prepared jobs steadily asks for one, and
 * while gpuqd lends it to a worker, fires go there instead of to gpuqd. Before any other request the client tells gpuqd
 * that it has stopped, so gpuqd knows the order of its jobs.
 *
 *     NONE --> ASKED --> IDLE <--> LENT
 *
 * The ring stays mapped until the client's end, because a waiting thread may still look at an entry.
 */

#include "client.h"

/** direct_init() - connected, or again connected: there is no ring yet. */
void direct_init(gpuq_client *client, const Gpuq__V1__Welcome *welcome);
/** direct_lost() - the connection is lost, and with it the ring's reader. */
void direct_lost(gpuq_client *client);
/** direct_fini() - unmap all rings. */
void direct_fini(gpuq_client *client);

/** direct_consider() - a job was fired by a message: ask for a ring when there were some. */
void direct_consider(gpuq_client *client);
/** direct_answered() - a reply about the ring; @fd stays the caller's. Return: false: it is about something else. */
bool direct_answered(gpuq_client *client, const Gpuq__V1__Reply *reply, int fd);
/** direct_told() - likewise an event. */
bool direct_told(gpuq_client *client, const Gpuq__V1__Reply *reply);

/** direct_takes() - whether a job can be fired in the ring now. */
static inline bool direct_takes(const gpuq_client *client) {
        return client->direct.mode == DIRECT_LENT && direct_ring_has_room(&client->direct.ring);
}
/** direct_fire() - fire it there. @job: what direct_job() gives. Return: the number of its entry. */
uint32_t direct_fire(gpuq_client *client, uint32_t tag, uint32_t prepared, void *job);
/** direct_leave() - fire no more jobs there, and say so; another request follows. */
void direct_leave(gpuq_client *client);

/** direct_entry() - by its number. */
static inline DirectEntry *direct_entry(const gpuq_client *client, uint32_t entry) {
        return direct_ring_entry(&client->direct.ring, entry);
}
/** direct_job() - the job of an entry; NULL: it has ended. */
static inline void *direct_job(const gpuq_client *client, uint32_t entry) {
        return client->direct.jobs[entry % DIRECT_RING_ENTRIES];
}
/** direct_has_jobs() - some have not ended. */
static inline bool direct_has_jobs(const gpuq_client *client) {
        return client->direct.first != client->direct.ring.position;
}
/** direct_was_taken() - a worker had taken the job of the entry, which may have begun. */
bool direct_was_taken(const gpuq_client *client, uint32_t entry);
/** direct_forget() - its job has ended, or will be sent to gpuqd. */
void direct_forget(gpuq_client *client, uint32_t entry);

#endif
