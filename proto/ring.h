/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PROTO_RING_H
#define GPUQ_PROTO_RING_H

/*
 * Ring
 *
 * One producer, one consumer, messages of bytes, in memory that both map. The other side is not
 * trusted: every index read from the shared memory is checked, and a message is copied before it
 * is parsed. A ring has no descriptors and never sleeps; Wire and Channel add both.
 *
 * The consumer can take a message and release it later, when it has processed it. The producer can
 * ask how far the consumer has come, and so knows what is lost if the consumer dies.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        _RING_E_SUCCESS,
        RING_E_AGAIN,   /* empty, or no room */
        RING_E_CORRUPT, /* the other side wrote invalid indices */
        RING_E_TOO_BIG, /* can never fit */
};

typedef struct RingShared RingShared; /* its layout is ring.c's */

typedef enum RingEnd {
        RING_PRODUCER,
        RING_CONSUMER,
} RingEnd;

typedef struct Ring {
        RingShared *shared;
        uint32_t capacity;   /* bytes, a power of two; ours, never re-read from shared memory */
        uint32_t n_data_max; /* of one message; as much as fits, until its owner lowers it */
        uint32_t position;   /* our own index; the shared copy is only for the other side */
        uint32_t n_added;    /* bytes of the message that is being written */
} Ring;

/** ring_bytes() - bytes of shared memory for a ring of that capacity. */
size_t ring_bytes(uint32_t capacity);
/** ring_init() - attach to zeroed or already used memory at @memory (aligned to 64). */
void ring_init(Ring *ring, void *memory, uint32_t capacity, RingEnd end);

/** ring_has_passed() - asked by the producer: has the consumer released all that was before this ring->position? */
bool ring_has_passed(const Ring *ring, uint32_t position);
/** ring_room() - asked by the producer: would a message of this size fit now? Return: as
 * ring_write(). */
int ring_room(Ring *ring, uint32_t n_data);

/** ring_write() - append one message. Return: 0, RING_E_AGAIN, RING_E_TOO_BIG, RING_E_CORRUPT. */
int ring_write(Ring *ring, const void *data, uint32_t n_data);
/**
 * ring_begin() - the same in parts: a message of @n_data bytes, which ring_add() adds, up to ring_end()
 *
 * A message that is begun and not ended was never there. Return: as ring_write().
 */
int ring_begin(Ring *ring, uint32_t n_data);
/** ring_add() - the next bytes of the message; no more in all than ring_begin() was told. */
void ring_add(Ring *ring, const void *data, uint32_t n_data);
/** ring_end() - all its bytes are added. */
void ring_end(Ring *ring);
/**
 * ring_read() - copy out the next message
 * @buffer: room for ring->n_data_max bytes
 *
 * Return: 0, RING_E_AGAIN, or RING_E_CORRUPT.
 */
int ring_read(Ring *ring, void *buffer, uint32_t *ret_n_data);
/**
 * ring_take() - as ring_read(), but the message stays in the ring until it is released
 *
 * Releases the previous one. Return: as ring_read().
 */
int ring_take(Ring *ring, void *buffer, uint32_t *ret_n_data);
/** ring_release() - the message that was taken is processed: the producer may use its space. */
void ring_release(Ring *ring);

/** ring_is_empty() - asked by the consumer: is there nothing to read? */
bool ring_is_empty(const Ring *ring);
/**
 * ring_sleep() - the consumer announces that it will sleep; releases the message that was taken
 *
 * Return: false if a message arrived meanwhile: do not sleep.
 */
bool ring_sleep(Ring *ring);
/** ring_wake() - the consumer no longer sleeps. */
void ring_wake(Ring *ring);
/** ring_is_watched() - asked by the producer: has the consumer not announced that it will sleep? */
bool ring_is_watched(const Ring *ring);
/** ring_needs_bell() - asked by the producer after writing: does the consumer sleep? Clears it. */
bool ring_needs_bell(Ring *ring);

/** ring_wait() - the producer announces that it waits, as ring_write() and ring_room() do when
 * they return RING_E_AGAIN. */
void ring_wait(Ring *ring);
/** ring_has_waiter() - asked by the consumer after reading: does the producer wait? Clears it. */
bool ring_has_waiter(Ring *ring);

#endif
