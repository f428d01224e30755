/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ringing
 */

#include "ringing.h"

void ringing_init(gpuq_client *client, const Gpuq__V1__Welcome *welcome) {
        client->ringing = (Ringing){.is_offered = welcome->rings};
}

void ringing_consider(gpuq_client *client, uint64_t n_ended) {
        Gpuq__V1__RingOpen open = GPUQ__V1__RING_OPEN__INIT;

        if (!client->ringing.is_offered || client->ringing.is_asked || n_ended < RINGING_AFTER ||
            client->error != 0)
                return;

        client->ringing.is_asked = true;
        if (client_send(client, GPUQ__V1__REQUEST__BODY_RING_OPEN, &open, NULL) == 0)
                client_flush(client);
}

/* The daemon sent the memory of a ring. If it cannot be mapped, the client goes on with the
 * socket. */
static void ringing_begin(gpuq_client *client, uint32_t capacity, int fd) {
        Gpuq__V1__RingBegin begin = GPUQ__V1__RING_BEGIN__INIT;

        if (!client->ringing.is_asked || fd < 0 || wire_adopt_ring(client->wire, fd, capacity) < 0)
                return;
        if (client_send(client, GPUQ__V1__REQUEST__BODY_RING_BEGIN, &begin, NULL) < 0)
                return;

        wire_ring_output(client->wire);
        client_flush(client);
}

bool ringing_answered(gpuq_client *client, const Gpuq__V1__Reply *reply, int fd) {
        switch (reply->body_case) {
                case GPUQ__V1__REPLY__BODY_RING_READY:
                        ringing_begin(client, reply->ring_ready->capacity, fd);
                        return true;
                case GPUQ__V1__REPLY__BODY_RING_BEGUN:
                        if (wire_has_ring(client->wire))
                                wire_ring_input(client->wire);
                        return true;
                default:
                        return false;
        }
}
