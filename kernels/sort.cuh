/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sort, one digit of eight bits after the other, the lowest first
 *
 * For each digit sort_count counts in parts, sort_offsets finds where the keys of each digit and part go, and
 * sort_move takes them there. Keys stay as they are: what is compared is their code, an unsigned number.
 */
#pragma once
#include "lanes.cuh"

#define SORT_DIGITS 256u

/* What `order` has, 0 for unsigned numbers in ascending order. */
#define SORT_SIGNED     1u
#define SORT_FLOAT      2u
#define SORT_DESCENDING 4u

/* NaN comes behind all numbers, -0.0 is 0.0. */
template <class T> static __device__ __forceinline__ T sort_code_of_float(T key) {
        const T sign = (T)1 << (8 * sizeof(T) - 1);
        const T infinity = sizeof(T) == 4 ? (T)0x7f800000u : (T)0x7ff0000000000000ull;
        T magnitude = key & ~sign;

        if (magnitude > infinity)
                return ~(T)0;
        if (magnitude == 0)
                return sign;
        return key & sign ? ~key : key | sign;
}

template <class T> static __device__ __forceinline__ unsigned sort_digit(T key, u64 shift, u64 order) {
        T code = key;

        if (order & SORT_FLOAT)
                code = sort_code_of_float(key);
        else if (order & SORT_SIGNED)
                code = key ^ (T)1 << (8 * sizeof(T) - 1);
        if (order & SORT_DESCENDING)
                code = ~code;
        return (unsigned)(code >> (shift & (8 * sizeof(T) - 1))) & (SORT_DIGITS - 1);
}

/* A part of the keys. The table of counts has a row for each digit, with a column for each part and one for the sum. */
struct SortPart {
        u64 begin, end;
};

static __device__ inline SortPart sort_part(u64 n, u64 parts, u64 part) {
        u64 length = tile_part_length(n, parts);
        u64 begin = part * length < n ? part * length : n;

        return SortPart{begin, n - begin < length ? n : begin + length};
}
