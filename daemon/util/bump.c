/* SPDX-License-Identifier: Apache-2.0 */
#include "util/bump.h"

#include <stddef.h>
#include <stdlib.h>

typedef struct BumpChunk {
        struct BumpChunk *next;
        size_t size;
        size_t used;
        max_align_t data[];
} BumpChunk;

struct Bump {
        ProtobufCAllocator allocator;
        BumpChunk *chunks; /* the newest first; the last one is kept */
        size_t n_bytes;
};

/* Rarely called. If it were inlined, each call of bump_take() would save its registers. */
static __attribute__((noinline)) BumpChunk *bump_grow(Bump *bump, size_t n_min) {
        size_t size = MAX(n_min, (size_t)BUMP_CHUNK);
        BumpChunk *chunk;

        if (size > BUMP_MAX - bump->n_bytes)
                return NULL;

        chunk = malloc(sizeof(*chunk) + size);
        if (!chunk)
                return NULL;

        chunk->next = bump->chunks;
        chunk->size = size;
        chunk->used = 0;
        bump->chunks = chunk;
        bump->n_bytes += size;
        return chunk;
}

void *bump_take(Bump *bump, size_t size) {
        BumpChunk *chunk = bump->chunks;
        void *data;

        if (size > BUMP_MAX)
                return NULL;

        size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
        if (!chunk || chunk->size - chunk->used < size)
                chunk = bump_grow(bump, size);
        if (!chunk)
                return NULL;

        data = (char *)chunk->data + chunk->used;
        chunk->used += size;
        return data;
}

static void *bump_alloc(void *userdata, size_t size) {
        return bump_take(userdata, size);
}

static void bump_ignore_free(void *userdata, void *data) {
}

int bump_new(Bump **ret_bump) {
        Bump *bump;

        bump = calloc(1, sizeof(*bump));
        if (!bump)
                return -ENOMEM;

        bump->allocator = (ProtobufCAllocator){
                .alloc = bump_alloc,
                .free = bump_ignore_free,
                .allocator_data = bump,
        };
        *ret_bump = bump;
        return 0;
}

ProtobufCAllocator *bump_allocator(Bump *bump) {
        return &bump->allocator;
}

void bump_reset(Bump *bump) {
        BumpChunk *chunk;

        while ((chunk = bump->chunks) && (chunk->next || chunk->size > BUMP_CHUNK)) {
                bump->chunks = chunk->next;
                bump->n_bytes -= chunk->size;
                free(chunk);
        }
        if (chunk)
                chunk->used = 0;
}

Bump *bump_free(Bump *bump) {
        if (!bump)
                return NULL;

        bump_reset(bump);
        free(bump->chunks);
        free(bump);
        return NULL;
}
