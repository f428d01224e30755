/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_ARENA_H
#define GPUQ_WORKER_ARENA_H

/*
 * Arena
 *
 * Memory that outlives this worker, made usable here. A host arena is mapped between guard pages and
 * registered with CUDA. A device arena is created or imported, and mapped with an unmapped granule
 * behind it. A write past either end faults instead of changing a neighbour.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <uv.h>

#include "util/table.h"
#include "worker/context.h"
#include "worker/quiesce.h"
#include "worker/stream.h"

typedef enum ArenaState {
        ARENA_PREPARING, /* its pages are being populated, or zeroed */
        ARENA_READY,
        ARENA_FAILED, /* failure says why */
} ArenaState;

typedef struct Arena Arena;

/* Called in the loop's thread when an arena is ready or has failed. */
typedef void (*ArenaFunc)(Arena *arena, void *userdata);

struct Arena {
        uint64_t id;
        UT_hash_handle hh;      /* arenas->by_id */
        LIST_ENTRY(Arena) link; /* arenas->zeroing */
        struct Arenas *arenas;
        QuiesceTask task; /* frees it */
        Gpuq__V1__Place place;
        uint64_t size; /* bytes, as its users see it */
        ArenaState state;
        Failure failure;
        unsigned n_uses; /* jobs, waiting and in flight */
        bool dropped;    /* freed when it has no users */
        bool made;       /* by this worker, for others too */

        Context *context;
        Streams *streams;
        ArenaFunc func;
        void *userdata;

        size_t n_mapped; /* bytes, whole pages or granules */
        size_t n_guard;  /* bytes on each side, behind for a device arena */

        /* host */
        uint8_t *memory;
        bool registered;
        uv_work_t work; /* uses memory and n_mapped only */
        int work_error;

        CUdeviceptr address; /* as kernels see it */
        CUdeviceptr wish;    /* where all workers are to have a device arena; 0: anywhere */
        bool is_elsewhere;   /* a device arena, at an address that it reserved itself */

        /* device */
        CUmemGenericAllocationHandle handle;
        int fd; /* of an arena created here, until it is sent to the supervisor; -1 */
        Ticket zeroing;
};

/** arena_new() - an arena that is neither mapped nor created. Return: 0 or -ENOMEM. */
int arena_new(uint64_t id, Gpuq__V1__Place place, uint64_t size, Context *context, Streams *streams,
              ArenaFunc func, void *userdata, Arena **ret_arena);
/** arena_is_moved() - it is not at the address where other workers have it. */
static inline bool arena_is_moved(const Arena *arena) {
        return arena->wish != arena->address;
}
/**
 * arena_map_host() - map a memfd; a thread populates its pages before the callback
 * @fd: the caller's
 *
 * Return: 0, or FAILURE_E_SET with the arena's failure set and no callback.
 */
int arena_map_host(Arena *arena, uv_loop_t *loop, int fd);
/** arena_import() - map another worker's device memory. @fd: the caller's. Return: 0 or as result_check(). */
int arena_import(Arena *arena, int fd);
/**
 * arena_make() - new device memory; the callback follows when it is zeroed
 *
 * Return: 0, or as result_check() with the arena's failure set.
 */
int arena_make(Arena *arena);
/** arena_poll() - while the arena is being zeroed: call back when that is done. */
void arena_poll(Arena *arena);
/** arena_is_zeroing() */
static inline bool arena_is_zeroing(const Arena *arena) {
        return arena->zeroing.stream != NULL;
}
/** arena_needs_quiesce() - whether freeing it waits for running kernels. */
static inline bool arena_needs_quiesce(const Arena *arena) {
        return arena->registered;
}
/** arena_free() - not while it is being prepared; NULL is fine. Return: NULL. */
Arena *arena_free(Arena *arena);

#endif
