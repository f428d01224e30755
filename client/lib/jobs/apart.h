/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_APART_H
#define GPUQ_JOBS_APART_H

/*
 * Pairs of parts of buffers that must not overlap
 *
 * What an operation writes while it reads something else must be apart from that. Two buffers can be
 * slices of one, and a prepared job can be fired with others, so a job keeps its pairs.
 */

#include "buffer.h"

/* A part of a buffer: one range, or rows with gaps between them. */
typedef struct ApartSide {
        const char *name;    /* of the argument, for texts */
        gpuq_buffer *buffer; /* a reference, where it is kept */
        uint64_t offset;     /* into the buffer, bytes */
        uint64_t length;     /* from the first byte to the end of the last, gaps included */
        uint64_t pitch;      /* bytes from row to row; 0: there are no gaps */
        uint64_t width;      /* bytes of a row */
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

/**
 * apart_add() - check two sides, and keep them for jobs with other buffers
 *
 * The buffers are of the job's connection, whose lock is held. Return: 0; GPUQ_E_INVALID, if they
 * overlap; GPUQ_E_SYSTEM.
 */
int apart_add(ApartPairs *pairs, const ApartPair *pair);
/** apart_copy() - those of a job to @pairs, which has none. Return: 0, or GPUQ_E_SYSTEM. */
int apart_copy(ApartPairs *pairs, const ApartPairs *from);
/** apart_forget() - all but the first @n_pairs, and their references. */
void apart_forget(ApartPairs *pairs, size_t n_pairs);
/**
 * apart_check() - check all pairs where some buffers are replaced
 * @uses: the buffers that the pairs were kept for
 * @now: what each of them is replaced by
 * @n_buffers: of both
 *
 * Return: 0, or GPUQ_E_INVALID.
 */
int apart_check(const ApartPairs *pairs, const BufferUse *uses, gpuq_buffer *const *now,
                size_t n_buffers);

#endif
