/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PROTO_WIRE_H
#define GPUQ_PROTO_WIRE_H

/*
 * Wire
 *
 * One end of a stream socket that carries frames: the 8-byte header of
 * PROTOCOL.md, then a packed protobuf message, with at most one descriptor.
 * Buffers both ways, never blocks, knows no message. Used by the supervisor's
 * sessions and by libgpuq alike.
 *
 * A pair of rings in shared memory may take the socket's place, one direction after
 * the other: the same bytes go there, and the socket carries bells, which are empty
 * frames, and descriptors. Then a frame needs no system call while its receiver is
 * awake; a receiver that is about to sleep calls wire_sleep() and then gets bells.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "proto/unread.h"

#define WIRE_HEADER_BYTES 8u
#define WIRE_FRAME_MAX    (4u << 20) /* payload, after the handshake */
#define WIRE_HELLO_MAX    4096u      /* payload, before it */
/* Of one Submit or Fires: the daemon decodes all of it for each part that it serves in a turn. */
#define WIRE_JOBS_MAX   256u
#define WIRE_JOBS_BYTES (64u << 10) /* payload; a single job may take more */
#define WIRE_CANCEL_MAX 4096u       /* ids in one Cancel, for the same reason */
#define WIRE_OUTPUT_MAX (8u << 20)  /* bytes waiting for a peer that does not read */

enum {
        _WIRE_E_SUCCESS,
        WIRE_E_AGAIN,    /* no whole frame yet, or the socket is full */
        WIRE_E_CLOSED,   /* the peer closed the connection between frames */
        WIRE_E_PROTOCOL, /* too long, truncated, reserved bytes set, or an unexpected descriptor */
        WIRE_E_OVERFLOW, /* the output would exceed its limit */
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
/** wire_put_back() - the frame that wire_next() gave just now, which had no descriptor, comes again next time. */
void wire_put_back(Wire *wire, const WireFrame *frame);
/** wire_has_ended() - the peer closed the connection, maybe within a frame; valid after WIRE_E_CLOSED or WIRE_E_PROTOCOL. */
bool wire_has_ended(const Wire *wire);
/** wire_problem() - what the peer sent, such as "an empty frame", after WIRE_E_PROTOCOL; a string constant. */
const char *wire_problem(const Wire *wire);

/**
 * wire_queue() - pack a message behind what already waits
 * @fd: -1, or a descriptor to send with it; duplicated, the caller keeps its own
 *
 * Return: 0, WIRE_E_OVERFLOW, or a negative errno. Nothing is queued then.
 */
int wire_queue(Wire *wire, const ProtobufCMessage *message, int fd);
/**
 * wire_begin() - room for a payload that the caller packs itself, behind what already waits
 * @ret_payload: for at most @n_max bytes, until the next call; then wire_end()
 *
 * Return: 0, WIRE_E_OVERFLOW, or a negative errno.
 */
int wire_begin(Wire *wire, size_t n_max, uint8_t **ret_payload);
/**
 * wire_attach() - send a descriptor with the payload that was begun
 * @fd: duplicated, the caller keeps its own
 *
 * Return: 0: wire_end() must follow, or the next frame takes the descriptor; WIRE_E_OVERFLOW, or a
 * negative errno: nothing is queued.
 */
int wire_attach(Wire *wire, int fd);
/** wire_end() - queue the first @n_bytes of it, at least one. */
void wire_end(Wire *wire, size_t n_bytes);
/**
 * wire_flush() - write as much as the socket takes
 *
 * Return: 0 when nothing waits any more, WIRE_E_AGAIN when to call again once
 * writable, WIRE_E_CLOSED when the peer is gone, WIRE_E_PROTOCOL when it broke the ring, or a
 * negative errno. "Once writable" is once wire_fd() is if wire_wants_socket(), else when it was rung.
 */
int wire_flush(Wire *wire);
/** wire_wants_socket() - output waits for space in the socket, not in the ring. */
bool wire_wants_socket(const Wire *wire);
/**
 * wire_is_refused() - the kernel refuses to send a descriptor, because others have not read too many of
 * this uid; wire_flush() said WIRE_E_AGAIN, and may be called again after a while
 */
bool wire_is_refused(const Wire *wire);
/** wire_pending() - bytes that wait to be written. */
size_t wire_pending(const Wire *wire);
/** wire_buffered() - bytes of memory held for input and output; more than waits, until a buffer is empty. */
size_t wire_buffered(const Wire *wire);
/** wire_unread_fds() - descriptors that wait to be written, or were and are unread: see proto/unread.h. */
unsigned wire_unread_fds(Wire *wire);
/** wire_release() - nothing is sent or received any more. Return: the socket, the caller's, with what is unread on it. */
int wire_release(Wire *wire, Unread *ret_unread);
/** wire_drop_input() - forget what was received; frames are invalid, and none may be asked for again. */
void wire_drop_input(Wire *wire);

/**
 * wire_make_ring() - memory for a ring each way, which is not used yet
 * @capacity: bytes each way, a power of two
 * @ret_fd:   the memory, for the peer; the caller's
 *
 * Return: 0, -EEXIST, or another negative errno.
 */
int wire_make_ring(Wire *wire, uint32_t capacity, int *ret_fd);
/** wire_adopt_ring() - the memory that the peer made; @fd stays the caller's. Return: as wire_make_ring(), -EINVAL: it is none. */
int wire_adopt_ring(Wire *wire, int fd, uint32_t capacity);
/** wire_has_ring() - it was made or adopted. */
bool wire_has_ring(const Wire *wire);
/** wire_ring_output() - later output goes through the ring; the last frame before it announces
 * that. */
void wire_ring_output(Wire *wire);
/** wire_ring_input() - the frame just read was the last on the socket; input now comes through
 * the ring. */
void wire_ring_input(Wire *wire);
/** wire_is_ringed() - input comes by the ring. */
bool wire_is_ringed(const Wire *wire);

/** wire_look() - as wire_receive(), but reads only the ring, without a system call. */
int wire_look(Wire *wire);
/** wire_hear() - as wire_receive(), but reads only the socket: takes bells and leaves the ring
 * as it is. */
int wire_hear(Wire *wire);
/** wire_has_input() - is there input in the ring? Another thread may write meanwhile, but none
 * may read. */
bool wire_has_input(const Wire *wire);
/** wire_sleep() - call before sleeping on wire_fd(). Return: false: something is in the ring: read it instead. */
bool wire_sleep(Wire *wire);
/** wire_wake() - call after waking: no bell is needed. */
void wire_wake(Wire *wire);

#endif
