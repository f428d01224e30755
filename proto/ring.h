/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PROTO_RING_H
#define GPUQ_PROTO_RING_H

/*
 * Ring
 *
 * One producer, one consumer, messages of bytes, in memory that both map. The
 * other side is not trusted: every index read from the shared memory is checked,
 * and a message is copied out before it is parsed. Knows no descriptor
 * and never sleeps; Wire and Channel add both.
 *
 * The consumer can take a message and release it later, once it is dealt with. The producer can ask
 * how far the consumer has come, and so knows what is lost if that dies.
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
} Ring;

/** ring_bytes() - bytes of shared memory for a ring of that capacity. */
size_t ring_bytes(uint32_t capacity);
/** ring_init() - attach to zeroed or already used memory at @memory (aligned to 64). */
void ring_init(Ring *ring, void *memory, uint32_t capacity, RingEnd end);

/** ring_has_passed() - asked by the producer: has the consumer released all that was before this ring->position? */
bool ring_has_passed(const Ring *ring, uint32_t position);
/** ring_room() - asked by the producer: would a message of that size go in now? Return: as ring_write(). */
int ring_room(Ring *ring, uint32_t n_data);

/** ring_write() - append one message. Return: 0, RING_E_AGAIN, RING_E_TOO_BIG, RING_E_CORRUPT. */
int ring_write(Ring *ring, const void *data, uint32_t n_data);
/**
 * ring_read() - copy out the next message
 * @buffer: room for ring->n_data_max bytes
 *
 * Return: 0, RING_E_AGAIN, or RING_E_CORRUPT.
 */
int ring_read(Ring *ring, void *buffer, uint32_t *ret_n_data);
/**
 * ring_take() - the same, but that message stays in the ring until it is released
 *
 * Releases the one before. Return: as ring_read().
 */
int ring_take(Ring *ring, void *buffer, uint32_t *ret_n_data);
/** ring_release() - what was taken is dealt with: its room is the producer's. */
void ring_release(Ring *ring);

/** ring_is_empty() - asked by the consumer: nothing to read, by one look. */
bool ring_is_empty(const Ring *ring);
/**
 * ring_sleep() - the consumer says it will sleep; releases what was taken
 *
 * Return: false if something came meanwhile, so do not sleep.
 */
bool ring_sleep(Ring *ring);
/** ring_wake() - the consumer is awake again. */
void ring_wake(Ring *ring);
/** ring_is_watched() - asked by the producer: the consumer has not said that it will sleep. */
bool ring_is_watched(const Ring *ring);
/** ring_needs_bell() - asked by the producer after writing: does the consumer sleep? Clears it. */
bool ring_needs_bell(Ring *ring);

/** ring_wait() - the producer says that it waits; RING_E_AGAIN of ring_write() and ring_room() says so too. */
void ring_wait(Ring *ring);
/** ring_has_waiter() - asked by the consumer after reading: does the producer wait? Clears it. */
bool ring_has_waiter(Ring *ring);

#endif
