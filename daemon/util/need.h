/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_NEED_H
#define GPUQ_UTIL_NEED_H

/*
 * Need
 *
 * How many bytes of a buffer a built-in kernel accesses, as a function of its length arguments.
 * The head of each kernel's source states it (kernels/), and the second line of the kernel's text
 * repeats it:
 *
 *     in:A:f32:m,k in:x:f32:k out:y:f32:m u64:m u64:k
 *
 * A buffer is DIRECTION:NAME:TYPE:SHAPE. The lengths in SHAPE are names of u64 arguments, or
 * numbers. The kernel accesses as many elements as their product. libgpuq checks this when a job
 * is built, the worker when it receives the job. Pure.
 */

#include <stddef.h>
#include <stdint.h>

#define NEED_LENGTHS_MAX 3u

/* Of one parameter. */
typedef struct Need {
        uint32_t element;   /* bytes; 0: nothing is known, or the parameter is no buffer */
        uint32_t n_fixed;   /* elements: the product of the numbers in SHAPE */
        uint16_t n_lengths; /* at most NEED_LENGTHS_MAX */
        uint16_t lengths[NEED_LENGTHS_MAX]; /* parameters: u64, multiplied */
} Need;

/**
 * need_parse() - of all parameters of a kernel
 * @text: its text; "", or one in another form, tells of no needs
 * @needs: @n of them, which are all set
 *
 * Return: how many parameters have a need.
 */
size_t need_parse(const char *text, Need *needs, size_t n);
/** need_describe() - "needs 4000 bytes (1000 elements of 4 bytes), but its buffer has 40". */
void need_describe(const Need *need, uint64_t n_bytes, uint64_t n_has, char *text, size_t n_text);

/** need_begin() - the bytes needed if there is no length: multiply by each. */
static inline uint64_t need_begin(const Need *need) {
        return (uint64_t)need->element * need->n_fixed;
}

/** need_multiply() - UINT64_MAX, which no buffer has, if the product is too large. */
static inline uint64_t need_multiply(uint64_t n_bytes, uint64_t length) {
        uint64_t product;

        return __builtin_mul_overflow(n_bytes, length, &product) ? UINT64_MAX : product;
}

#endif
