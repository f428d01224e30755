/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_CHANNEL_H
#define GPUQ_UTIL_CHANNEL_H

/*
 * Channel
 *
 * Connects the supervisor with one worker: a ring in each direction in a sealed memfd, a pair of
 * sockets as doorbells, and another for descriptors. A message is a sequence of bytes. A
 * descriptor that belongs to a message is sent on the socket before the message is written to the
 * ring, so it is there when the message is read. Messages and descriptors keep their order.
 *
 * The other side may be hostile: no call blocks, whatever it does to its descriptors. Bells are
 * not eventfds because both sides would share their flags, and either could clear O_NONBLOCK.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHANNEL_CAPACITY (8u << 20) /* bytes each way */
#define CHANNEL_N_FDS    3u

enum {
        _CHANNEL_E_SUCCESS,
        CHANNEL_E_AGAIN,   /* nothing to read, or the ring is full: try later */
        CHANNEL_E_CORRUPT, /* the other side violated the protocol: end it */
        CHANNEL_E_CLOSED,  /* the other side is gone */
};

typedef struct Channel Channel;

/**
 * channel_new() - make both ends
 * @ret_fds: the other end's descriptors, in the order that channel_adopt() takes
 *           them: memfd, bell, socket; the caller's to close
 *
 * Return: 0, or a negative errno.
 */
int channel_new(Channel **ret_channel, int ret_fds[static CHANNEL_N_FDS]);
/** channel_adopt() - the other end, from its descriptors, consumed on success. */
int channel_adopt(const int fds[static CHANNEL_N_FDS], Channel **ret_channel);
/** channel_free() - NULL is fine. Return: NULL. */
Channel *channel_free(Channel *channel);

/** channel_bell_fd() - readable when the other side rang; for polling. */
int channel_bell_fd(const Channel *channel);
/** channel_socket_fd() - hangs up (POLLHUP/EOF) when the other side is gone; for polling only. */
int channel_socket_fd(const Channel *channel);

/**
 * channel_reserve() - memory to write the next message or a part of it into, before channel_send() or channel_add()
 * @ret_data: aligned as malloc() does; valid until the next call
 *
 * Return: 0, -EMSGSIZE, or -ENOMEM.
 */
int channel_reserve(Channel *channel, size_t n_data, uint8_t **ret_data);
/**
 * channel_send() - write one message, ring if the other side sleeps
 * @fd: -1, or a descriptor to go with it; the caller keeps its own
 *
 * Return: 0, CHANNEL_E_AGAIN, CHANNEL_E_CORRUPT, CHANNEL_E_CLOSED, -EMSGSIZE, or another negative errno.
 */
int channel_send(Channel *channel, const uint8_t *data, size_t n_data, int fd);
/**
 * channel_begin() - as channel_send(), without a descriptor and in parts: a message of @n_data bytes,
 * which channel_add() adds, up to channel_end()
 *
 * A message that is begun and not ended was never there.
 */
int channel_begin(Channel *channel, size_t n_data);
/** channel_add() - the next bytes of the message; no more in all than channel_begin() was told. */
void channel_add(Channel *channel, const void *data, size_t n_data);
/** channel_end() - all its bytes are added: ring if the other side sleeps. */
void channel_end(Channel *channel);
/** channel_written() - Return: the position in the ring after the last message that was sent. */
uint32_t channel_written(const Channel *channel);
/** channel_is_dealt_with() - has the other side processed all messages before @position? See
 * channel_receive(). */
bool channel_is_dealt_with(const Channel *channel, uint32_t position);
/**
 * channel_receive() - the next message
 * @ret_data: aligned to a page; valid until the next call
 *
 * It counts as dealt with at the next call, or when the reader sleeps.
 *
 * Return: 0, CHANNEL_E_AGAIN, or CHANNEL_E_CORRUPT.
 */
int channel_receive(Channel *channel, const uint8_t **ret_data, size_t *ret_n_data);
/**
 * channel_take_fd() - the descriptor that came with the message just received
 *
 * Return: the caller's descriptor, or -1 if there is none: treat it as CHANNEL_E_CORRUPT.
 */
int channel_take_fd(Channel *channel);

/**
 * channel_sleep() - call before blocking on channel_bell_fd()
 *
 * Return: false if a message came meanwhile: read it instead of sleeping.
 */
bool channel_sleep(Channel *channel);
/** channel_is_watched() - is the other side polling, or about to read? */
bool channel_is_watched(const Channel *channel);
/** channel_wake() - call after waking: clears the bell. Return: 0, or CHANNEL_E_CLOSED: it stays readable. */
int channel_wake(Channel *channel);

#endif
