/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/ptx/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#define CHUNK_BYTES (64u << 10)
#define GROW_FIRST  4u /* elements, a power of two */

typedef struct Chunk {
        struct Chunk *next;
        size_t n, size;
        alignas(max_align_t) char bytes[];
} Chunk;

struct Arena {
        Chunk *chunks; /* the first is the one in use */
};

int arena_new(Arena **ret_arena) {
        Arena *arena = calloc(1, sizeof(*arena));

        if (!arena)
                return -ENOMEM;

        *ret_arena = arena;
        return 0;
}

Arena *arena_free(Arena *arena) {
        if (!arena)
                return NULL;

        while (arena->chunks) {
                Chunk *chunk = arena->chunks;

                arena->chunks = chunk->next;
                free(chunk);
        }
        free(arena);
        return NULL;
}

static Chunk *add_chunk(Arena *arena, size_t size) {
        size_t n_bytes = MAX(size, CHUNK_BYTES);
        Chunk *chunk = calloc(1, sizeof(*chunk) + n_bytes);

        if (!chunk)
                return NULL;

        chunk->size = n_bytes;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        return chunk;
}

void *arena_take(Arena *arena, size_t size) {
        size_t rounded =
                (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
        Chunk *chunk = arena->chunks;
        void *bytes;

        if (rounded < size || rounded > SIZE_MAX / 2)
                return NULL;
        if (!chunk || chunk->size - chunk->n < rounded)
                chunk = add_chunk(arena, rounded);
        if (!chunk)
                return NULL;

        bytes = chunk->bytes + chunk->n;
        chunk->n += rounded;
        return bytes;
}

char *arena_text(Arena *arena, const char *s, size_t n) {
        char *text = arena_take(arena, n + 1);

        if (text)
                memcpy(text, s, n);
        return text;
}

int arena_grow(Arena *arena, void *array, size_t n, size_t size) {
        void **old = array;
        void *bigger;

        if (n && (n < GROW_FIRST || n & (n - 1)))
                return 0;

        bigger = arena_take(arena, (n ? n * 2 : GROW_FIRST) * size);
        if (!bigger)
                return -ENOMEM;

        if (n)
                memcpy(bigger, *old, n * size);
        *old = bigger;
        return 0;
}
