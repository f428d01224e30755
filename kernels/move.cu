/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Move, for workers alone: it is not among the kernels that users see (no @kernel)
 *
 * Row y of the table says what blocks of that y do: copy bytes, or write zeros where from is 0.
 * Rows do not overlap. The table is a parameter, so nothing has to be put into
 * memory before; handing over 4 KiB costs the caller microseconds, hence three sizes of it.
 * Any grid whose y is the number of rows, any block in one dimension. What a row looks like, and
 * the sizes, are in daemon/worker/move.h too.
 */
#include "common.cuh"

struct MoveRow {
        u64 to, from, n_bytes;
};

template <int N> struct MoveTable {
        MoveRow rows[N];
};

/* What 16 bytes at once are moved as. Not nvcc's own vectors: clang would copy those through local memory. */
#if defined(__clang__) || !defined(__CUDACC__)
typedef u64 MoveVector __attribute__((vector_size(16)));
#else
typedef ulonglong2 MoveVector;
#endif

/* Four loads before the first store: over PCIe it is their number in flight that makes the speed. */
template <class T> static __device__ inline void move_copy(T *to, const T *from, u64 n) {
        u64 step = (u64)gridDim.x * blockDim.x, i = (u64)blockIdx.x * blockDim.x + threadIdx.x;

        for (; i + 3 * step < n; i += 4 * step) {
                T a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];

                to[i] = a;
                to[i + step] = b;
                to[i + 2 * step] = c;
                to[i + 3 * step] = d;
        }
        for (; i < n; i += step)
                to[i] = from[i];
}

template <class T> static __device__ inline void move_clear(T *to, u64 n) {
        u64 step = (u64)gridDim.x * blockDim.x, i = (u64)blockIdx.x * blockDim.x + threadIdx.x;

        for (; i < n; i += step)
                to[i] = T();
}

template <class T> static __device__ inline void move_all(u64 to, u64 from, u64 n_bytes) {
        u64 n = n_bytes / sizeof(T), done = n * sizeof(T);

        if (from) {
                move_copy((T *)to, (const T *)from, n);
                move_copy((char *)(to + done), (const char *)(from + done), n_bytes - done);
        } else {
                move_clear((T *)to, n);
                move_clear((char *)(to + done), n_bytes - done);
        }
}

static __device__ inline void move_row(u64 to, u64 from, u64 n_bytes) {
        if ((to | from) % sizeof(MoveVector) == 0)
                move_all<MoveVector>(to, from, n_bytes);
        else if ((to | from) % sizeof(unsigned) == 0)
                move_all<unsigned>(to, from, n_bytes);
        else
                move_all<char>(to, from, n_bytes);
}

#define MOVE(N)                                                                                    \
        extern "C" __global__ void gpuq_internal_move_##N(const MoveTable<N> table) {              \
                move_row(table.rows[blockIdx.y].to, table.rows[blockIdx.y].from,                   \
                         table.rows[blockIdx.y].n_bytes);                                          \
        }
MOVE(8)
MOVE(42)
MOVE(170)
