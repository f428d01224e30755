/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PROTO_DIRECT_RING_H
#define GPUQ_PROTO_DIRECT_RING_H

/*
 * Direct ring
 *
 * Memory that a client, gpuqd and a worker map, in which the client fires prepared jobs (PROTOCOL.md, section 9). One
 * entry is one job: the client writes it, its reader takes it, and when the job is done the worker writes the job's tag
 * behind it. The entry is free again when the client has seen that.
 *
 *     written by the client         tag, prepared      n_written
 *     by the reader                                    n_taken, last_tag
 *     by the worker                 taken, done, times
 *     by gpuqd                                         is_lent
 *
 * gpuqd lends the ring to a worker, which then is its reader; else gpuqd is. Readers trust nothing in it: what a client
 * writes there harms its own jobs alone.
 *
 * A side that is about to sleep sets its flag in the ring and checks the ring once more. A side that has written checks
 * the other side's flag, and rings its bell, a socket, if that is set.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIRECT_RING_ENTRIES 512u /* jobs at once, a power of two */

/* A cache line. */
typedef struct DirectEntry {
        uint32_t tag; /* of the job; 0: free, or its end was seen */
        uint32_t prepared;
        uint32_t done;              /* the tag, once the job is done */
        uint32_t waited_us, ran_us; /* valid then */
        uint32_t taken;             /* the tag, once a worker has taken the job */
        uint32_t _padding[10];
} DirectEntry;

typedef struct DirectShared {
        uint32_t is_lent;
        uint32_t _padding_lent[15];
        uint32_t n_written; /* entries, modulo 2^32 */
        uint32_t client_sleeps;
        uint32_t _padding_written[14];
        uint32_t n_taken;  /* entries, modulo 2^32 */
        uint32_t last_tag; /* of those */
        uint32_t reader_sleeps;
        uint32_t _padding_taken[13];
        DirectEntry entries[DIRECT_RING_ENTRIES];
} DirectShared;

/* Zeroed: there is none. */
typedef struct DirectRing {
        DirectShared *shared;
        uint32_t position; /* of the client: entries written; of a reader: entries taken */
} DirectRing;

/** direct_ring_bytes() - of its memory. */
size_t direct_ring_bytes(void);
/** direct_ring_make() - new memory. Return: 0 and its descriptor, the caller's, or a negative errno. */
int direct_ring_make(DirectRing *ring, int *ret_fd);
/** direct_ring_adopt() - map memory that gpuqd made; @fd stays the caller's. Return: 0, or a negative errno: -EINVAL: it is not such memory. */
int direct_ring_adopt(DirectRing *ring, int fd);
/** direct_ring_release() - unmap it; a zeroed ring is fine. */
void direct_ring_release(DirectRing *ring);

static inline DirectEntry *direct_ring_entry(const DirectRing *ring, uint32_t index) {
        return &ring->shared->entries[index % DIRECT_RING_ENTRIES];
}

/* ---- the client ---------------------------------------------------------------- */

/** direct_ring_has_room() - whether the next entry is free. */
static inline bool direct_ring_has_room(const DirectRing *ring) {
        return __atomic_load_n(&direct_ring_entry(ring, ring->position)->tag, __ATOMIC_RELAXED) ==
               0;
}

/**
 * direct_ring_write() - fire a job; there must be room
 *
 * Return: false: the ring was not lent at the end, so nobody may read it: tell gpuqd.
 */
bool direct_ring_write(DirectRing *ring, uint32_t tag, uint32_t prepared);
/** direct_ring_is_done() - the job of this entry. */
static inline bool direct_ring_is_done(const DirectEntry *entry, uint32_t tag) {
        return __atomic_load_n(&entry->done, __ATOMIC_ACQUIRE) == tag;
}
/** direct_ring_free() - the end of the entry's job was seen. */
static inline void direct_ring_free(DirectEntry *entry) {
        __atomic_store_n(&entry->tag, 0, __ATOMIC_RELEASE);
}
/** direct_ring_has_end() - whether one of the entries from @first on is done, and its end not seen yet. */
bool direct_ring_has_end(const DirectRing *ring, uint32_t first);
/** direct_ring_doze() - the client will sleep. Return: false: one of the entries from @first on has ended: do not. */
bool direct_ring_doze(DirectRing *ring, uint32_t first);
/** direct_ring_rouse() - it does not sleep any more. */
void direct_ring_rouse(DirectRing *ring);
/** direct_ring_must_wake_reader() - asked after writing. Clears it. */
bool direct_ring_must_wake_reader(DirectRing *ring);

/* ---- gpuqd ------------------------------------------------------------------------ */

/** direct_ring_lend() - the client may write from now on; false: it may not, and notices at its next write. */
void direct_ring_lend(DirectRing *ring, bool is_lent);

/* ---- the reader -------------------------------------------------------------------- */

/** direct_ring_look() - whether there is an entry to take, and a copy of it. */
static inline bool direct_ring_look(const DirectRing *ring, uint32_t *ret_tag,
                                    uint32_t *ret_prepared) {
        const DirectEntry *entry = direct_ring_entry(ring, ring->position);

        if (__atomic_load_n(&ring->shared->n_written, __ATOMIC_ACQUIRE) == ring->position)
                return false;
        *ret_tag = __atomic_load_n(&entry->tag, __ATOMIC_RELAXED);
        *ret_prepared = __atomic_load_n(&entry->prepared, __ATOMIC_RELAXED);
        return true;
}
/** direct_ring_begin() - the worker: the job of the entry that comes next may begin; before direct_ring_take(). */
static inline void direct_ring_begin(const DirectRing *ring, uint32_t tag) {
        __atomic_store_n(&direct_ring_entry(ring, ring->position)->taken, tag, __ATOMIC_RELEASE);
}
/** direct_ring_take() - the entry is taken. */
static inline void direct_ring_take(DirectRing *ring, uint32_t tag) {
        __atomic_store_n(&ring->shared->last_tag, tag, __ATOMIC_RELAXED);
        __atomic_store_n(&ring->shared->n_taken, ++ring->position, __ATOMIC_RELEASE);
}
/** direct_ring_end() - the worker: the entry's job, whose tag that was, is done. */
void direct_ring_end(DirectRing *ring, uint32_t index, uint32_t tag, uint32_t waited_us,
                     uint32_t ran_us);
/** direct_ring_must_wake_client() - asked after ends. Clears it. */
bool direct_ring_must_wake_client(DirectRing *ring);
/** direct_ring_sleep() - the reader will sleep. Return: false: there is an entry: do not. */
bool direct_ring_sleep(DirectRing *ring);
/** direct_ring_wake() - it does not sleep any more. */
void direct_ring_wake(DirectRing *ring);

/* ---- bells --------------------------------------------------------------------------- */

/** direct_bell_make() - for both sides. Return: 0, or a negative errno. */
int direct_bell_make(int ret_fds[static 2]);
/** direct_bell_ring() - wake the other side; never blocks. */
void direct_bell_ring(int fd);
/** direct_bell_hear() - forget the rings so far. Return: false: the other side has closed it. */
bool direct_bell_hear(int fd);

#endif
