/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_APART_H
#define GPUQ_JOBS_APART_H

/*
 * Apart
 *
 * What an operation writes while it reads something else must not overlap with that. Two buffers can be slices of one, and
 * a prepared job can be fired with others, so the job keeps what has to be apart.
 */

#include "buffer.h"

/* A part of a buffer. */
typedef struct ApartSide {
        const char *name;    /* of the argument, for texts */
        gpuq_buffer *buffer; /* a reference, where it is kept */
        uint64_t offset;     /* into the buffer, bytes */
        uint64_t length;     /* bytes */
} ApartSide;

typedef struct ApartPair {
        const char *operation; /* for texts */
        ApartSide sides[2];
        bool may_be_same; /* they may be the same part of the same memory, but not overlap otherwise */
} ApartPair;

typedef struct ApartPairs {
        ApartPair *pairs;
        size_t n_pairs;
} ApartPairs;

/** apart_whole() - all of a buffer. */
static inline ApartSide apart_whole(const char *name, gpuq_buffer *buffer) {
        return (ApartSide){.name = name, .buffer = buffer, .length = buffer->size};
}
/**
 * apart_keep() - check two sides, and keep them for jobs with other buffers
 *
 * Return: 0; GPUQ_E_INVALID, if they overlap; GPUQ_E_SYSTEM.
 */
int apart_keep(ApartPairs *pairs, const ApartPair *pair);
/** apart_keep_all() - those of a job in @pairs, which has none. Return: 0, or GPUQ_E_SYSTEM. */
int apart_keep_all(ApartPairs *pairs, const ApartPairs *from);
/** apart_forget() - all but the first @n_pairs, and their references. */
void apart_forget(ApartPairs *pairs, size_t n_pairs);
/**
 * apart_check() - check all pairs where some buffers are replaced
 * @uses: the buffers that the pairs were kept for
 * @now: what each of them is replaced by
 *
 * Return: 0, or GPUQ_E_INVALID.
 */
int apart_check(const ApartPairs *pairs, const BufferUse *uses, gpuq_buffer *const *now,
                size_t n_buffers);

#endif
