/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_CACHE_H
#define GPUQ_COMPILER_CACHE_H

/*
 * Cache
 *
 * Results of earlier compiles, a file each, in a folder of one user, or of gpuqd for all. A file is
 * written under another name and renamed, and carries its key and a checksum: a
 * damaged one is a miss. The least recently used go before a new one is stored that
 * would be too much: for the user, or for the disk, which others use too. Only uses by
 * those who may write to the folder count.
 */

#include <stddef.h>
#include <stdint.h>

#include "compiler/request.h"

#define CACHE_KEY_BYTES 32u /* SHA-256 */
#define CACHE_DISK_PART 16u /* this part of the disk is never taken */

typedef struct CacheKey {
        uint8_t bytes[CACHE_KEY_BYTES];
} CacheKey;

/**
 * cache_key() - of a request: its image, format, options, names and target, and which
 *               compilers and headers are on this machine
 *
 * Return: 0 or a negative errno.
 */
int cache_key(const Request *request, CacheKey *ret_key);
/** cache_get() - @ret_data: the caller's. Return: 0, -ENOENT, or another negative errno. */
int cache_get(const char *dir, const CacheKey *key, void **ret_data, size_t *ret_n_data);
/** A disk, in bytes. */
typedef struct CacheDisk {
        uint64_t n_all;
        uint64_t n_free;
} CacheDisk;

/**
 * cache_most() - how large a folder of @n_own bytes may be: half of what others left free, never the
 * last of the disk, and no more than @n_bytes_max
 */
uint64_t cache_most(const CacheDisk *disk, uint64_t n_own, uint64_t n_bytes_max);
/**
 * cache_put() - remove old results, then keep this one
 * @n_bytes_max: that the folder may have
 *
 * Return: 0, -ENOSPC if there is no room for it, or another negative errno; nothing is half written then.
 */
int cache_put(const char *dir, const CacheKey *key, const void *data, size_t n_data,
              uint64_t n_bytes_max);

#endif
