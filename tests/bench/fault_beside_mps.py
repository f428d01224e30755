#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One bad access beside four bystanders: under gpuq, under MPS, and in processes with contexts of their own.

    python3 tests/bench/fault_beside_mps.py [--rounds 20] [--json FILE]

Needs a GPU, and what GPUQ_STAGE and GPUQ_BUILD name as the system tests do (tests/gpu/pack.sh packs both). In
each round four bystanders run small jobs without end and compare every result; then one more process reads a
bad address. Told for each contender: bystanders that had an error, wrong results, and how long after the fault
each ran a right job again.
"""

import argparse
import ctypes
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "bench")]

N_BYSTANDERS = 4
N = 4096
PTX = b""".version 6.0
.target sm_50
.address_size 64
.visible .entry step(.param .u64 data, .param .u32 n)
{
        .reg .pred %p;
        .reg .b32 %r<6>;
        .reg .b64 %d<3>;
        ld.param.u64 %d0, [data];
        ld.param.u32 %r0, [n];
        mov.u32 %r1, %ctaid.x;
        mov.u32 %r2, %ntid.x;
        mov.u32 %r3, %tid.x;
        mad.lo.u32 %r1, %r1, %r2, %r3;
        setp.ge.u32 %p, %r1, %r0;
        @%p ret;
        mad.wide.u32 %d1, %r1, 4, %d0;
        ld.global.u32 %r4, [%d1];
        mad.lo.u32 %r5, %r4, 1664525, 1013904223;
        st.global.u32 [%d1], %r5;
        ret;
}
.visible .entry wild()
{
        .reg .b64 %d<2>;
        mov.u64 %d0, 0x7f0000000000;
        st.global.u32 [%d0], 1;
        ret;
}
\0"""
WILD = 'extern "C" __global__ void wild(int *data, unsigned long long index) { data[index] = 1; }\n'


# ---- a process with a context of its own ----

class CudaError(Exception):
    pass


class Own:
    """CUDA by its driver API, on device 0."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
        self.call("cuModuleLoadData", ctypes.byref(module), PTX)
        self.module = module
        self.data = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(self.data), ctypes.c_size_t(4 * N))

    def call(self, name, *arguments):
        error = getattr(self.cuda, name)(*arguments)
        if error:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(error, ctypes.byref(text))
            raise CudaError(f"{name}: {(text.value or b'?').decode()}")

    def function(self, name):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.module, name)
        return function

    def launch(self, function, *values):
        arguments = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        self.call("cuLaunchKernel", function, N // 128, 1, 1, 128, 1, 1, 0, None, arguments, None)
        self.call("cuCtxSynchronize")


def own_bystander():
    """A line for each job: when it ended, and `good`, `wrong` or the error; a new context after an error is a new process."""
    import numpy
    own = Own()
    step = own.function(b"step")
    values, back = numpy.arange(N, dtype=numpy.uint32), numpy.empty(N, numpy.uint32)
    while True:
        own.call("cuMemcpyHtoD_v2", own.data, ctypes.c_void_p(values.ctypes.data), ctypes.c_size_t(4 * N))
        own.launch(step, own.data, ctypes.c_uint32(N))
        own.call("cuMemcpyDtoH_v2", ctypes.c_void_p(back.ctypes.data), own.data, ctypes.c_size_t(4 * N))
        values = values * numpy.uint32(1664525) + numpy.uint32(1013904223)
        print(time.monotonic_ns(), "good" if (back == values).all() else "wrong", flush=True)


def own_guilty():
    own = Own()
    own.launch(own.function(b"wild"))


class OwnCrowd:
    """Bystanders that are started again when they end: what a user would have to do."""

    def __init__(self, folder, environment):
        self.environment = environment
        self.paths = [folder / f"bystander-{i}" for i in range(N_BYSTANDERS)]
        self.n_errors = 0
        self.processes = [self.start(path) for path in self.paths]

    def start(self, path):
        with open(path, "ab") as output:
            return subprocess.Popen([sys.executable, __file__, "--role", "bystander"], stdout=output, stderr=subprocess.DEVNULL,
                                    env=self.environment)

    def fault(self):
        subprocess.run([sys.executable, __file__, "--role", "guilty"], env=self.environment, capture_output=True)

    def tend(self):
        """Returns how many had ended."""
        ended = [i for i, process in enumerate(self.processes) if process.poll() is not None]
        for i in ended:
            self.processes[i] = self.start(self.paths[i])
        return len(ended)

    def good_times(self, i):
        lines = self.paths[i].read_text().splitlines()
        return [int(line.split()[0]) for line in lines if line.endswith(" good")]

    def n_wrong(self):
        return sum(path.read_text().count(" wrong") for path in self.paths)

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


# ---- gpuq ----

class GpuqCrowd:
    """Of four users, or of one as the guilty one is."""

    def __init__(self, same_user):
        from harness.daemon import Daemon
        from harness.load import Load, USERS
        self.daemon = Daemon(private=False, device=os.environ.get("GPUQ_TEST_DEVICE", "gpu")).start()
        self.guilty = USERS[0]
        users = [USERS[0]] * 4 if same_user else [uid + 100 for uid in USERS]
        self.load = Load(self.daemon, users=tuple(users), processes=1)
        self.load.progress()
        self.client = self.daemon.connect(uid=self.guilty)
        self.module = self.client.load(WILD)

    def fault(self):
        from harness.client import InOut, Job, u64
        completion = self.client.run(Job().launch(self.module, "wild", [InOut(self.client.arena(4)), u64(1 << 40)]))
        assert "wild" in completion.error.text, completion

    def tend(self):
        self.load.assert_well()
        errors = sum(n for code, n in self.load.codes().items() if code)
        new, self.n_errors = errors - getattr(self, "n_errors", 0), errors
        return new

    def good_times(self, i):
        entries = self.load.members[i].entries()
        return entries["ended_ns"][entries["code"] == 0].tolist()

    def n_wrong(self):
        return 0  # a wrong result ends its process, which tend() would have told

    def end(self):
        self.load.__exit__()
        self.daemon.stop()


# ---- rounds ----

def wait_for(condition, timeout_s=60):
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            sys.exit("fault_beside_mps: a bystander does not come back within a minute")
        time.sleep(0.001)


def rounds(crowd, n_rounds):
    errors, recovery_ms = 0, []
    for _ in range(n_rounds):
        before = [len(crowd.good_times(i)) for i in range(N_BYSTANDERS)]
        wait_for(lambda: all(len(crowd.good_times(i)) > before[i] + 5 for i in range(N_BYSTANDERS)))
        crowd.tend()
        at_ns = time.monotonic_ns()
        crowd.fault()

        def all_back():
            nonlocal errors
            errors += crowd.tend()
            return all(sum(t > after_ns for t in crowd.good_times(i)[-50:]) > 5 for i in range(N_BYSTANDERS))

        after_ns = time.monotonic_ns()
        wait_for(all_back)
        for i in range(N_BYSTANDERS):
            times = [t for t in crowd.good_times(i) if t > at_ns - 1_000_000_000]
            gaps = [(b - a) / 1e6 for a, b in zip(times, times[1:]) if b > at_ns]
            recovery_ms.append(max(gaps, default=0.0))
    recovery_ms.sort()
    return {"faults": n_rounds, "bystander_errors": errors, "wrong_results": crowd.n_wrong(),
            "longest_gap_p50_ms": statistics.median(recovery_ms),
            "longest_gap_p99_ms": recovery_ms[min(len(recovery_ms) - 1, int(0.99 * len(recovery_ms)))]}


def measure(name, make, n_rounds):
    with tempfile.TemporaryDirectory(prefix="gpuq-fault-") as folder:
        crowd = make(pathlib.Path(folder))
        try:
            return {"contender": name, **rounds(crowd, n_rounds)}
        finally:
            crowd.end()


def run(arguments):
    from services import Mps
    found = [measure("own contexts", lambda folder: OwnCrowd(folder, dict(os.environ)), arguments.rounds)]
    with tempfile.TemporaryDirectory(prefix="gpuq-mps-") as folder:
        mps = Mps(folder)
        if mps.problem:
            print(f"no MPS: {mps.problem}", file=sys.stderr)
        else:
            try:
                found.append(measure("MPS", lambda path: OwnCrowd(path, mps.environment()), arguments.rounds))
            finally:
                mps.end()
    for name, same_user in (("gpuq, other users", False), ("gpuq, the same user", True)):
        found.append(measure(name, lambda _folder: GpuqCrowd(same_user), arguments.rounds))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", help="write the result there too")
    parser.add_argument("--role", choices=["bystander", "guilty"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if arguments.role:
        return own_bystander() if arguments.role == "bystander" else own_guilty()

    found = run(arguments)
    print(f"{'':24} {'faults':>7} {'bystander errors':>17} {'wrong':>6} {'gap p50 ms':>11} {'gap p99 ms':>11}")
    for row in found:
        print(f"{row['contender']:24} {row['faults']:7} {row['bystander_errors']:17} {row['wrong_results']:6} "
              f"{row['longest_gap_p50_ms']:11.1f} {row['longest_gap_p99_ms']:11.1f}")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(found, indent=1))
    return None


if __name__ == "__main__":
    main()
