# SPDX-License-Identifier: Apache-2.0
"""What random programs run, and what it means in numpy, bit for bit.

Integers wrap. Of floats only what has one right answer whatever an FMA does: products are exact, by
powers of two or because they are of two float32 in a float64, and sums are added up in the order that
the built-in kernels promise.
"""

import numpy

# Every kernel is right for every grid and block, as the built-in ones are.
SOURCE = r"""
struct Mixed { signed char a; short b; int c; long long d; };

static __device__ inline unsigned n_threads() { return blockDim.x * blockDim.y * blockDim.z; }
static __device__ inline unsigned n_blocks() { return gridDim.x * gridDim.y * gridDim.z; }
static __device__ inline unsigned thread()
{
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
static __device__ inline unsigned block()
{
        return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}
#define EACH(i, n) unsigned i = block() * n_threads() + thread(); i < (n); i += n_blocks() * n_threads()

extern "C" __global__ void mix(const unsigned *a, const unsigned *b, unsigned *c, unsigned s, unsigned n)
{
        for (EACH(i, n))
                c[i] = a[i] * 2654435761u + (b[i] ^ s);
}

extern "C" __global__ void bump(unsigned *data, unsigned s, unsigned n)
{
        for (EACH(i, n))
                data[i] = data[i] * 5 + s;
}

/* Every second word is left as it was. */
extern "C" __global__ void spread(const unsigned *a, unsigned *out, unsigned n)
{
        for (EACH(i, n))
                out[2 * i] = a[i] + 1;
}

extern "C" __global__ void count(const unsigned *a, unsigned *bins, unsigned n)
{
        for (EACH(i, n))
                atomicAdd(&bins[a[i] % 64], 1u);
}

extern "C" __global__ void total(const unsigned *a, unsigned *out, unsigned n)
{
        __shared__ unsigned parts[1024];
        unsigned part = 0;

        for (unsigned i = thread(); i < n; i += n_threads())
                part += a[i];
        parts[thread()] = part;
        __syncthreads();
        if (thread() > 0 || block() > 0)
                return;
        for (unsigned i = 1; i < n_threads(); i++)
                part += parts[i];
        out[0] = part;
}

/* Each block turns its part around. */
extern "C" __global__ void turn(const unsigned *a, unsigned *out, unsigned n)
{
        extern __shared__ unsigned parts[];
        unsigned i = block() * n_threads() + thread();

        parts[thread()] = i < n ? a[i] : 7;
        __syncthreads();
        if (i < n)
                out[i] = parts[n_threads() - 1 - thread()];
}

/* Where it runs, in all dimensions. */
extern "C" __global__ void where(unsigned *out, unsigned n)
{
        unsigned i = block() * n_threads() + thread();

        if (i < n)
                out[i] = blockIdx.x + 100 * blockIdx.y + 10000 * blockIdx.z + 1000000 * gridDim.z +
                         10000000 * threadIdx.y + 100000000 * threadIdx.z;
}

extern "C" __global__ void scalars(Mixed m, unsigned *out, signed char a, unsigned n)
{
        for (EACH(i, n))
                out[i] = (unsigned)(m.a + 3 * m.b + 5 * m.c + 7 * (int)m.d + 11 * a + (int)i);
}

/* Others come meanwhile. */
extern "C" __global__ void ponder(unsigned *out, unsigned x)
{
        for (volatile int i = 0; i < 200000; i = i + 1)
                ;
        out[0] = x;
}

extern "C" __global__ void wild(unsigned *data, unsigned long long index)
{
        data[0] = 1;
        data[index] = 1;
}

extern "C" __global__ void forever(unsigned *data)
{
        data[0] = 1;
        for (volatile int i = 0; i >= 0; i = 0)
                ;
}
"""

# Modules of their own: no kernel of one that prints or has variables is run with others.
PRINTS = r"""
extern "C" __global__ void say(unsigned *out, unsigned x)
{
        if (threadIdx.x > 0 || blockIdx.x > 0)
                return;
        out[0] = x;
        printf("%u\n", x);
}
"""

VARIABLES = r"""
__device__ unsigned counter;

extern "C" __global__ void next(unsigned *out, unsigned n)
{
        if (threadIdx.x > 0 || blockIdx.x > 0)
                return;
        for (unsigned i = 0; i < n; i++)
                out[i] = counter++;
}
"""

LANES, ROW = 1024, 4
U32, F32 = numpy.uint32, numpy.float32


def geometry(grid, block):
    """Of each thread of the grid, by its number: block x, y, z, thread y, z."""
    n_threads = block[0] * block[1] * block[2]
    i = numpy.arange(grid[0] * grid[1] * grid[2] * n_threads)
    b, t = i // n_threads, i % n_threads
    return [part.astype(U32) for part in (b % grid[0], b // grid[0] % grid[1], b // grid[0] // grid[1],
                                          t // block[0] % block[1], t // block[0] // block[1])]


def mix(a, b, c, s):
    c[:] = a * U32(2654435761) + (b ^ U32(s))


def bump(data, s):
    data[:] = data * U32(5) + U32(s)


def spread(a, out):
    out[::2] = a + U32(1)


def count(a, bins):
    bins[:64] += numpy.bincount(a % U32(64), minlength=64).astype(U32)


def total(a, out):
    out[0] = a.sum(dtype=U32)


def turn(a, out, grid, block):
    n_threads = block[0] * block[1] * block[2]
    n_blocks = grid[0] * grid[1] * grid[2]
    padded = numpy.full(max(n_blocks * n_threads, a.size), 7, U32)
    padded[:a.size] = a
    turned = padded[:n_blocks * n_threads].reshape(-1, n_threads)[:, ::-1].reshape(-1)
    n = min(a.size, turned.size)
    out[:n] = turned[:n]


def where(out, grid, block):
    x, y, z, thread_y, thread_z = geometry(grid, block)
    values = x + 100 * y + 10000 * z + U32(1000000 * grid[2]) + 10000000 * thread_y + 100000000 * thread_z
    n = min(out.size, values.size)
    out[:n] = values[:n]


def scalars(mixed, out, a):
    base = mixed[0] + 3 * mixed[1] + 5 * mixed[2] + 7 * mixed[3] + 11 * a
    out[:] = (base + numpy.arange(out.size)).astype(numpy.int64).astype(U32)


# ---- the built-in ones ----

def lanes_sum(values):
    """Of float64, in the order of kernels/reduce.cuh, of one part."""
    lanes = numpy.zeros(LANES)
    for rows in numpy.pad(values, (0, -values.size % (LANES * ROW))).reshape(-1, LANES, ROW):
        for numbers in rows.T:
            lanes = lanes + numbers
    half = LANES // 2
    while half:
        lanes[:half] += lanes[half:2 * half]
        half //= 2
    return lanes[0]


def _wide(x):
    return x.astype(numpy.float64)


def add(a, b, c):
    c[:] = a + b


def divide(a, b, c):
    c[:] = a / b


def scale(a, x, y):
    y[:] = F32(a) * x


def axpy(a, x, y):
    y[:] = F32(a) * x + y


def polynomial(c, x, y):
    value = numpy.zeros_like(x)
    for coefficient in c[::-1]:
        value = value * x + coefficient
    y[:] = value


def sum(x, s):
    s[0] = lanes_sum(_wide(x))


def dot(x, y, s):
    s[0] = lanes_sum(_wide(x) * _wide(y))


def sum_of_squares(x, s):
    s[0] = lanes_sum(_wide(x) * _wide(x))


def gemv(a, x, y, m, n):
    for i in range(m):
        y[i] = lanes_sum(_wide(a[i * n:(i + 1) * n]) * _wide(x))
