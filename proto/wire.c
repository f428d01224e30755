/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wire
 *
 * See wire.h. Input is one buffer that is compacted before each read and grows
 * with what arrives, never by what a header announces. Output is one buffer too,
 * with the stream position at which each descriptor goes: a descriptor starts a
 * sendmsg() of its own, because the kernel hands it over with the first byte of
 * that call.
 */

#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define WIRE_INPUT_KEEP                                                                            \
        (16u << 10) /* an idle connection holds at most this much, mostly untouched */
#define WIRE_INPUT_ROOM   (16u << 10) /* free bytes before each read */
#define WIRE_FDS_IN_MAX   16u         /* descriptors received ahead of their frames */
#define WIRE_FDS_OUT_MAX  256u        /* descriptors waiting for a peer that does not read */
#define WIRE_FDS_PER_READ 4u          /* one belongs; room for more only to name the mistake */

typedef struct WireBuffer {
        uint8_t *data;
        size_t start; /* first byte not used yet */
        size_t end;   /* behind the last byte */
        size_t reach; /* the highest end: what is behind it was never written and costs nothing */
        size_t capacity;
} WireBuffer;

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
        uint64_t position; /* of output.start, in all bytes ever queued */
        WireFd *fds_out;
        unsigned n_fds_out;
        unsigned capacity_fds_out;

        bool accept_fds;
};

static size_t buffer_used(const WireBuffer *buffer) {
        return buffer->end - buffer->start;
}

static void buffer_release(WireBuffer *buffer) {
        free(buffer->data);
        *buffer = (WireBuffer){};
}

static void buffer_extend(WireBuffer *buffer, size_t n) {
        buffer->end += n;
        if (buffer->end > buffer->reach)
                buffer->reach = buffer->end;
}

/* Moves what is used to the front, then doubles until @room bytes are free behind it. */
static int buffer_reserve(WireBuffer *buffer, size_t room) {
        size_t used = buffer_used(buffer), capacity = buffer->capacity;
        uint8_t *data;

        if (buffer->capacity - buffer->end >= room)
                return 0;

        if (used && buffer->start)
                memmove(buffer->data, buffer->data + buffer->start, used);
        buffer->start = 0;
        buffer->end = used;

        if (capacity < 4096)
                capacity = 4096;
        while (capacity - used < room)
                capacity *= 2;
        if (capacity == buffer->capacity)
                return 0;

        data = realloc(buffer->data, capacity);
        if (!data)
                return -ENOMEM;

        buffer->data = data;
        buffer->capacity = capacity;
        return 0;
}

int wire_new(int fd, bool accept_fds, Wire **ret_wire) {
        Wire *wire;

        wire = calloc(1, sizeof(*wire));
        if (!wire)
                return -ENOMEM;

        wire->fd = fd;
        wire->accept_fds = accept_fds;
        wire->frame_max = WIRE_HELLO_MAX;
        wire->output_max = WIRE_OUTPUT_MAX;

        *ret_wire = wire;
        return 0;
}

Wire *wire_free(Wire *wire) {
        if (!wire)
                return NULL;

        for (unsigned i = 0; i < wire->n_fds_out; i++)
                close(wire->fds_out[i].fd);
        free(wire->fds_out);
        buffer_release(&wire->output);
        for (unsigned i = 0; i < wire->n_fds_in; i++)
                close(wire->fds_in[i]);
        buffer_release(&wire->input);
        if (wire->fd >= 0)
                close(wire->fd);
        free(wire);
        return NULL;
}

int wire_fd(const Wire *wire) {
        return wire->fd;
}

void wire_set_frame_max(Wire *wire, size_t max) {
        wire->frame_max = max;
}

void wire_set_output_max(Wire *wire, size_t max) {
        wire->output_max = max;
}

const char *wire_problem(const Wire *wire) {
        return wire->problem ? wire->problem : "no problem";
}

static int wire_fail(Wire *wire, const char *problem) {
        if (!wire->problem)
                wire->problem = problem;
        return WIRE_E_PROTOCOL;
}

/* ---- input ---------------------------------------------------------------- */

/* Takes over what came beside the bytes; what does not belong is closed. */
static int wire_take_fds(Wire *wire, struct msghdr *message) {
        struct cmsghdr *cmsg;
        bool too_many = false;

        for (cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg)) {
                int fds[WIRE_FDS_PER_READ + 1];
                size_t n;

                if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
                        continue;
                n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(fds, CMSG_DATA(cmsg), n * sizeof(int));
                for (size_t i = 0; i < n; i++) {
                        if (wire->n_fds_in < WIRE_FDS_IN_MAX) {
                                wire->fds_in[wire->n_fds_in++] = fds[i];
                        } else {
                                close(fds[i]);
                                too_many = true;
                        }
                }
        }

        if (message->msg_flags & MSG_CTRUNC)
                return wire_fail(wire, wire->accept_fds
                                               ? "too many descriptors at once, or none free"
                                               : "a descriptor where none belongs");
        if (too_many)
                return wire_fail(wire, "too many descriptors");
        return 0;
}

static int wire_end_of_input(Wire *wire) {
        if (buffer_used(&wire->input))
                return wire_fail(wire, "a frame cut short");
        return WIRE_E_CLOSED;
}

int wire_receive(Wire *wire) {
        union {
                char bytes[CMSG_SPACE(WIRE_FDS_PER_READ * sizeof(int))];
                struct cmsghdr align;
        } control;
        struct iovec iov;
        /* A peer that may send none gets no control buffer: the kernel then never installs one. */
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = wire->accept_fds ? control.bytes : NULL,
                .msg_controllen = wire->accept_fds ? sizeof(control.bytes) : 0,
        };
        size_t used = buffer_used(&wire->input);
        ssize_t n;
        int r;

        if (wire->problem)
                return WIRE_E_PROTOCOL;
        if (used >= WIRE_HEADER_BYTES + wire->frame_max)
                return 0; /* a whole frame is there, or a wrong one: wire_next() first */

        r = buffer_reserve(&wire->input, used > WIRE_INPUT_ROOM ? used : WIRE_INPUT_ROOM);
        if (r < 0)
                return r;

        iov.iov_base = wire->input.data + wire->input.end;
        iov.iov_len = wire->input.capacity - wire->input.end;
        do
                n = recvmsg(wire->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
                return WIRE_E_AGAIN;
        if (n == 0 || (n < 0 && errno == ECONNRESET))
                return wire_end_of_input(wire);
        if (n < 0)
                return -errno;

        buffer_extend(&wire->input, (size_t)n);
        return wire_take_fds(wire, &message);
}

/* Nothing whole is left: descriptors belong to a frame that has begun, one at most. */
static int wire_wait_for_more(Wire *wire, unsigned n_fds_expected) {
        if (wire->n_fds_in > n_fds_expected)
                return wire_fail(wire, "a descriptor that no frame announces");
        if (!buffer_used(&wire->input) && wire->input.capacity > WIRE_INPUT_KEEP)
                buffer_release(&wire->input);
        return WIRE_E_AGAIN;
}

static int wire_check_header(Wire *wire, const uint8_t *header, size_t *ret_length) {
        size_t length = header[0] | header[1] << 8 | header[2] << 16 | (size_t)header[3] << 24;

        if (length == 0)
                return wire_fail(wire, "an empty frame");
        if (length > wire->frame_max)
                return wire_fail(wire, "a frame too long");
        if (header[5] || header[6] || header[7])
                return wire_fail(wire, "reserved bytes are not zero");
        if (header[4] > (wire->accept_fds ? 1 : 0))
                return wire_fail(wire, "a descriptor where none belongs");

        *ret_length = length;
        return 0;
}

int wire_next(Wire *wire, WireFrame *ret_frame) {
        WireBuffer *input = &wire->input;
        const uint8_t *header;
        size_t length;
        int r, fd = -1;

        if (wire->problem)
                return WIRE_E_PROTOCOL;
        if (buffer_used(input) < WIRE_HEADER_BYTES)
                return wire_wait_for_more(wire, buffer_used(input) ? 1 : 0);

        header = input->data + input->start;
        r = wire_check_header(wire, header, &length);
        if (r)
                return r;
        if (buffer_used(input) - WIRE_HEADER_BYTES < length)
                return wire_wait_for_more(wire, header[4]);

        if (header[4]) {
                if (!wire->n_fds_in)
                        return wire_fail(wire, "a descriptor is missing");
                fd = wire->fds_in[0];
                memmove(wire->fds_in, wire->fds_in + 1, --wire->n_fds_in * sizeof(int));
        }
        input->start += WIRE_HEADER_BYTES + length;

        *ret_frame = (WireFrame){
                .data = header + WIRE_HEADER_BYTES,
                .n_data = length,
                .fd = fd,
        };
        return 0;
}

/* ---- output --------------------------------------------------------------- */

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
                .position = wire->position + buffer_used(&wire->output),
                .fd = copy,
        };
        return 0;
}

int wire_queue(Wire *wire, const ProtobufCMessage *message, int fd) {
        size_t length = protobuf_c_message_get_packed_size(message);
        size_t n_bytes = WIRE_HEADER_BYTES + length;
        uint8_t *header;
        int r;

        if (length == 0 || length > WIRE_FRAME_MAX)
                return -EMSGSIZE;
        if (buffer_used(&wire->output) + n_bytes > wire->output_max)
                return WIRE_E_OVERFLOW;
        if (fd >= 0 && wire->n_fds_out >= WIRE_FDS_OUT_MAX)
                return WIRE_E_OVERFLOW;

        r = buffer_reserve(&wire->output, n_bytes);
        if (r < 0)
                return r;
        if (fd >= 0) {
                r = wire_queue_fd(wire, fd);
                if (r < 0)
                        return r;
        }

        header = wire->output.data + wire->output.end;
        memcpy(header,
               (uint8_t[WIRE_HEADER_BYTES]){length, length >> 8, length >> 16, length >> 24,
                                            fd >= 0},
               WIRE_HEADER_BYTES);
        protobuf_c_message_pack(message, header + WIRE_HEADER_BYTES);
        buffer_extend(&wire->output, n_bytes);
        return 0;
}

/* One sendmsg(): from here to the next descriptor's frame, with the one that goes here. */
static ssize_t wire_send_some(Wire *wire) {
        union {
                char bytes[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } control = {};
        struct iovec iov = {
                .iov_base = wire->output.data + wire->output.start,
                .iov_len = buffer_used(&wire->output),
        };
        struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
        unsigned next = 0;
        ssize_t n;

        if (wire->n_fds_out && wire->fds_out[0].position == wire->position) {
                struct cmsghdr *cmsg;

                message.msg_control = control.bytes;
                message.msg_controllen = sizeof(control.bytes);
                cmsg = CMSG_FIRSTHDR(&message);
                cmsg->cmsg_level = SOL_SOCKET;
                cmsg->cmsg_type = SCM_RIGHTS;
                cmsg->cmsg_len = CMSG_LEN(sizeof(int));
                memcpy(CMSG_DATA(cmsg), &wire->fds_out[0].fd, sizeof(int));
                next = 1;
        }
        if (next < wire->n_fds_out)
                iov.iov_len = wire->fds_out[next].position - wire->position;

        do
                n = sendmsg(wire->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;

        if (next) {
                close(wire->fds_out[0].fd);
                memmove(wire->fds_out, wire->fds_out + 1, --wire->n_fds_out * sizeof(WireFd));
        }
        return n;
}

int wire_flush(Wire *wire) {
        while (buffer_used(&wire->output)) {
                ssize_t n = wire_send_some(wire);

                if (n == -EAGAIN || n == -EWOULDBLOCK)
                        return WIRE_E_AGAIN;
                if (n == -EPIPE || n == -ECONNRESET || n == -ENOTCONN)
                        return WIRE_E_CLOSED;
                if (n < 0)
                        return (int)n;

                wire->output.start += (size_t)n;
                wire->position += (size_t)n;
        }

        if (wire->output.capacity > WIRE_INPUT_KEEP)
                buffer_release(&wire->output);
        else
                wire->output.start = wire->output.end = 0;
        return 0;
}

size_t wire_pending(const Wire *wire) {
        return buffer_used(&wire->output);
}

size_t wire_buffered(const Wire *wire) {
        return wire->input.reach + wire->output.reach;
}

void wire_drop_input(Wire *wire) {
        buffer_release(&wire->input);
}
