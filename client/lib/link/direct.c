/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct
 */

#include "direct.h"

#include <fcntl.h>

#define DIRECT_AFTER 16u /* fired jobs before the client asks for a ring */

/* ---- its life ---------------------------------------------------------------------- */

void direct_init(gpuq_client *client, const Gpuq__V1__Welcome *welcome) {
        Direct *direct = &client->direct;

        direct->mode = DIRECT_NONE;
        direct->n_fires = 0;
        direct->first = 0;
        direct->is_offered = welcome->direct;
        if (direct->ring.shared) {
                direct->old[direct->n_old++] = direct->ring;
                direct->ring = (DirectRing){};
        }
        if (direct->n_old == DIRECT_OLD_MAX)
                direct->is_offered = false;
}

void direct_lost(gpuq_client *client) {
        Direct *direct = &client->direct;

        direct->mode = DIRECT_NONE;
        direct->is_offered = false;
        (void)loop_set_bell(&client->loop, -1);
}

void direct_fini(gpuq_client *client) {
        Direct *direct = &client->direct;

        direct_ring_release(&direct->ring);
        while (direct->n_old > 0)
                direct_ring_release(&direct->old[--direct->n_old]);
        free(direct->jobs);
        direct->jobs = NULL;
}

/* ---- with gpuqd ----------------------------------------------------------------------- */

void direct_consider(gpuq_client *client) {
        Gpuq__V1__DirectOpen open = GPUQ__V1__DIRECT_OPEN__INIT;
        Direct *direct = &client->direct;

        if (!direct->is_offered || direct->mode != DIRECT_NONE || client->error != 0 ||
            ++direct->n_fires < DIRECT_AFTER)
                return;

        direct->is_offered = false; /* asked only once */
        if (client_send(client, GPUQ__V1__REQUEST__BODY_DIRECT_OPEN, &open, NULL) == 0)
                direct->mode = DIRECT_ASKED;
}

/* Without memory for it the client goes on with messages. */
static void direct_take_ring(gpuq_client *client, int fd) {
        Direct *direct = &client->direct;

        if (direct->mode != DIRECT_ASKED || direct->ring.shared || fd < 0)
                return;
        if (!direct->jobs)
                direct->jobs = calloc(DIRECT_RING_ENTRIES, sizeof(*direct->jobs));
        if (direct->jobs)
                (void)direct_ring_adopt(&direct->ring, fd);
}

/* The last part of the answer. */
static void direct_take_bell(gpuq_client *client, int fd) {
        Direct *direct = &client->direct;
        int copy;

        if (direct->mode != DIRECT_ASKED || !direct->ring.shared || fd < 0)
                return;
        copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (copy >= 0 && loop_set_bell(&client->loop, copy) == 0)
                direct->mode = DIRECT_IDLE;
}

bool direct_answered(gpuq_client *client, const Gpuq__V1__Reply *reply, int fd) {
        switch (reply->body_case) {
                case GPUQ__V1__REPLY__BODY_DIRECT_READY:
                        direct_take_ring(client, fd);
                        return true;
                case GPUQ__V1__REPLY__BODY_DIRECT_BELL:
                        direct_take_bell(client, fd);
                        return true;
                default:
                        return false;
        }
}

/* Without a ring, for want of memory, it answers too: gpuqd waits for both answers. */
static void direct_begin(gpuq_client *client, uint32_t device) {
        Gpuq__V1__DirectBegin begin = GPUQ__V1__DIRECT_BEGIN__INIT;
        Gpuq__V1__DirectEnd end = GPUQ__V1__DIRECT_END__INIT;
        Direct *direct = &client->direct;

        if (client_send(client, GPUQ__V1__REQUEST__BODY_DIRECT_BEGIN, &begin, NULL) < 0)
                return;
        direct->device = device;
        if (direct->mode == DIRECT_IDLE)
                direct->mode = DIRECT_LENT;
        else
                (void)client_send(client, GPUQ__V1__REQUEST__BODY_DIRECT_END, &end, NULL);
        client_flush(client);
}

bool direct_told(gpuq_client *client, const Gpuq__V1__Reply *reply) {
        switch (reply->body_case) {
                case GPUQ__V1__REPLY__BODY_DIRECT_LEND:
                        direct_begin(client, reply->direct_lend->device);
                        return true;
                case GPUQ__V1__REPLY__BODY_DIRECT_RECALL:
                        direct_leave(client);
                        client_flush(client);
                        return true;
                default:
                        return false;
        }
}

void direct_leave(gpuq_client *client) {
        Gpuq__V1__DirectEnd end = GPUQ__V1__DIRECT_END__INIT;

        if (client->direct.mode != DIRECT_LENT)
                return;
        client->direct.mode = DIRECT_IDLE;
        (void)client_send(client, GPUQ__V1__REQUEST__BODY_DIRECT_END, &end, NULL);
}

/* ---- jobs ------------------------------------------------------------------------------ */

uint32_t direct_fire(gpuq_client *client, uint32_t tag, uint32_t prepared, void *job) {
        Direct *direct = &client->direct;
        uint32_t entry = direct->ring.position;
        bool is_lent;

        direct->jobs[entry % DIRECT_RING_ENTRIES] = job;
        is_lent = direct_ring_write(&direct->ring, tag, prepared);
        if (direct_ring_must_wake_reader(&direct->ring))
                direct_bell_ring(client->loop.bell_fd);
        if (!is_lent)
                direct_leave(client);
        return entry;
}

bool direct_was_taken(const gpuq_client *client, uint32_t entry) {
        const DirectEntry *at = direct_entry(client, entry);

        return __atomic_load_n(&at->taken, __ATOMIC_ACQUIRE) == at->tag;
}

void direct_forget(gpuq_client *client, uint32_t entry) {
        Direct *direct = &client->direct;
        uint32_t first = direct->first;

        direct->jobs[entry % DIRECT_RING_ENTRIES] = NULL;
        direct_ring_free(direct_ring_entry(&direct->ring, entry));
        while (first != direct->ring.position && !direct_job(client, first))
                first++;
        __atomic_store_n(&direct->first, first, __ATOMIC_RELAXED);
}
