/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_MEMORY_BUFFER_H
#define GPUQ_MEMORY_BUFFER_H

/*
 * Buffer
 *
 * A slice of an arena. The user's handle, slices of it and jobs that have not ended each hold a
 * reference. When the last reference is gone, its place is free.
 */

#include "arena.h"

struct gpuq_buffer {
        unsigned refs;
        gpuq_client *client; /* a reference */
        Arena *arena;        /* counted in its n_buffers, unless this is a slice */
        Extent *extent;      /* NULL: a slice, or opened by name */
        gpuq_buffer *whole;  /* of a slice: what it is part of, a reference */
        uint64_t offset;     /* into the arena */
        uint64_t size;
        bool named; /* gpuq_buffer_get_ref() was called */
};

/* How a job uses a buffer. */
typedef struct BufferUse {
        gpuq_buffer *buffer; /* a reference */
        gpuq_direction direction;
} BufferUse;

/**
 * buffer_take() - a new buffer
 * @device: index, ARENA_HOST or ARENA_ANY
 * @clear:  as for place_take(), which gives up the lock, too
 *
 * Return: 0, or a GPUQ_E_.
 */
int buffer_take(gpuq_client *client, size_t size, int device, bool clear, gpuq_buffer **ret_buffer);
/** buffer_ref() - Return: @buffer. */
gpuq_buffer *buffer_ref(gpuq_buffer *buffer);
/** buffer_unref() - with the lock, and a reference to the client beside the buffer's own. */
void buffer_unref(gpuq_buffer *buffer);
/** buffer_is_same() - are they the same slice of the same arena? */
static inline bool buffer_is_same(const gpuq_buffer *a, const gpuq_buffer *b) {
        return a->arena == b->arena && a->offset == b->offset && a->size == b->size;
}

#endif
