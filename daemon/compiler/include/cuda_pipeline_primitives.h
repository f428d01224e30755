/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from global to shared memory, which are done at once here, where the CUDA Toolkit's header is missing. */
#pragma once

#ifdef __CUDACC_RTC__
#error "cuda_pipeline_primitives.h: the CUDA Toolkit's headers are missing beside NVRTC"
#endif

static __device__ __forceinline__ void __pipeline_memcpy_async(void *to, const void *from, size_t n_bytes,
                                                               size_t n_zeros = 0) {
        if (n_bytes == 16 && n_zeros == 0)
                *(int4 *)to = *(const int4 *)from;
        else if (n_bytes == 8 && n_zeros == 0)
                *(int2 *)to = *(const int2 *)from;
        else
                for (size_t i = 0; i < n_bytes; i += 4)
                        ((unsigned *)to)[i / 4] = i < n_bytes - n_zeros ? ((const unsigned *)from)[i / 4] : 0;
}
static __device__ __forceinline__ void __pipeline_commit() {
}
static __device__ __forceinline__ void __pipeline_wait_prior(size_t n) {
        (void)n;
}
