/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_ARENAS_H
#define GPUQ_WORKER_ARENAS_H

/*
 * Arenas
 *
 * Every arena of this worker, by id. A dropped arena leaves the table at once. Its memory is freed when
 * no job uses it, at a quiesce point if CUDA would otherwise wait for running kernels.
 */

#include "worker/arena.h"

typedef struct Arenas {
        Context *context;
        Streams *streams;
        Quiesce *quiesce;
        uv_loop_t *loop;
        ArenaFunc func; /* called when an arena is ready or has failed, unless it was dropped */
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
 * arenas_add() - map a host arena or import a device arena; func is called at the end
 * @wish: where a device arena is mapped, if that is free; 0: anywhere
 * @fd: the caller's
 *
 * Return: 0, FAILURE_E_FAULT, or -ENOMEM.
 */
int arenas_add(Arenas *arenas, uint64_t id, Gpuq__V1__Place place, uint64_t size, CUdeviceptr wish,
               int fd);
/** arenas_make() - new device memory; func is called at the end. Return: as arenas_add(). */
int arenas_make(Arenas *arenas, uint64_t id, uint64_t size, CUdeviceptr wish);
/** arenas_drop() - drop an arena. */
void arenas_drop(Arenas *arenas, Arena *arena);
/** arenas_unuse() - a job that used it has ended. */
void arenas_unuse(Arena *arena);
/** arenas_poll() - check whether an arena is zeroed. Return: whether one was. */
bool arenas_poll(Arenas *arenas);

#endif
