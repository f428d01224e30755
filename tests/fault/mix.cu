// SPDX-License-Identifier: Apache-2.0
//
// What the load computes: integers, so that every result can be compared bit for bit (load.c has the same).

__device__ unsigned mix_one(unsigned v, unsigned key, unsigned rounds)
{
        for (unsigned i = 0; i < rounds; i++) {
                v ^= key + i;
                v ^= v >> 16;
                v *= 0x7feb352du;
                v ^= v >> 15;
                v *= 0x846ca68bu;
                v ^= v >> 16;
        }
        return v;
}

extern "C" __global__ void mix(const unsigned *in, unsigned *out, unsigned n, unsigned key, unsigned rounds)
{
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < n)
                out[i] = mix_one(in[i], key, rounds);
}

extern "C" __global__ void mix_in_place(unsigned *data, unsigned n, unsigned key, unsigned rounds)
{
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

        if (i < n)
                data[i] = mix_one(data[i], key, rounds);
}
