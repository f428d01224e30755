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

/* The digits of keys at @shift, in order @order. */
template <class T> struct SortDigits {
        T flip; /* bits of a code */
        unsigned shift;
        bool is_float;

        __device__ __forceinline__ SortDigits(u64 shift, u64 order)
                : flip(order & SORT_DESCENDING ? ~(T)0 : (T)0), shift(shift & (8 * sizeof(T) - 1)),
                  is_float(order & SORT_FLOAT) {
                if (order & SORT_SIGNED && !is_float)
                        flip ^= (T)1 << (8 * sizeof(T) - 1);
        }
        __device__ __forceinline__ unsigned of(T key) const {
                T code = is_float ? sort_code_of_float(key) : key;

                return (unsigned)((code ^ flip) >> shift) & (SORT_DIGITS - 1);
        }
};

/* A part of the keys. The table of counts has a row for each digit, with a column for each part and one for the sum. */
struct SortPart {
        u64 begin, end;
};

static __device__ inline SortPart sort_part(u64 n, u64 parts, u64 part) {
        u64 length = tile_part_length(n, parts);
        u64 begin = part * length < n ? part * length : n;

        return SortPart{begin, n - begin < length ? n : begin + length};
}

/* The last step of a digit: what it moves, and where to. */
template <class T> struct SortMove {
        const T *keys;
        const unsigned *values;
        T *sorted;
        unsigned *moved;
        u64 n, words; /* of a value */
        SortDigits<T> digits;

        /* The key that was number @from. */
        __device__ __forceinline__ void take(T key, u64 from, u64 to) const {
                if (to >= n) /* counts of other keys */
                        return;
                sorted[to] = key;
                for (u64 word = 0; word < words; ++word)
                        moved[to * words + word] = values[from * words + word];
        }
};
