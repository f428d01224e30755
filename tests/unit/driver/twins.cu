// SPDX-License-Identifier: Apache-2.0
// Kernels of the driver's unit tests that have twins, in a module without variables and printf.
#include <cuda_runtime.h>

struct Options {
        char mode;
        double factor;
        short shift;
};

struct Large {
        unsigned char bytes[2049];
};

struct alignas(32) Aligned {
        float values[8];
};

// Where the thread is, beside what it was given: a twin must not show.
extern "C" __global__ void affine(char tag, const double *x, double *y, Options options, float4 extra, int n) {
        unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        unsigned i = block * blockDim.x + threadIdx.x;

        if (i < (unsigned)n)
                y[i] = x[i] * options.factor + options.shift + extra.w + tag + options.mode + 1000 * gridDim.z;
}

// Threads that wait for each other, in shared memory of both kinds.
extern "C" __global__ void scan(const int *x, int *y, int *total) {
        extern __shared__ int parts[];
        __shared__ int last;
        unsigned t = threadIdx.x;
        int sum = x[blockIdx.x * blockDim.x + t];

        for (unsigned step = 1; step < blockDim.x; step *= 2) {
                parts[t] = sum;
                __syncthreads();
                if (t >= step)
                        sum += parts[t - step];
                __syncthreads();
        }
        if (t == blockDim.x - 1)
                last = sum;
        __syncthreads();
        y[blockIdx.x * blockDim.x + t] = sum;
        if (t == 0)
                atomicAdd(total, last);
}

extern "C" __global__ void poke(int *p, int i) {
        p[i] = i;
}

extern "C" __global__ void idle() {
}

extern "C" __global__ void large(int *p, Large) {
        *p = 1;
}

extern "C" __global__ void aligned(int *p, Aligned) {
        *p = 1;
}
