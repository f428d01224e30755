/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions
 *
 * The result depends on the numbers and on n alone, not on the geometry. n cuts the numbers into parts, and
 * a part into rows of ROW numbers. LANES lanes add up a part, lane i every LANES-th row from the part's row i
 * on, and are joined in a tree. Then lane i adds up every LANES-th part's result from part i on, and the lanes
 * are joined once more.
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
 *     is_aligned()     whether a row can be read at once
 *     take_row(i, to)  read it
 *     none()           the value of no numbers
 *     add(value, taken, i), join(value, value)
 *     end(value, n)    the result
 */
#pragma once
#include "common.cuh"

#define LANES        1024u
#define ROW          4u
#define FEW          32u               /* bytes in flight in a thread, where one block works */
#define MANY         64u               /* where all do */
#define PART         (8 * LANES * ROW) /* numbers; all parts but the last have a multiple of them */
#define PARTS_MAX    2048u
#define ONE_PART     65536u /* so many numbers are one part */
#define WIDE_THREADS 512

/* The worker makes it of zeros, for the launches of one stream. */
struct WideMemory {
        unsigned n_ended; /* blocks; 0 before and after each launch */
        unsigned unused[3];
        u64 values[2 * PARTS_MAX]; /* of the parts */
};

static __device__ __forceinline__ u64 part_length(u64 n) {
        u64 n_most = (u64)PART * PARTS_MAX;

        return n <= ONE_PART ? n : (n / n_most + (n % n_most > 0)) * PART;
}

/* 16 bytes at once. Not nvcc's own vectors: clang would copy those through local memory. */
#if defined(__clang__) || !defined(__CUDACC__)
typedef float RowF32 __attribute__((vector_size(16)));
typedef double RowF64 __attribute__((vector_size(16)));

static __device__ __forceinline__ void load_row(const float *from, float *to) {
        RowF32 row = *(const RowF32 *)from;

#pragma unroll
        for (unsigned k = 0; k < ROW; ++k)
                to[k] = row[k];
}

static __device__ __forceinline__ void load_row(const double *from, double *to) {
        RowF64 left = ((const RowF64 *)from)[0], right = ((const RowF64 *)from)[1];

        to[0] = left[0];
        to[1] = left[1];
        to[2] = right[0];
        to[3] = right[1];
}
#else
static __device__ __forceinline__ void load_row(const float *from, float *to) {
        float4 row = *(const float4 *)from;

        to[0] = row.x;
        to[1] = row.y;
        to[2] = row.z;
        to[3] = row.w;
}

static __device__ __forceinline__ void load_row(const double *from, double *to) {
        double2 left = ((const double2 *)from)[0], right = ((const double2 *)from)[1];

        to[0] = left.x;
        to[1] = left.y;
        to[2] = right.x;
        to[3] = right.y;
}
#endif

static __device__ __forceinline__ bool is_row_address(const void *address) {
        return (u64)address % 16 == 0;
}

template <class Op>
static __device__ __forceinline__ typename Op::Value
add_row(typename Op::Value value, const typename Op::Taken *taken, u64 i) {
#pragma unroll
        for (unsigned k = 0; k < ROW; ++k)
                value = Op::add(value, taken[k], i + k);
        return value;
}

/* N rows of a lane. All loads come before the first sum: the bytes in flight make the speed. */
template <unsigned N, class Op>
static __device__ __forceinline__ typename Op::Value
reduce_rows(const Op &op, typename Op::Value value, u64 i) {
        typename Op::Taken taken[N][ROW];

#pragma unroll
        for (unsigned k = 0; k < N; ++k)
                op.take_row(i + k * LANES * ROW, taken[k]);
#pragma unroll
        for (unsigned k = 0; k < N; ++k)
                value = add_row<Op>(value, taken[k], i + k * LANES * ROW);
        return value;
}

template <class Op>
static __device__ __forceinline__ typename Op::Value
reduce_row(const Op &op, typename Op::Value value, u64 i) {
        typename Op::Taken taken[ROW];

#pragma unroll
        for (unsigned k = 0; k < ROW; ++k)
                taken[k] = op.take(i + k);
        return add_row<Op>(value, taken, i);
}

/* From number i to the end of the part. */
template <unsigned BYTES, class Op>
static __device__ __forceinline__ typename Op::Value reduce_lane(const Op &op, u64 i, u64 end) {
        const unsigned size = ROW * sizeof(typename Op::Taken), N = size < BYTES ? BYTES / size : 1;
        const u64 step = LANES * ROW;
        typename Op::Value value = Op::none();

        if (op.is_aligned())
#pragma unroll 1
                for (; i + (N - 1) * step + ROW <= end; i += N * step)
                        value = reduce_rows<N>(op, value, i);
#pragma unroll 1
        for (; i + ROW <= end; i += step)
                value = reduce_row(op, value, i);
#pragma unroll 1
        for (; i < end; ++i) /* a row that is cut */
                value = Op::add(value, op.take(i), i);
        return value;
}

/* Joins lanes i and i + n / 2 into lane i, for n from LANES on, but two such steps at once. All threads of a block
 * call it. The result is in lanes[0], for thread 0 alone. */
template <class Op> static __device__ __forceinline__ void join_lanes(typename Op::Value *lanes) {
        u64 thread = thread_number(), n_threads = thread_count();

#pragma unroll 1
        for (unsigned n = LANES / 4; n > 0; n /= 4) {
                __syncthreads();
#pragma unroll 1
                for (u64 i = thread; i < n; i += n_threads)
                        lanes[i] = Op::join(Op::join(lanes[i], lanes[i + 2 * n]),
                                            Op::join(lanes[i + n], lanes[i + 3 * n]));
        }
        __syncthreads();
}

template <unsigned BYTES, class Op>
static __device__ __forceinline__ void reduce_part(const Op &op, u64 begin, u64 end,
                                                   typename Op::Value *lanes) {
#pragma unroll 1
        for (u64 lane = thread_number(); lane < LANES; lane += thread_count())
                lanes[lane] = reduce_lane<BYTES>(op, begin + lane * ROW, end);
        join_lanes<Op>(lanes);
}

/* Whether this block is the last one to get here, for all its threads. Then it sees what the others wrote before. */
static __device__ __forceinline__ bool is_last_block(WideMemory *memory) {
        __shared__ bool is_last;

        if (thread_number() == 0) {
                unsigned last = (unsigned)block_count() - 1;

                __threadfence();
                /* The last one makes it 0 again. */
                is_last = atomicInc(&memory->n_ended, last) == last;
                __threadfence();
        }
        __syncthreads();
        return is_last;
}

/* One lane's parts, in order. */
template <class Op>
static __device__ __forceinline__ typename Op::Value join_parts(const typename Op::Value *parts,
                                                                u64 lane, u64 n, u64 length) {
        typename Op::Value value = Op::none();

#pragma unroll 1
        for (u64 part = lane; part * length < n; part += LANES)
                value = Op::join(value, parts[part]);
        return value;
}

/*
 * Block first of step blocks does parts first, first + step, and so on. With memory the last block to end
 * joins the parts. Without it this block is the only one, and its own memory has one result a lane.
 *
 * Return: whether this block has the result: in lanes[0], for thread 0 alone.
 */
template <unsigned BYTES, class Op>
static __device__ __forceinline__ bool reduce_parts(const Op &op, u64 n, u64 first, u64 step,
                                                    WideMemory *memory, typename Op::Value *lanes) {
        __shared__ typename Op::Value own[LANES];
        typename Op::Value *parts =
                memory ? (typename Op::Value *)memory->values : (typename Op::Value *)0;
        u64 length = part_length(n);

        /* Part 0 is there even if it is empty. */
#pragma unroll 1
        for (u64 part = first; part == 0 || part * length < n; part += step) {
                u64 begin = part * length;

                reduce_part<BYTES>(op, begin, n - begin < length ? n : begin + length, lanes);
                if (thread_number() > 0)
                        continue;
                if (memory)
                        parts[part] = lanes[0];
                else
                        own[part % LANES] =
                                part < LANES ? lanes[0] : Op::join(own[part % LANES], lanes[0]);
        }
        if (!memory && n <= length)
                return true;
        if (memory && !is_last_block(memory))
                return false;

        __syncthreads();
#pragma unroll 1
        for (u64 lane = thread_number(); lane < LANES; lane += thread_count())
                if (memory)
                        lanes[lane] = join_parts<Op>(parts, lane, n, length);
                else
                        lanes[lane] = lane * length < n ? own[lane] : Op::none();
        join_lanes<Op>(lanes);
        return true;
}

template <class Op, class T>
static __device__ __forceinline__ void reduce(const Op &op, T *result, u64 n) {
        __shared__ typename Op::Value lanes[LANES];

        if (block_number() > 0)
                return;
        reduce_parts<FEW>(op, n, 0, 1, (WideMemory *)0, lanes);
        if (thread_number() == 0)
                *result = (T)Op::end(lanes[0], n);
}

/* Without memory block 0 works alone. */
template <class Op, class T>
static __device__ __forceinline__ void reduce_wide(const Op &op, T *result, u64 n,
                                                   WideMemory *memory) {
        __shared__ typename Op::Value lanes[LANES];

        if (!memory && block_number() > 0)
                return;
        if (reduce_parts<MANY>(op, n, block_number(), memory ? block_count() : 1, memory, lanes) &&
            thread_number() == 0)
                *result = (T)Op::end(lanes[0], n);
}

/* Three blocks a multiprocessor: with more, registers would not hold what is in flight; with fewer, too few threads
 * read while a block joins its lanes. */
#define WIDE(NAME)                                                                                 \
        extern "C" __global__ void __launch_bounds__(WIDE_THREADS, 3) gpuq_internal_wide_##NAME

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
        __device__ __forceinline__ bool is_aligned() const {
                return is_row_address(x);
        }
        __device__ __forceinline__ void take_row(u64 i, T *to) const {
                load_row(x + i, to);
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
        __device__ __forceinline__ bool is_aligned() const {
                return is_row_address(x);
        }
        __device__ __forceinline__ void take_row(u64 i, T *to) const {
                load_row(x + i, to);
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
        __device__ __forceinline__ bool is_aligned() const {
                return is_row_address(x);
        }
        __device__ __forceinline__ void take_row(u64 i, T *to) const {
                load_row(x + i, to);
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
