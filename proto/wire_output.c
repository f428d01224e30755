/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wire: output
 *
 * One buffer, with the stream position at which each descriptor is sent. A descriptor starts a
 * sendmsg() of its own, because the kernel delivers it with the first byte of that call. With a
 * ring it is still one stream: from a certain position on, its bytes go into the ring.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/pass.h"
#include "proto/wire_state.h"

#define WIRE_FDS_OUT_MAX 256u /* descriptors waiting for a peer that does not read */

static ssize_t wire_pass(Wire *wire, const void *data, size_t n_bytes, const int *fd) {
        ssize_t n;

        n = pass_send(wire->fd, data, n_bytes, fd, fd != NULL);
        if (fd)
                wire->is_refused = n == -ETOOMANYREFS;
        if (n >= 0)
                unread_note(&wire->unread, fd != NULL);
        return n;
}

/* An empty frame that wakes a sleeping peer; with @fd, the descriptor of the next frame in the
 * ring. */
int wire_send_bell(Wire *wire, int fd) {
        const uint8_t bell[WIRE_HEADER_BYTES] = {[4] = fd >= 0};
        ssize_t n;

        n = wire_pass(wire, bell, sizeof(bell), fd >= 0 ? &fd : NULL);
        return n < 0 ? (int)n : 0;
}

static int wire_queue_fd(Wire *wire, int fd) {
        WireFd *fds = wire->fds_out;
        int copy;

        if (wire->n_fds_out == wire->capacity_fds_out) {
                unsigned capacity = wire->capacity_fds_out ? 2 * wire->capacity_fds_out : 4;

                fds = realloc(fds, capacity * sizeof(*fds));
                if (!fds)
                        return -ENOMEM;
                wire->fds_out = fds;
                wire->capacity_fds_out = capacity;
        }

        copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (copy < 0)
                return -errno;

        fds[wire->n_fds_out++] = (WireFd){
                .position = wire->position + wire_buffer_used(&wire->output),
                .fd = copy,
        };
        return 0;
}

int wire_begin(Wire *wire, size_t n_max, uint8_t **ret_payload) {
        size_t n_bytes = WIRE_HEADER_BYTES + n_max;
        int r;

        if (n_max == 0 || n_max > WIRE_FRAME_MAX)
                return -EMSGSIZE;
        if (wire_buffer_used(&wire->output) + n_bytes > wire->output_max)
                return WIRE_E_OVERFLOW;

        r = wire_buffer_reserve(&wire->output, n_bytes);
        if (r < 0)
                return r;

        *ret_payload = wire->output.data + wire->output.end + WIRE_HEADER_BYTES;
        return 0;
}

int wire_attach(Wire *wire, int fd) {
        return wire->n_fds_out < WIRE_FDS_OUT_MAX ? wire_queue_fd(wire, fd) : WIRE_E_OVERFLOW;
}

/* The next frame has a descriptor. */
static bool wire_is_attached(const Wire *wire) {
        return wire->n_fds_out && wire->fds_out[wire->n_fds_out - 1].position ==
                                          wire->position + wire_buffer_used(&wire->output);
}

void wire_end(Wire *wire, size_t n_bytes) {
        memcpy(wire->output.data + wire->output.end,
               (uint8_t[WIRE_HEADER_BYTES]){n_bytes, n_bytes >> 8, n_bytes >> 16, n_bytes >> 24,
                                            wire_is_attached(wire)},
               WIRE_HEADER_BYTES);
        wire_buffer_extend(&wire->output, WIRE_HEADER_BYTES + n_bytes);
}

int wire_queue(Wire *wire, const ProtobufCMessage *message, int fd) {
        size_t length = protobuf_c_message_get_packed_size(message);
        uint8_t *payload;
        int r;

        r = wire_begin(wire, length, &payload);
        if (r == 0 && fd >= 0)
                r = wire_attach(wire, fd);
        if (r != 0)
                return r;

        protobuf_c_message_pack(message, payload);
        wire_end(wire, length);
        return 0;
}

static void wire_pop_fd(Wire *wire) {
        close(wire->fds_out[0].fd);
        memmove(wire->fds_out, wire->fds_out + 1, --wire->n_fds_out * sizeof(WireFd));
}

/* One sendmsg(): the bytes up to the next descriptor's frame, with the descriptor that belongs
 * here. */
static ssize_t wire_send_some(Wire *wire) {
        bool with_fd = wire->n_fds_out && wire->fds_out[0].position == wire->position;
        size_t n_bytes = wire_buffer_used(&wire->output);
        ssize_t n;

        if (with_fd < wire->n_fds_out)
                n_bytes = wire->fds_out[with_fd].position - wire->position;
        if (wire->position + n_bytes > wire->ring_from)
                n_bytes = wire->ring_from - wire->position;

        n = wire_pass(wire, wire->output.data + wire->output.start, n_bytes,
                      with_fd ? &wire->fds_out[0].fd : NULL);
        if (n >= 0 && with_fd)
                wire_pop_fd(wire);
        return n;
}

static int wire_put_fd(Wire *wire) {
        int r;

        r = wire_send_bell(wire, wire->fds_out[0].fd);
        wire->is_socket_full = r == -EAGAIN;
        if (r == 0)
                wire_pop_fd(wire);
        return r;
}

/* Writes into the ring. A descriptor is sent on the socket first, so it is there when its frame
 * is read. */
static ssize_t wire_put_some(Wire *wire) {
        size_t n = wire_buffer_used(&wire->output);
        int r;

        if (wire->n_fds_out && wire->fds_out[0].position == wire->position) {
                r = wire_put_fd(wire);
                if (r < 0)
                        return r;
        }
        if (wire->n_fds_out && n > wire->fds_out[0].position - wire->position)
                n = wire->fds_out[0].position - wire->position;
        if (n > wire->ring.out.n_data_max)
                n = wire->ring.out.n_data_max;

        r = ring_write(&wire->ring.out, wire->output.data + wire->output.start, (uint32_t)n);
        if (r == RING_E_AGAIN)
                return -EAGAIN;
        if (r)
                return -EBADMSG;
        wire->is_unheard = true;
        return (ssize_t)n;
}

/* The peer corrupted the ring. The remaining output, which tells the peer why, is sent on the
 * socket. */
static int wire_leave_ring(Wire *wire) {
        size_t n = wire->ring_from > wire->position ? wire->ring_from - wire->position : 0;

        wire->output.end = wire->output.start + n;
        wire->ring_from = UINT64_MAX;
        while (wire->n_fds_out)
                wire_pop_fd(wire);
        wire->is_refused = false;
        return wire_fail(wire, "a ring with invalid indices");
}

static int wire_ring_peer(Wire *wire) {
        if (!wire->is_unheard)
                return 0;
        wire->is_unheard = false;
        return ring_needs_bell(&wire->ring.out) ? wire_send_bell(wire, -1) : 0;
}

/* Return: 0, or what wire_flush() returns after this error of a write. */
static int wire_judge(Wire *wire, ssize_t n) {
        if (n >= 0)
                return 0;
        if (n == -EAGAIN || n == -ETOOMANYREFS)
                return WIRE_E_AGAIN;
        if (n == -EPIPE || n == -ECONNRESET || n == -ENOTCONN)
                return WIRE_E_CLOSED;
        if (n == -EBADMSG)
                return wire_leave_ring(wire);
        return (int)n;
}

static int wire_write(Wire *wire) {
        int r;

        while (wire_buffer_used(&wire->output)) {
                bool by_ring = wire->position >= wire->ring_from;
                ssize_t n;

                wire->is_socket_full = !by_ring;
                n = by_ring ? wire_put_some(wire) : wire_send_some(wire);
                r = wire_judge(wire, n);
                if (r)
                        return r;
                wire->output.start += (size_t)n;
                wire->position += (size_t)n;
        }

        wire->is_socket_full = false;
        wire_buffer_trim(&wire->output);
        return 0;
}

int wire_flush(Wire *wire) {
        int r, rung;

        r = wire_write(wire);
        rung = wire_judge(wire, wire_ring_peer(wire));
        return rung && rung != WIRE_E_AGAIN ? rung : r; /* a full socket wakes the peer by itself */
}

bool wire_is_refused(const Wire *wire) {
        return wire->is_refused;
}

bool wire_wants_socket(const Wire *wire) {
        return wire_buffer_used(&wire->output) && !wire->is_refused &&
               (wire->ring_from == UINT64_MAX || wire->is_socket_full ||
                wire->position < wire->ring_from);
}

size_t wire_pending(const Wire *wire) {
        return wire_buffer_used(&wire->output);
}
