# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ that the tests run: the same source for the GPU and for the CPU driver."""

import contextlib

from .client import Client, In, InOut, Job, Out, i32, u64
from .messages import pb
from .patience import until

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

// Waits until another job opens the gate: see harness.kernels.Gate.
__device__ void wait_at(int *gate)
{
        volatile int *is_open = gate, *n_held = gate + 2;
        int turn = atomicAdd(gate + 1, 1);

        while (!*is_open && (!*n_held || turn < *n_held))
                __nanosleep(100000);
}

extern "C" __global__ void gate(int *gate)
{
        wait_at(gate);
}

// Waits at the gate, then does its work.
extern "C" __global__ void held(const int *in, int *out, unsigned long long n, int *gate)
{
        wait_at(gate);
        for (unsigned long long i = 0; i < n; i++)
                out[i] = 3 * in[i];
}

// The same for who can only be told where the gate is.
extern "C" __global__ void held_at(const int *in, int *out, unsigned long long n, unsigned long long gate)
{
        wait_at((int *)gate);
        for (unsigned long long i = 0; i < n; i++)
                out[i] = 3 * in[i];
}

extern "C" __global__ void address(int *what, unsigned long long *out)
{
        *out = (unsigned long long)what;
}

extern "C" __global__ void triple(const int *in, int *out, unsigned long long n)
{
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

# Takes a compiler longer than any test waits.
BOMB = """
template <int A, int B> struct S { static constexpr long v = S<A - 1, B * 2>::v + S<A - 1, B * 2 + 1>::v; };
template <int B> struct S<0, B> { static constexpr long v = B; };
extern "C" __global__ void k(long *out) { out[0] = S<26, 1>::v; }
"""


class Gate:
    """Holds jobs in the middle of a kernel: those that wait_at() it, until open(). Three words in a device arena of
    the client: whether it is open, how many came, and how many of them it holds (0: all). So it outlives a worker;
    to hold the first run of a job alone and let its repetition pass, n_held=1.

    Open it before anything that must be done when nothing runs in the worker: a module is loaded, or something runs alone, after
    a fault or because its module prints. The words are only read by its jobs as far as the daemon knows: they may run twice."""

    def __init__(self, client, n_held=0):
        self.client = client
        self.words, self.copy = client.device_arena(12), client.arena(12)
        if n_held:
            self._fill(8, n_held)

    @contextlib.contextmanager
    def _beside(self):
        """A session without order between its jobs and those that wait here, with which nothing goes."""
        with Client(self.client.path, uid=self.client.uid) as other:
            other.open_arena(self.words.id)
            other.open_arena(self.copy.id)
            yield other

    def _fill(self, offset, value):
        with self._beside() as other:
            other.run_well(Job().fill(self.words, 4, value, width=4, offset=offset))

    def open(self):
        self._fill(0, 1)

    def wait_for(self, n=1):
        """Until so many have come: they are in their kernel, not only with the worker."""
        def n_came():
            other.run_well(Job().copy(self.copy, self.words, 12, direction=pb.OUT))
            return self.copy.array("i4")[1]

        with self._beside() as other:
            until(lambda: n_came() >= n, f"{n} at the gate")

    def address(self, module):
        """In the worker that there is, for `held_at` of who can give files and numbers only."""
        out = self.client.arena(8)
        self.client.run_well(Job().launch(module, "address", [In(self.words), Out(out)]))
        return int(out.array("u8")[0])


class GateJob(Gate):
    """A gate and a job that waits at it: something for other jobs to wait behind."""

    def __init__(self, client, module, **fields):
        super().__init__(client)
        self.id = client.submit(gate_job(module, self, **fields))


def gate_job(module, gate, **fields):
    return Job(**fields).launch(module, "gate", [In(gate.words)])


def held_job(module, source, target, n, gate, **fields):
    """Three times what it was given, once the gate is open."""
    return Job(**fields).launch(module, "held", [In(source), Out(target), u64(n), In(gate.words)])


def copy_job(module, source, target, n, **fields):
    return Job(**fields).launch(module, "copy", [In(source), Out(target), u64(n)], grid=-(-n // 128),
                                block=128)


def held_at_job(module, source, target, n, gate_address, **fields):
    """The same where no buffer may be the gate's: of a detached job."""
    return Job(**fields).launch(module, "held_at", [In(source), Out(target), u64(n), u64(gate_address)])


def triple_job(module, source, target, n, **fields):
    return Job(**fields).launch(module, "triple", [In(source), Out(target), u64(n)])


def note_job(module, log, mark, **fields):
    return Job(**fields).launch(module, "note", [InOut(log), i32(mark)])


def mapped_arena(client, module, n):
    """An arena of n ints in which completion words are stored for certain: a worker stores none in an arena that it has
    still to map, and a job has run that reads this one."""
    arena = client.arena(4 * n)
    client.run_well(copy_job(module, arena, client.arena(4 * n), n))
    return arena


def assert_failed(completion, code, *words):
    """It failed with this code, and its text has these words, whatever their case."""
    assert completion.state == (pb.CANCELLED if code == pb.E_CANCELLED else pb.FAILED), completion
    assert completion.error.code == code, completion
    for word in words:
        assert str(word).lower() in completion.error.text.lower(), completion.error.text
