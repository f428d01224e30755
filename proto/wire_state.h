/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PROTO_WIRE_STATE_H
#define GPUQ_PROTO_WIRE_STATE_H

/*
 * Wire state
 *
 * Private to wire.c, wire_input.c and wire_output.c.
 */

#include "proto/wire.h"
#include "proto/wire_buffer.h"
#include "proto/wire_ring.h"

#define WIRE_FDS_IN_MAX 16u /* descriptors received ahead of their frames */

typedef struct WireFd {
        uint64_t position; /* in the output stream */
        int fd;
} WireFd;

struct Wire {
        int fd;
        size_t frame_max;
        size_t output_max;
        const char *problem;

        WireBuffer input;
        int fds_in[WIRE_FDS_IN_MAX];
        unsigned n_fds_in;

        WireBuffer output;
        uint64_t position;  /* of output.start, in all bytes ever queued */
        uint64_t ring_from; /* the position from which on they go by the ring */
        WireFd *fds_out;
        unsigned n_fds_out;
        unsigned capacity_fds_out;
        Unread unread;

        WireRing ring;
        WireBuffer stream; /* what came by the ring */

        bool accept_fds;
        bool is_ringed_in;   /* frames come by the ring, the socket carries bells */
        bool is_socket_full; /* the last write ended there */
        bool is_refused;     /* the last write was refused a descriptor, though there is room */
        bool is_unheard;     /* something was put into the ring, and its reader not rung yet */
        bool has_ended;      /* the peer is gone */
};

/** wire_fail() - receive nothing more; the first problem is kept. Return: WIRE_E_PROTOCOL. */
int wire_fail(Wire *wire, const char *problem);
/** wire_send_bell() - an empty frame; @fd: -1, or a descriptor with it. Return: 0, or a negative errno. */
int wire_send_bell(Wire *wire, int fd);

#endif
