/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the cubin and fatbin readers read, made by nvcc where there is one. */
#include <stdio.h>

__device__ int counter;
__constant__ float table[4];

template <class T> __device__ __noinline__ T square(T a) {
        return a * a + table[1];
}

extern "C" __global__ void first(float *p, int n) {
        int i = threadIdx.x;

        if (i < n)
                p[i] = square(p[i]);
        printf("%d\n", i);
        counter++;
}

__global__ void second(double *p) {
        p[0] = 1;
}
