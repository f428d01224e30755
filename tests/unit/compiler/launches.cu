/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that launches another, for the readers of cubins: compiled with -rdc=true, and not linked. */

__global__ void child(int *x) {
        x[threadIdx.x] += 2;
}

extern "C" __global__ void parent(int *x) {
        child<<<1, 32>>>(x);
}
