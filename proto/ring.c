/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring
 *
 * Free-running 32-bit positions. A record is a 4-byte length, the bytes, and padding to 8, and may
 * wrap. If a ring is empty far from its start, a skip record rewinds it, so that light traffic
 * touches only its first part and the rest of the memory stays unallocated.
 *
 * The two sleep flags (the consumer sleeps, the producer waits for space) and the index that the
 * other side reads are written and read with sequential consistency. Each side writes its own flag
 * or index, then reads the other's, so at least one of them sees the other's and no wake-up is
 * lost.
 */

#include "proto/ring.h"

#include <stdatomic.h>
#include <string.h>

#define RING_ALIGN  8u
#define RING_HEADER 4u
#define RING_SKIP   UINT32_MAX /* in place of a length: go on at the start of the ring */
#define RING_REWIND 4096u      /* rewind from this offset on, or from an eighth of a larger ring */

struct RingShared {
        _Alignas(64) _Atomic uint32_t head;     /* the producer's position */
        _Alignas(64) _Atomic uint32_t tail;     /* the consumer's position */
        _Alignas(64) _Atomic uint32_t sleeping; /* the consumer's flag; the producer clears it */
        _Alignas(64) _Atomic uint32_t waiting;  /* the producer's flag; the consumer clears it */
        _Alignas(64) uint8_t data[];
};

size_t ring_bytes(uint32_t capacity) {
        return sizeof(RingShared) + capacity;
}

void ring_init(Ring *ring, void *memory, uint32_t capacity, RingEnd end) {
        RingShared *shared = memory;

        *ring = (Ring){
                .shared = shared,
                .capacity = capacity,
                .n_data_max = capacity - RING_HEADER,
                .position = atomic_load(end == RING_PRODUCER ? &shared->head : &shared->tail),
        };
}

static uint32_t record_bytes(uint32_t n_data) {
        return (RING_HEADER + n_data + RING_ALIGN - 1) & ~(RING_ALIGN - 1);
}

static uint32_t ring_offset(const Ring *ring, uint32_t position) {
        return position & (ring->capacity - 1);
}

static void ring_copy_in(Ring *ring, uint32_t position, const void *data, uint32_t n) {
        uint32_t offset = ring_offset(ring, position);
        uint32_t first = n < ring->capacity - offset ? n : ring->capacity - offset;

        if (!n)
                return;
        memcpy(ring->shared->data + offset, data, first);
        memcpy(ring->shared->data, (const uint8_t *)data + first, n - first);
}

static void ring_copy_out(const Ring *ring, uint32_t position, void *data, uint32_t n) {
        uint32_t offset = ring_offset(ring, position);
        uint32_t first = n < ring->capacity - offset ? n : ring->capacity - offset;

        if (!n)
                return;
        memcpy(data, ring->shared->data + offset, first);
        memcpy((uint8_t *)data + first, ring->shared->data, n - first);
}

/* Bytes between the two positions, or RING_E_CORRUPT if they cannot be that far apart. */
static int ring_distance(const Ring *ring, uint32_t ahead, uint32_t behind, uint32_t *ret) {
        uint32_t distance = ahead - behind;

        if (distance > ring->capacity || (ahead | behind) % RING_ALIGN)
                return RING_E_CORRUPT;
        *ret = distance;
        return 0;
}

int ring_room(Ring *ring, uint32_t n_data) {
        uint32_t used;
        int r;

        if (n_data > ring->n_data_max)
                return RING_E_TOO_BIG;

        r = ring_distance(ring, ring->position,
                          atomic_load_explicit(&ring->shared->tail, memory_order_acquire), &used);
        if (r)
                return r;
        if (ring->capacity - used >= record_bytes(n_data))
                return 0;

        /* Set the flag, then check again: the consumer may have read between the two. */
        atomic_store(&ring->shared->waiting, 1);
        r = ring_distance(ring, ring->position, atomic_load(&ring->shared->tail), &used);
        if (r)
                return r;
        return ring->capacity - used >= record_bytes(n_data) ? 0 : RING_E_AGAIN;
}

static uint32_t ring_rewind_from(const Ring *ring) {
        uint32_t eighth = ring->capacity / 8;

        return eighth > RING_REWIND ? eighth : RING_REWIND;
}

/* The ring is empty and far from its start: rewind if the message still fits beside the skipped
 * bytes. */
static void ring_rewind(Ring *ring, uint32_t n_bytes) {
        uint32_t tail = atomic_load_explicit(&ring->shared->tail, memory_order_acquire);
        uint32_t offset = ring_offset(ring, ring->position);
        const uint32_t skip = RING_SKIP;

        if (tail != ring->position || offset < ring_rewind_from(ring) || n_bytes > offset)
                return;

        ring_copy_in(ring, ring->position, &skip, sizeof(skip));
        ring->position += ring->capacity - offset;
}

int ring_begin(Ring *ring, uint32_t n_data) {
        int r;

        r = ring_room(ring, n_data);
        if (r)
                return r;

        ring_rewind(ring, record_bytes(n_data));
        ring_copy_in(ring, ring->position, &n_data, sizeof(n_data));
        ring->n_added = 0;
        return 0;
}

void ring_add(Ring *ring, const void *data, uint32_t n_data) {
        ring_copy_in(ring, ring->position + RING_HEADER + ring->n_added, data, n_data);
        ring->n_added += n_data;
}

void ring_end(Ring *ring) {
        ring->position += record_bytes(ring->n_added);
        atomic_store(&ring->shared->head, ring->position);
}

int ring_write(Ring *ring, const void *data, uint32_t n_data) {
        int r;

        r = ring_begin(ring, n_data);
        if (r)
                return r;

        ring_add(ring, data, n_data);
        ring_end(ring);
        return 0;
}

/* The header at our position is read once, because the other side may change it at any time. */
static int ring_read_header(Ring *ring, uint32_t available, uint32_t *ret_n_data) {
        uint32_t n_data;

        if (available < RING_ALIGN)
                return RING_E_CORRUPT;
        ring_copy_out(ring, ring->position, &n_data, sizeof(n_data));
        __asm__ volatile("" : "+r"(n_data));
        if (n_data == RING_SKIP) {
                *ret_n_data = n_data;
                return 0;
        }
        if (n_data > ring->n_data_max || record_bytes(n_data) > available)
                return RING_E_CORRUPT;
        *ret_n_data = n_data;
        return 0;
}

int ring_take(Ring *ring, void *buffer, uint32_t *ret_n_data) {
        uint32_t available, n_data, skipped;
        int r;

        ring_release(ring);
        r = ring_distance(ring, atomic_load_explicit(&ring->shared->head, memory_order_acquire),
                          ring->position, &available);
        if (r)
                return r;
        if (available == 0)
                return RING_E_AGAIN;

        r = ring_read_header(ring, available, &n_data);
        if (r)
                return r;
        if (n_data == RING_SKIP) {
                skipped = ring->capacity - ring_offset(ring, ring->position);
                if (skipped >= available)
                        return RING_E_CORRUPT; /* a skip comes together with a message */
                ring->position += skipped;
                r = ring_read_header(ring, available - skipped, &n_data);
                if (r || n_data == RING_SKIP)
                        return RING_E_CORRUPT;
        }

        ring_copy_out(ring, ring->position + RING_HEADER, buffer, n_data);
        ring->position += record_bytes(n_data);
        *ret_n_data = n_data;
        return 0;
}

/* From now on the producer may overwrite the message. */
void ring_release(Ring *ring) {
        if (atomic_load_explicit(&ring->shared->tail, memory_order_relaxed) != ring->position)
                atomic_store(&ring->shared->tail, ring->position);
}

int ring_read(Ring *ring, void *buffer, uint32_t *ret_n_data) {
        int r;

        r = ring_take(ring, buffer, ret_n_data);
        if (r == 0)
                ring_release(ring);
        return r;
}

bool ring_has_passed(const Ring *ring, uint32_t position) {
        uint32_t tail = atomic_load_explicit(&ring->shared->tail, memory_order_acquire);

        return (int32_t)(tail - position) >= 0; /* positions go round after 2^32 */
}

bool ring_is_empty(const Ring *ring) {
        return atomic_load_explicit(&ring->shared->head, memory_order_acquire) == ring->position;
}

bool ring_sleep(Ring *ring) {
        ring_release(ring);
        atomic_store(&ring->shared->sleeping, 1);
        if (atomic_load(&ring->shared->head) == ring->position)
                return true;

        ring_wake(ring);
        return false;
}

void ring_wake(Ring *ring) {
        atomic_store_explicit(&ring->shared->sleeping, 0, memory_order_relaxed);
}

bool ring_is_watched(const Ring *ring) {
        return !atomic_load_explicit(&ring->shared->sleeping, memory_order_relaxed);
}

bool ring_needs_bell(Ring *ring) {
        return atomic_load(&ring->shared->sleeping) && atomic_exchange(&ring->shared->sleeping, 0);
}

bool ring_has_waiter(Ring *ring) {
        return atomic_load(&ring->shared->waiting) && atomic_exchange(&ring->shared->waiting, 0);
}

void ring_wait(Ring *ring) {
        atomic_store(&ring->shared->waiting, 1);
}
