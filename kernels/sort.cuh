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

/* All bits, or none. */
template <class T> static __device__ __forceinline__ T sort_mask(bool is_set) {
        return (T)0 - (T)is_set;
}

/* NaN comes behind all numbers, -0.0 is 0.0. */
template <class T> static __device__ __forceinline__ T sort_code_of_float(T key) {
        const unsigned top = 8 * sizeof(T) - 1;
        const T sign = (T)1 << top;
        const T infinity = sizeof(T) == 4 ? (T)0x7f800000u : (T)0x7ff0000000000000ull;
        T magnitude = key & ~sign, number = key & sort_mask<T>(magnitude != 0);

        return (number ^ (sort_mask<T>(number >> top) | sign)) | sort_mask<T>(magnitude > infinity);
}

/* The digits of keys at @shift, in order @order. */
template <class T> struct SortDigits {
        T floats; /* a mask: the keys are floats */
        T flip;   /* bits of a code */
        unsigned shift;

        __device__ __forceinline__ SortDigits(u64 shift, u64 order)
                : floats(sort_mask<T>(order & SORT_FLOAT)), flip(sort_mask<T>(order & SORT_DESCENDING)),
                  shift(shift & (8 * sizeof(T) - 1)) {
                if (order & SORT_SIGNED && !(order & SORT_FLOAT))
                        flip ^= (T)1 << (8 * sizeof(T) - 1);
        }
        __device__ __forceinline__ unsigned of(T key) const {
                T code = (sort_code_of_float(key) & floats) | (key & ~floats);

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
