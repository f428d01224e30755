/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds a GPU for a known time: every block waits until its time is up, then
 * c[i] = a[i] + b[i] for i < n, so that it is checked as the other jobs are.
 */

typedef unsigned long long u64;

static __device__ inline u64 now_ns() {
        u64 t;

        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
        return t;
}

/* The end is the block's, not the thread's: on the CPU driver threads run one after the other. */
extern "C" __global__ void spin_add_f32(const float *a, const float *b, float *c, u64 n, u64 ns) {
        __shared__ u64 end;

        if (threadIdx.x == 0)
                end = now_ns() + ns;
        __syncthreads();
        while (now_ns() < end)
                ;

        for (u64 i = threadIdx.x + (u64)blockIdx.x * blockDim.x; i < n;
             i += (u64)gridDim.x * blockDim.x)
                c[i] = a[i] + b[i];
}
