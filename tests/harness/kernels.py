# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ that the tests run: the same source for the GPU and for the CPU driver."""

from . import place
from .client import In, InOut, Job, Out, i32, u64
from .messages import pb

BASIC = r"""
extern "C" __global__ void copy(const int *in, int *out, unsigned long long n)
{
        unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
        if (i < n)
                out[i] = in[i];
}

extern "C" __global__ void add_one(int *data, unsigned long long n)
{
        unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
        if (i < n)
                data[i] += 1;
}

// Appends its mark to a log: what ran in which order.
extern "C" __global__ void note(int *log, int mark)
{
        log[1 + log[0]] = mark;
        log[0] += 1;
}

// Runs until another job opens the gate.
extern "C" __global__ void gate(volatile int *open)
{
        while (*open == 0)
                ;
}

// Takes its time, then does its work.
extern "C" __global__ void slow(const int *in, int *out, unsigned long long n, unsigned long long spins)
{
        for (volatile unsigned long long i = 0; i < spins; i = i + 1)
                ;
        for (unsigned long long i = 0; i < n; i++)
                out[i] = 3 * in[i];
}

extern "C" __global__ void forever(int *out)
{
        for (volatile int i = 0; i >= 0; i = 0)
                ;
        out[0] = 1;
}

extern "C" __global__ void wild(int *data, unsigned long long index)
{
        data[index] = 1;
}

extern "C" __global__ void nothing(void)
{
}

extern "C" __global__ void scalars(char c, short s, int i, long long l, float f, double d, double *out)
{
        out[0] = c;
        out[1] = s;
        out[2] = i;
        out[3] = (double)l;
        out[4] = f;
        out[5] = d;
}
"""

FAR = 1 << 40  # an index that is in nobody's memory

# About half a second of `slow`.
SPINS = 5_000_000 if place.on_gpu() else (20_000_000 if place.SANITIZED else 150_000_000)


class Gate:
    """A job of this client that runs until open(): something for other jobs to wait behind."""

    def __init__(self, daemon, client, module, uid=None, **fields):
        self.flag = client.device_arena(4)
        self.client = client
        self.opener = daemon.connect(uid=uid)
        self.id = client.submit(Job(**fields).launch(module, "gate", [In(self.flag)]))

    def open(self):
        arena = self.opener.open_arena(self.flag.id)
        self.opener.run_well(Job().fill(arena, 4, 1, width=4))


def copy_job(module, source, target, n, **fields):
    return Job(**fields).launch(module, "copy", [In(source), Out(target), u64(n)], grid=-(-n // 128),
                                block=128)


def slow_job(module, source, target, n, spins=None, **fields):
    return Job(**fields).launch(module, "slow", [In(source), Out(target), u64(n), u64(spins or SPINS)])


def note_job(module, log, mark, **fields):
    return Job(**fields).launch(module, "note", [InOut(log), i32(mark)])


def assert_failed(completion, code, *words):
    """It failed with this code, and its text has these words, whatever their case."""
    assert completion.state == (pb.CANCELLED if code == pb.E_CANCELLED else pb.FAILED), completion
    assert completion.error.code == code, completion
    for word in words:
        assert str(word).lower() in completion.error.text.lower(), completion.error.text
