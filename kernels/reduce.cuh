/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions
 *
 * The result depends on the numbers and on n alone, not on the geometry. n cuts the numbers into parts.
 * LANES lanes add up a part, lane i every LANES-th number from the part's number i on, and are joined in a
 * tree. The results of the parts are the lanes of one more tree.
 *
 * Every reduction has two forms with the same result:
 * - K works in block 0 alone. That is best for few numbers, and many such jobs can be one launch.
 * - gpuq_internal_wide_K works in all blocks; the block that ends last joins the parts. It takes K's
 *   arguments and memory from the worker, which launches it in place of K if there are several parts
 *   (daemon/worker/wide.h has the same numbers).
 *
 * What is reduced is a class with
 *     Taken, Value     what it reads, and what it has in a lane
 *     take(i)          read number i
 *     none()           the value of no numbers
 *     add(value, taken, i), join(value, value)
 *     end(value, n)    the result
 */
#pragma once
#include "common.cuh"

#define LANES        1024u  /* and the largest number of parts */
#define PART         16384u /* a part's numbers are a multiple of it */
#define ONE_PART     65536u /* so many numbers are one part */
#define LOADS        8u     /* in flight in a thread */
#define WIDE_THREADS 512

/* The worker makes it of zeros, for the launches of one stream. */
struct WideMemory {
        unsigned n_ended; /* blocks; 0 before and after each launch */
        unsigned unused[3];
        u64 values[2 * LANES]; /* of the parts */
};

static __device__ __forceinline__ u64 part_length(u64 n) {
        u64 n_most = (u64)PART * LANES;

        return n <= ONE_PART ? n : (n / n_most + (n % n_most > 0)) * PART;
}

/* From number i to the end of the part. All loads of a round come first: their number in flight makes the speed. */
template <class Op>
static __device__ __forceinline__ typename Op::Value reduce_lane(const Op &op, u64 i, u64 end) {
        typename Op::Value value = Op::none();

        for (; i + (LOADS - 1) * LANES < end; i += LOADS * LANES) {
                typename Op::Taken taken[LOADS];

#pragma unroll
                for (unsigned k = 0; k < LOADS; ++k)
                        taken[k] = op.take(i + k * LANES);
#pragma unroll
                for (unsigned k = 0; k < LOADS; ++k)
                        value = Op::add(value, taken[k], i + k * LANES);
        }
        for (; i < end; i += LANES)
                value = Op::add(value, op.take(i), i);
        return value;
}

/* Joins lanes whose distance is a multiple of n: n of them are left. */
template <unsigned WAYS, class Op>
static __device__ __forceinline__ void fold_lanes(typename Op::Value *lanes, unsigned n) {
        __syncthreads();
        for (u64 lane = thread_number(); lane < n; lane += thread_count()) {
                typename Op::Value values[WAYS];

#pragma unroll
                for (unsigned k = 0; k < WAYS; ++k)
                        values[k] = lanes[lane + k * n];
#pragma unroll
                for (unsigned half = WAYS / 2; half > 0; half /= 2)
#pragma unroll
                        for (unsigned k = 0; k < half; ++k)
                                values[k] = Op::join(values[k], values[k + half]);
                lanes[lane] = values[0];
        }
}

/* All threads of a block call it. The result is in lanes[0], for thread 0 alone. */
template <class Op> static __device__ __forceinline__ void join_lanes(typename Op::Value *lanes) {
        fold_lanes<8, Op>(lanes, 128);
        fold_lanes<8, Op>(lanes, 16);
        fold_lanes<4, Op>(lanes, 4);
        fold_lanes<4, Op>(lanes, 1);
        __syncthreads();
}

template <class Op>
static __device__ __forceinline__ void reduce_part(const Op &op, u64 begin, u64 end,
                                                   typename Op::Value *lanes) {
        for (u64 lane = thread_number(); lane < LANES; lane += thread_count())
                lanes[lane] = reduce_lane(op, begin + lane, end);
        join_lanes<Op>(lanes);
}

template <class Op>
static __device__ __forceinline__ void reduce_part(const Op &op, u64 part, u64 n, u64 length,
                                                   typename Op::Value *lanes) {
        u64 begin = part * length;

        reduce_part(op, begin, n - begin < length ? n : begin + length, lanes);
}

/* One block does all parts, one after the other. The result is in lanes[0], for thread 0 alone. */
template <class Op>
static __device__ __forceinline__ void reduce_in_one(const Op &op, u64 n,
                                                     typename Op::Value *lanes) {
        __shared__ typename Op::Value parts[LANES];
        u64 length = part_length(n);

        if (n <= length) {
                reduce_part(op, 0, n, lanes);
                return;
        }

        for (u64 part = thread_number(); part < LANES; part += thread_count())
                parts[part] = Op::none();
        for (u64 part = 0; part * length < n; ++part) {
                reduce_part(op, part, n, length, lanes);
                if (thread_number() == 0)
                        parts[part] = lanes[0];
        }
        join_lanes<Op>(parts);
        if (thread_number() == 0)
                lanes[0] = parts[0];
}

/* Whether this block is the last one to get here, for all its threads. Then it sees what the others wrote before. */
static __device__ __forceinline__ bool is_last_block(WideMemory *memory) {
        __shared__ bool is_last;

        if (thread_number() == 0) {
                unsigned last = (unsigned)block_count() - 1;

                __threadfence();
                is_last = atomicInc(&memory->n_ended, last) ==
                          last; /* the last one makes it 0 again */
                __threadfence();
        }
        __syncthreads();
        return is_last;
}

/* All blocks do the parts; the last one to end joins them. Return: whether it is this block. */
template <class Op>
static __device__ __forceinline__ bool reduce_in_all(const Op &op, u64 n, WideMemory *memory,
                                                     typename Op::Value *lanes) {
        typename Op::Value *parts = (typename Op::Value *)memory->values;
        u64 length = part_length(n);

        for (u64 part = block_number(); part * length < n; part += block_count()) {
                reduce_part(op, part, n, length, lanes);
                if (thread_number() == 0)
                        parts[part] = lanes[0];
        }
        if (!is_last_block(memory))
                return false;

        for (u64 part = thread_number(); part < LANES; part += thread_count())
                lanes[part] = part * length < n ? parts[part] : Op::none();
        join_lanes<Op>(lanes);
        return true;
}

template <class Op, class T>
static __device__ __forceinline__ void reduce(const Op &op, T *result, u64 n) {
        __shared__ typename Op::Value lanes[LANES];

        if (block_number() > 0)
                return;
        reduce_in_one(op, n, lanes);
        if (thread_number() == 0)
                *result = (T)Op::end(lanes[0], n);
}

/* Without memory block 0 works alone. */
template <class Op, class T>
static __device__ __forceinline__ void reduce_wide(const Op &op, T *result, u64 n,
                                                   WideMemory *memory) {
        __shared__ typename Op::Value lanes[LANES];
        bool is_mine = block_number() == 0;

        if (memory)
                is_mine = reduce_in_all(op, n, memory, lanes);
        else if (is_mine)
                reduce_in_one(op, n, lanes);
        if (is_mine && thread_number() == 0)
                *result = (T)Op::end(lanes[0], n);
}

#define WIDE(NAME)                                                                                 \
        extern "C" __global__ void __launch_bounds__(WIDE_THREADS) gpuq_internal_wide_##NAME

/* Sums, in f64. */
template <class TAKEN> struct SumOfTaken {
        typedef TAKEN Taken;
        typedef double Value;

        static __device__ __forceinline__ Value none() {
                return 0;
        }
        static __device__ __forceinline__ Value join(Value a, Value b) {
                return a + b;
        }
        static __device__ __forceinline__ Value end(Value value, u64) {
                return value;
        }
};

template <class T> struct SumOf : SumOfTaken<T> {
        const T *x;

        __device__ __forceinline__ SumOf(const T *from) : x(from) {
        }
        __device__ __forceinline__ T take(u64 i) const {
                return x[i];
        }
        static __device__ __forceinline__ double add(double value, T taken, u64) {
                return value + taken;
        }
};

template <class T> struct MeanOf : SumOf<T> {
        __device__ __forceinline__ MeanOf(const T *from) : SumOf<T>(from) {
        }
        static __device__ __forceinline__ double end(double value, u64 n) {
                return value / (double)n;
        }
};

/* The smallest number, or the largest; NaN comes before all numbers. Of nothing it is an infinity. */
template <class T, bool IS_MAX> struct ExtremeOf {
        typedef T Taken;
        typedef T Value;
        const T *x;

        __device__ __forceinline__ ExtremeOf(const T *from) : x(from) {
        }
        __device__ __forceinline__ T take(u64 i) const {
                return x[i];
        }
        static __device__ __forceinline__ T none() {
                return (T)(IS_MAX ? -INFINITY : INFINITY);
        }
        static __device__ __forceinline__ bool is_before(T a, T b) {
                return a != a ? b == b : IS_MAX ? a > b : a < b;
        }
        static __device__ __forceinline__ T join(T a, T b) {
                return is_before(b, a) ? b : a;
        }
        static __device__ __forceinline__ T add(T value, T taken, u64) {
                return join(value, taken);
        }
        static __device__ __forceinline__ T end(T value, u64) {
                return value;
        }
};

/* Where it is. Lanes do not have the numbers in order, so of equals the index decides. */
template <class T, bool IS_MAX> struct PlaceOf {
        typedef ExtremeOf<T, IS_MAX> Extreme;
        typedef T Taken;
        struct Value {
                T value;
                u64 index;
        };
        const T *x;

        __device__ __forceinline__ PlaceOf(const T *from) : x(from) {
        }
        __device__ __forceinline__ T take(u64 i) const {
                return x[i];
        }
        static __device__ __forceinline__ Value none() {
                return Value{Extreme::none(), ~0ull};
        }
        static __device__ __forceinline__ Value join(Value a, Value b) {
                if (Extreme::is_before(a.value, b.value))
                        return a;
                return Extreme::is_before(b.value, a.value) || b.index < a.index ? b : a;
        }
        static __device__ __forceinline__ Value add(Value value, T taken, u64 i) {
                return join(value, Value{taken, i});
        }
        static __device__ __forceinline__ u64 end(Value value, u64) {
                return value.index;
        }
};
