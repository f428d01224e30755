/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_MEMORY_ARENA_H
#define GPUQ_MEMORY_ARENA_H

/*
 * Arena
 *
 * Memory that the daemon created for this session, or for another session of the same user, which
 * is opened by id.
 */

#include "client.h"
#include "space.h"

#define ARENA_HOST (-1) /* as a device: host memory */
#define ARENA_ANY  (-2) /* as a device: some device, the daemon chooses */

typedef struct Arena {
        uint64_t id;
        TAILQ_ENTRY(Arena) arenas; /* memory->arenas or memory->spares */
        uint64_t size;
        int device;       /* index, or ARENA_HOST */
        uint8_t *data;    /* NULL: device memory */
        uint64_t address; /* of device memory, as kernels see it; 0: it has no fixed one */
        size_t n_buffers;
        int64_t spare_since_us; /* of a spare arena */
        Space space;            /* of an arena that this session created: which parts are in use */
        bool ours;
        bool shared; /* used for small buffers */
} Arena;

/* Of one client. */
typedef struct Memory {
        TAILQ_HEAD(, Arena) arenas;
        TAILQ_HEAD(, Arena) spares; /* arenas without buffers, see spare.h */
        unsigned n_spares;
        uint64_t n_spare_bytes;
        int64_t spares_due_us; /* when the first of them expires; 0: there is none */
        /* Both come before the client's. To make device memory may take as long as there is no device. */
        pthread_mutex_t lock;        /* one thread at a time makes a host arena, or opens one */
        pthread_mutex_t device_lock; /* one thread at a time makes an arena of a device */
} Memory;

/**
 * arena_create() - a new one, in the client's list
 * @device: index, ARENA_HOST or ARENA_ANY
 *
 * This and the next two give up the lock to ask the daemon. Return: 0, or a GPUQ_E_.
 */
int arena_create(gpuq_client *client, uint64_t size, int device, Arena **ret_arena);
/** arena_open() - another session's arena; it may be open already. */
int arena_open(gpuq_client *client, uint64_t id, Arena **ret_arena);
/** arena_create_image() - a memfd for a module's image. The descriptor is the caller's. */
int arena_create_image(gpuq_client *client, uint64_t size, uint64_t *ret_id, int *ret_fd);
/** arena_close() - tell the daemon, which does not reply. */
void arena_close(gpuq_client *client, uint64_t id);
/** arena_end() - close and free an arena that is in no list. */
void arena_end(gpuq_client *client, Arena *arena);
/** arena_unmap() - unmap it; a second call does nothing. */
void arena_unmap(Arena *arena);
/** arenas_free() - of a client without references. */
void arenas_free(gpuq_client *client);

#endif
