/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WIRE_H
#define GPUQ_WIRE_H

/*
 * Wire
 *
 * One end of a stream socket that carries frames: the 8-byte header of
 * PROTOCOL.md, then a packed protobuf message, with at most one descriptor.
 * Buffers both ways, never blocks, knows no message. Used by the supervisor's
 * sessions and by libgpuq alike.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#define WIRE_HEADER_BYTES 8u
#define WIRE_FRAME_MAX    (4u << 20) /* payload, after the handshake */
#define WIRE_HELLO_MAX    4096u      /* payload, before it */
#define WIRE_OUTPUT_MAX   (8u << 20) /* bytes waiting for a peer that does not read */

enum {
        _WIRE_E_SUCCESS,
        WIRE_E_AGAIN,  /* no whole frame yet, or the socket is full */
        WIRE_E_CLOSED, /* the peer closed, cleanly, between frames */
        WIRE_E_PROTOCOL, /* too long, cut short, reserved bytes set, a descriptor where none belongs */
        WIRE_E_OVERFLOW, /* more than the output limit would wait */
};

typedef struct Wire Wire;

typedef struct WireFrame {
        const uint8_t *data; /* valid until the next wire_next() or wire_receive() */
        size_t n_data;
        int fd; /* -1, or the caller's to close */
} WireFrame;

/**
 * wire_new() - take a connected stream socket
 * @fd:         non-blocking, consumed on success
 * @accept_fds: false: a descriptor from the peer is closed and ends the connection
 *
 * Return: 0, or -ENOMEM.
 */
int wire_new(int fd, bool accept_fds, Wire **ret_wire);
/** wire_free() - close the socket and every descriptor that waits; NULL is fine. Return: NULL. */
Wire *wire_free(Wire *wire);

/** wire_fd() - the socket, for polling. */
int wire_fd(const Wire *wire);
/** wire_set_frame_max() - the largest payload to accept, in bytes; WIRE_HELLO_MAX at first. */
void wire_set_frame_max(Wire *wire, size_t max);
/** wire_set_output_max() - the output limit in bytes; WIRE_OUTPUT_MAX at first. */
void wire_set_output_max(Wire *wire, size_t max);

/**
 * wire_receive() - read what the socket has, without blocking
 *
 * Call wire_next() until it says WIRE_E_AGAIN, then this again when readable.
 *
 * Return: 0 if bytes came, WIRE_E_AGAIN, WIRE_E_CLOSED, WIRE_E_PROTOCOL (see
 * wire_problem()), or a negative errno.
 */
int wire_receive(Wire *wire);
/**
 * wire_next() - the next whole frame
 *
 * Return: 0, WIRE_E_AGAIN, or WIRE_E_PROTOCOL.
 */
int wire_next(Wire *wire, WireFrame *ret_frame);
/** wire_problem() - what was wrong, after WIRE_E_PROTOCOL; a string constant. */
const char *wire_problem(const Wire *wire);

/**
 * wire_queue() - pack a message behind what already waits
 * @fd: -1, or a descriptor to send with it; duplicated, the caller keeps its own
 *
 * Return: 0, WIRE_E_OVERFLOW, or a negative errno. Nothing is queued then.
 */
int wire_queue(Wire *wire, const ProtobufCMessage *message, int fd);
/**
 * wire_flush() - write as much as the socket takes
 *
 * Return: 0 when nothing waits any more, WIRE_E_AGAIN when to call again once
 * writable, WIRE_E_CLOSED when the peer is gone, or a negative errno.
 */
int wire_flush(Wire *wire);
/** wire_pending() - bytes that wait to be written. */
size_t wire_pending(const Wire *wire);
/** wire_buffered() - bytes of memory held for input and output; more than waits, until a buffer is empty. */
size_t wire_buffered(const Wire *wire);
/** wire_drop_input() - forget what was received; frames are invalid, and none may be asked for again. */
void wire_drop_input(Wire *wire);

#endif
