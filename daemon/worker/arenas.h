/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_ARENAS_H
#define GPUQ_WORKER_ARENAS_H

/*
 * Arenas
 *
 * Every arena of this worker, by id. One that is dropped leaves the table at
 * once; its memory goes when no job uses it, at a quiesce point where CUDA would
 * otherwise make running kernels wait.
 */

#include "worker/arena.h"

typedef struct Arenas {
        Context *context;
        Streams *streams;
        Quiesce *quiesce;
        uv_loop_t *loop;
        ArenaFunc func; /* when one is ready or has failed, unless it was dropped */
        void *userdata;
        Arena *by_id;
        LIST_HEAD(, Arena) zeroing;
} Arenas;

/** arenas_init() - into zeroed @arenas. */
void arenas_init(Arenas *arenas, Context *context, Streams *streams, Quiesce *quiesce,
                 uv_loop_t *loop, ArenaFunc func, void *userdata);
/** arenas_find() - by id, or NULL. */
Arena *arenas_find(Arenas *arenas, uint64_t id);
/**
 * arenas_add() - map a host arena or import a device arena; ends in a call of func
 * @fd: the caller's
 *
 * Return: 0, FAILURE_E_FAULT, or -ENOMEM.
 */
int arenas_add(Arenas *arenas, uint64_t id, Gpuq__V1__Place place, uint64_t size, int fd);
/** arenas_make() - new device memory; ends in a call of func. Return: as arenas_add(). */
int arenas_make(Arenas *arenas, uint64_t id, uint64_t size);
/** arenas_drop() - forget one. */
void arenas_drop(Arenas *arenas, Arena *arena);
/** arenas_unuse() - by a job that has ended. */
void arenas_unuse(Arena *arena);
/** arenas_poll() - look whether one is zeroed. Return: whether there was. */
bool arenas_poll(Arenas *arenas);

#endif
