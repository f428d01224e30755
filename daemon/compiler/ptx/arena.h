/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PTX_ARENA_H
#define GPUQ_PTX_ARENA_H

/*
 * Arena
 *
 * Memory that is freed all at once, for the objects of a module.
 */

#include <stddef.h>

#include "util/macro.h"

typedef struct Arena Arena;

/** arena_new() - Return: 0 or -ENOMEM. */
int arena_new(Arena **ret_arena);
/** arena_free() - with everything taken from it; NULL is fine. Return: NULL. */
Arena *arena_free(Arena *arena);
DEFINE_CLEANUP(Arena, arena_free)

/** arena_take() - @size zero bytes. Return: NULL if there is no memory. */
void *arena_take(Arena *arena, size_t size);
/** arena_text() - a copy with a zero byte behind it. Return: NULL if there is no memory. */
char *arena_text(Arena *arena, const char *s, size_t n);
/**
 * arena_grow() - make room for one more element, in steps of powers of two
 * @array: where the array's pointer is, NULL at first
 * @n: how many it has; @size: of one
 *
 * Return: 0 or -ENOMEM.
 */
int arena_grow(Arena *arena, void *array, size_t n, size_t size);

#endif
