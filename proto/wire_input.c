/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wire: input
 *
 * One buffer that is compacted before each read and grows with the bytes that arrive, never by
 * what a header announces. Input from the ring has a buffer of its own, because the socket may
 * carry a message between two halves of a frame: a bell, or a message of the next supervisor,
 * which has no ring yet.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "proto/pass.h"
#include "proto/wire_state.h"

#define WIRE_INPUT_ROOM   (16u << 10) /* free bytes before each read */
#define WIRE_FDS_PER_READ 4u /* one is allowed; space for more serves only to report the mistake */

/* Keeps the descriptor that came with the bytes; closes those that are not allowed. */
static int wire_take_fds(Wire *wire, const int *fds, size_t n_fds) {
        size_t n_taken = 0;

        while (n_taken < n_fds && wire->n_fds_in < WIRE_FDS_IN_MAX)
                wire->fds_in[wire->n_fds_in++] = fds[n_taken++];
        for (size_t i = n_taken; i < n_fds; i++)
                close(fds[i]);

        return n_taken < n_fds ? wire_fail(wire, "too many descriptors") : 0;
}

static int wire_end_of_input(Wire *wire) {
        wire->has_ended = true;
        if (wire_buffer_used(&wire->input))
                return wire_fail(wire, "a truncated frame");
        return WIRE_E_CLOSED;
}

static int wire_receive_socket(Wire *wire) {
        size_t used = wire_buffer_used(&wire->input), n_fds = 0;
        int fds[WIRE_FDS_PER_READ];
        ssize_t n;
        int r;

        if (wire->problem)
                return WIRE_E_PROTOCOL;
        if (used >= WIRE_HEADER_BYTES + wire->frame_max)
                return 0; /* a complete or an invalid frame is there: wire_next() first */

        r = wire_buffer_reserve(&wire->input, used > WIRE_INPUT_ROOM ? used : WIRE_INPUT_ROOM);
        if (r < 0)
                return r;

        /* If the peer may not send descriptors, the kernel installs none. */
        n = pass_receive(wire->fd, wire->input.data + wire->input.end,
                         wire->input.capacity - wire->input.end, fds,
                         wire->accept_fds ? WIRE_FDS_PER_READ : 0, &n_fds);
        if (n == -EAGAIN)
                return WIRE_E_AGAIN;
        if (n == 0 || n == -ECONNRESET)
                return wire_end_of_input(wire);
        if (n == -EBADMSG)
                return wire_fail(wire,
                                 wire->accept_fds
                                         ? "too many descriptors at once, or no free descriptor"
                                         : "an unexpected descriptor");
        if (n < 0)
                return (int)n;

        wire_buffer_extend(&wire->input, (size_t)n);
        return wire_take_fds(wire, fds, n_fds);
}

static bool wire_is_bell(const Wire *wire, const uint8_t *header) {
        static const uint8_t zero[WIRE_HEADER_BYTES];

        return !memcmp(header, zero, 4) && !memcmp(header + 5, zero, 3) &&
               header[4] <= (wire->accept_fds ? 1 : 0);
}

/* Takes the bells in front of the next frame on the socket; a bell's descriptor waits for its
 * frame. */
static void wire_skip_bells(Wire *wire) {
        WireBuffer *input = &wire->input;

        while (wire_buffer_used(input) >= WIRE_HEADER_BYTES &&
               wire_is_bell(wire, input->data + input->start))
                input->start += WIRE_HEADER_BYTES;
        if (!wire_buffer_used(input))
                wire_buffer_trim(input);
}

int wire_hear(Wire *wire) {
        int r;

        r = wire_receive_socket(wire);
        if (r == 0 && wire->is_ringed_in)
                wire_skip_bells(wire);
        return r;
}

/* Return: 0: the ring was read to its end, or up to the limit of one turn. */
static int wire_read_ring(Wire *wire) {
        int r;

        do
                r = wire_ring_read(&wire->ring, &wire->stream);
        while (r == 0 &&
               wire_buffer_used(&wire->stream) + wire->ring.in.n_data_max <= WIRE_INPUT_ROOM);

        if (r == RING_E_CORRUPT)
                return wire_fail(wire, "a ring with invalid contents");
        /* The ring is empty and is read again only after a bell: wake a producer that waits for
         * space. */
        if (ring_is_empty(&wire->ring.in) && ring_has_waiter(&wire->ring.in))
                (void)wire_send_bell(wire, -1);
        return r < 0 ? r : 0;
}

int wire_look(Wire *wire) {
        size_t used = wire_buffer_used(&wire->stream);
        int r;

        if (wire->problem)
                return WIRE_E_PROTOCOL;
        if (!wire->is_ringed_in)
                return WIRE_E_AGAIN;
        if (used >= WIRE_HEADER_BYTES + wire->frame_max)
                return 0; /* as for the socket: wire_next() first */

        r = wire_read_ring(wire);
        if (r)
                return r;
        return wire_buffer_used(&wire->stream) > used ? 0 : WIRE_E_AGAIN;
}

/* The ring's contents were written before the connection ended, so they are still read. */
int wire_receive(Wire *wire) {
        int r, heard;

        heard = wire_hear(wire);
        if (!wire->is_ringed_in || heard == WIRE_E_PROTOCOL)
                return heard;

        r = wire_look(wire);
        return r == WIRE_E_AGAIN ? heard : r;
}

/* No complete frame is left: descriptors belong to a frame that has begun, and it has at most
 * one. */
static int wire_wait_for_more(Wire *wire, WireBuffer *input, unsigned n_fds_expected) {
        if (!wire->is_ringed_in && wire->n_fds_in > n_fds_expected)
                return wire_fail(wire, "a descriptor that no frame announces");
        if (!wire_buffer_used(input) && input->capacity > WIRE_BUFFER_KEEP)
                wire_buffer_release(input);
        return WIRE_E_AGAIN;
}

static int wire_check_header(Wire *wire, const uint8_t *header, size_t *ret_length) {
        size_t length = header[0] | header[1] << 8 | header[2] << 16 | (size_t)header[3] << 24;

        if (length == 0)
                return wire_fail(wire, "an empty frame");
        if (length > wire->frame_max)
                return wire_fail(wire, "a frame that is too long");
        if (header[5] || header[6] || header[7])
                return wire_fail(wire, "reserved bytes that are not zero");
        if (header[4] > (wire->accept_fds ? 1 : 0))
                return wire_fail(wire, "an unexpected descriptor");

        *ret_length = length;
        return 0;
}

/* The descriptor was sent before the frame, on the socket, which may not have been read since. */
static int wire_take_fd(Wire *wire, int *ret_fd) {
        if (!wire->n_fds_in && wire->is_ringed_in)
                (void)wire_hear(wire);
        if (!wire->n_fds_in)
                return wire_fail(wire, "a missing descriptor");

        *ret_fd = wire->fds_in[0];
        memmove(wire->fds_in, wire->fds_in + 1, --wire->n_fds_in * sizeof(int));
        return 0;
}

static int wire_next_in(Wire *wire, WireBuffer *input, WireFrame *ret_frame) {
        const uint8_t *header;
        size_t length = 0;
        int r, fd = -1;

        if (wire_buffer_used(input) < WIRE_HEADER_BYTES)
                return wire_wait_for_more(wire, input, wire_buffer_used(input) ? 1 : 0);

        header = input->data + input->start;
        r = wire_check_header(wire, header, &length);
        if (r)
                return r;
        if (wire_buffer_used(input) - WIRE_HEADER_BYTES < length)
                return wire_wait_for_more(wire, input, header[4]);

        if (header[4]) {
                r = wire_take_fd(wire, &fd);
                if (r)
                        return r;
        }
        input->start += WIRE_HEADER_BYTES + length;

        *ret_frame = (WireFrame){
                .data = header + WIRE_HEADER_BYTES,
                .n_data = length,
                .fd = fd,
        };
        return 0;
}

void wire_put_back(Wire *wire, const WireFrame *frame) {
        WireBuffer *input = &wire->input;

        if (frame->data != input->data + input->start - frame->n_data)
                input = &wire->stream;
        input->start -= WIRE_HEADER_BYTES + frame->n_data;
}

int wire_next(Wire *wire, WireFrame *ret_frame) {
        int r;

        if (wire->problem)
                return WIRE_E_PROTOCOL;
        if (!wire->is_ringed_in)
                return wire_next_in(wire, &wire->input, ret_frame);

        r = wire_next_in(wire, &wire->stream, ret_frame);
        if (r != WIRE_E_AGAIN)
                return r;
        wire_skip_bells(wire);
        if (wire_buffer_used(&wire->input) >= WIRE_HEADER_BYTES && !wire->accept_fds)
                return wire_fail(wire, "a frame on the socket after the switch to the ring");
        return wire_next_in(wire, &wire->input, ret_frame);
}
