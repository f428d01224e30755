/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_GROW_H
#define GPUQ_UTIL_GROW_H

/*
 * Grow
 *
 * Arrays that get one element more at a time.
 */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define GROW_FIRST 4u /* elements, a power of two */

/**
 * grow() - make room for one more, in steps of powers of two
 * @array: where the array's pointer is, NULL at first
 * @n: how many it has; @size: of one
 *
 * Return: 0 or -ENOMEM.
 */
static inline int grow(void *array, size_t n, size_t size) {
        void *bigger;

        if (n && (n < GROW_FIRST || n & (n - 1)))
                return 0;

        bigger = reallocarray(*(void **)array, n ? n * 2 : GROW_FIRST, size);
        if (!bigger)
                return -ENOMEM;

        *(void **)array = bigger;
        return 0;
}

#endif
