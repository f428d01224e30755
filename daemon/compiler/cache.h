/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_CACHE_H
#define GPUQ_COMPILER_CACHE_H

/*
 * Cache
 *
 * Results of earlier compiles, a file each, in a folder of one user. A file is
 * written under another name and renamed, and carries its key and a checksum: a
 * damaged one is a miss. The least recently used go when there are too many bytes.
 */

#include <stddef.h>
#include <stdint.h>

#include "compiler/request.h"

#define CACHE_KEY_BYTES 32u /* SHA-256 */
#define CACHE_BYTES_MAX (512u << 20)

typedef struct CacheKey {
        uint8_t bytes[CACHE_KEY_BYTES];
} CacheKey;

/**
 * cache_key() - of a request: its image, format, options and target, and which
 *               compilers and headers are on this machine
 *
 * Return: 0 or a negative errno.
 */
int cache_key(const Request *request, CacheKey *ret_key);
/** cache_get() - @ret_data: the caller's. Return: 0, -ENOENT, or another negative errno. */
int cache_get(const char *dir, const CacheKey *key, void **ret_data, size_t *ret_n_data);
/**
 * cache_put() - keep a result, then remove what is over @n_bytes_max
 *
 * Return: 0 or a negative errno; nothing is half written then.
 */
int cache_put(const char *dir, const CacheKey *key, const void *data, size_t n_data,
              size_t n_bytes_max);

#endif
