# SPDX-License-Identifier: Apache-2.0
"""Attacks with one's own worker: killed, stopped, traced, and, on the CPU driver, made to run code that speaks for it."""

import contextlib
import ctypes
import os
import signal
import time

from attack import attack, load
from harness import kernels, processes
from harness.client import InOut, Job, Out, Refused, u64

PTRACE_SEIZE = 0x4206

# A kernel that makes a liar of its worker, and one that makes system calls.
CALLS = r"""
extern "C" void *dlopen(const char *path, int flags);
extern "C" void *dlsym(void *library, const char *name);
static long call(long n, long a, long b, long c)
{
        long r;
        asm volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
        return r;
}
extern "C" __global__ void become(int *out)
{
        void *library = dlopen("LIAR", 2);

        out[0] = library ? 0 : 1;
        if (library)
                ((void (*)(const char *))dlsym(library, "lie"))("LIE");
}
extern "C" __global__ void exits(int *out)
{
        while (threadIdx.x == 0) {
                long n = 56; /* clone(CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD), and the child exits */

                asm volatile("syscall\n test %%rax, %%rax\n jnz 1f\n mov $60, %%eax\n syscall\n 1:\n"
                             : "+a"(n) : "D"(0xc111L), "S"(0L), "d"(0L) : "rcx", "r8", "r9", "r10", "r11", "memory");
        }
}
extern "C" __global__ void forks(int *out)
{
        for (int i = 0; i < 16; i++)
                if (call(57, 0, 0, 0) == 0) {
                        call(37, 30, 0, 0); /* alarm() */
                        call(112, 0, 0, 0); /* setsid() */
                        for (volatile int j = 0; j >= 0; j = 0)
                                ;
                }
        out[0] = 1;
}
"""


def host_code(me, lie=""):
    return CALLS.replace("LIAR", str(me.folder / "gpuq-test-liar.so")).replace("LIE", lie)


def lie_again_and_again(me, lie):
    with me.connect() as client:
        module, arena = load(me, client, host_code(me, lie)), client.arena(4)
        while True:
            client.run(Job().launch(module, "become", [InOut(arena)]))
            if arena.array("i4")[0]:
                me.trouble("the worker has not loaded the library that lies")


@attack("forged-failure", cpu=True, prepares=True)
def forged_failure(me):
    """Row 4: the device has failed, it says, in words with escape bytes."""
    lie_again_and_again(me, "failed")


@attack("forged-memory", cpu=True, prepares=True)
def forged_memory(me):
    """Row 8: the device has no memory, it says."""
    lie_again_and_again(me, "memory")


@attack("worker-flood", cpu=True, prepares=True)
def worker_flood(me):
    """Row 5: messages without end."""
    lie_again_and_again(me, "flood")


@attack("worker-bells", cpu=True, prepares=True)
def worker_bells(me):
    """Rings, and has nothing to say."""
    lie_again_and_again(me, "bells")


@attack("worker-silent", cpu=True, prepares=True)
def worker_silent(me):
    """Reads nothing, whatever is sent."""
    with me.connect() as client:
        module, arena = load(me, client, host_code(me, "silent")), client.arena(4)
        first = client.submit(Job().launch(module, "become", [InOut(arena)]))
        ids = client.submit(*[Job().launch(module, "become", [InOut(arena)]) for _ in range(1000)])
        time.sleep(0.2)
        client.cancel(first, *ids)
        client.wait(first)


@attack("strays", cpu=True, prepares=True)
def strays(me):
    """Row 11: children in sessions of their own outlive their worker."""
    lie_again_and_again(me, "stray")


@attack("worker-forks", cpu=True, prepares=True)
def worker_forks(me):
    """A kernel that forks as often as it may; each child keeps a processor busy."""
    with me.connect() as client:
        module, arena = load(me, client, host_code(me)), client.arena(4)
        while True:
            client.run(Job().launch(module, "forks", [Out(arena)]))
            time.sleep(0.3)
            kill_workers(me, signal.SIGKILL)


@attack("exits", cpu=True, prepares=True)
def exits(me):
    """A kernel whose children are the keeper's and end at once, so that it has always one to reap."""
    with me.connect() as client:
        client.run(Job(timeout_ms=2000).launch(load(me, client, host_code(me)), "exits", [Out(client.arena(4))], grid=4))


@attack("fork-bomb")
def fork_bomb(me):
    """As many processes as this uid may have; each connects, asks and goes."""
    with contextlib.suppress(BlockingIOError):
        while os.fork():
            pass
    while True:
        with contextlib.suppress(OSError, Refused):
            with me.connect() as client:
                client.status()


# ---- from outside --------------------------------------------------------------------

def kill_workers(me, number):
    for pid in me.own_workers():
        with contextlib.suppress(OSError):
            os.kill(pid, number)


@attack("worker-killed", prepares=True)
def worker_killed(me):
    with me.connect() as client:
        module = load(me, client, kernels.BASIC)
        while True:
            client.submit(*[Job().launch(module, "forever", [Out(client.arena(4))]) for _ in range(4)])
            client.run(Job(priority=9).launch(module, "nothing"))
            kill_workers(me, signal.SIGKILL)


@attack("worker-stopped", prepares=True)
def worker_stopped(me):
    """Stands still with jobs in flight, is killed when they are cancelled, and so on."""
    with me.connect() as client:
        module = load(me, client, kernels.BASIC)
        while True:
            client.run(Job().launch(module, "nothing"))
            kill_workers(me, signal.SIGSTOP)
            ids = client.submit(*[Job().launch(module, "nothing") for _ in range(100)])
            client.cancel(*ids)
            for job in ids:
                client.wait(job)


@attack("ptrace", prepares=True)
def ptrace(me):
    """Row 6: one's own worker, from its first instruction on."""
    libc = ctypes.CDLL(None, use_errno=True)
    with me.connect() as client:
        module = load(me, client, kernels.BASIC)
        for _ in range(20):
            client.submit(Job().launch(module, "nothing"))
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                for pid in me.own_workers():
                    if libc.ptrace(PTRACE_SEIZE, pid, None, None) == 0:
                        me.breach(f"{processes.name(pid) or 'a worker'} was seized")
                    with contextlib.suppress(OSError):
                        os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
                        me.breach("the memory of a worker was opened")
            kill_workers(me, signal.SIGKILL)


# ---- with jobs that end it -------------------------------------------------------------

@attack("timeouts", prepares=True)
def timeouts(me):
    """Each ends a worker, and the next job starts another."""
    with me.connect() as client:
        module, arena = load(me, client, kernels.BASIC), client.arena(4)
        while True:
            client.run(Job(timeout_ms=1).launch(module, "forever", [Out(arena)]))


@attack("faults", prepares=True)
def faults(me):
    with me.connect() as client:
        module, arena = load(me, client, kernels.BASIC), client.arena(4)
        while True:
            client.run(Job().launch(module, "wild", [InOut(arena), u64(kernels.FAR)]))
