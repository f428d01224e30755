# SPDX-License-Identifier: Apache-2.0
"""Bad input: each an exception that says what to do, and the client stays usable."""

import os
import signal
import sys
import threading

import numpy as np
import pytest

from conftest import SOURCE
from harness.patience import until

N = 64
CONFIG = (1, 64)


@pytest.fixture
def arrays():
    return [np.ones(N, np.float32), np.ones(N, np.float32), np.zeros(N, np.float32)]


def works(gpuq, add, a, b, c):
    add.run(CONFIG, gpuq.In(a), gpuq.In(b), gpuq.Out(c), N)
    return (np.asarray(c) == np.asarray(a) + np.asarray(b)).all()


@pytest.mark.parametrize("wrap", ["In", "Out"])
def test_a_non_contiguous_array(gpuq, add, arrays, wrap):
    a, b, c = arrays
    strided = np.zeros(2 * N, np.float32)[::2]
    args = (gpuq.In(strided), gpuq.In(b), gpuq.Out(c)) if wrap == "In" else (gpuq.In(a), gpuq.In(b), gpuq.Out(strided))
    with pytest.raises(ValueError, match=r"contiguous.*numpy\.ascontiguousarray"):
        add.run(CONFIG, *args, N)
    with pytest.raises(ValueError, match="ascontiguousarray"):
        add.run(CONFIG, gpuq.In(gpuq.zeros(2 * N, np.float32)[::2]), gpuq.In(b), gpuq.Out(c), N)
    assert works(gpuq, add, *arrays)


def test_an_object_dtype(gpuq, add, arrays):
    with pytest.raises(TypeError, match=r"Python objects.*astype"):
        add.run(CONFIG, gpuq.In(arrays[0].astype(object)), gpuq.In(arrays[1]), gpuq.Out(arrays[2]), N)
    with pytest.raises(TypeError, match=r"Python objects.*astype"):
        gpuq.array(["a", None])
    with pytest.raises(TypeError, match=r"Python objects"):
        gpuq.zeros(4, object)
    with pytest.raises(TypeError, match=r"byte order.*newbyteorder"):
        add.run(CONFIG, gpuq.In(arrays[0].astype(">f4")), gpuq.In(arrays[1]), gpuq.Out(arrays[2]), N)


def test_a_number_below_zero_where_a_kernel_counts(gpuq, add, arrays):
    a, b, c = arrays
    counts = gpuq.module("__global__ void k(size_t n, unsigned long long m, unsigned i) {}")["k"]
    for bad in ((-1, 0, 0), (0, -1, 0), (0, 0, -1)):
        with pytest.raises(OverflowError, match="-1 is out of range"):
            counts.run(CONFIG, *bad)
    with pytest.raises(OverflowError, match=r"argument 4 \(`u64:n`\): -1 is out of range"):
        gpuq.builtin()["add_f32"].run(CONFIG, gpuq.In(a), gpuq.In(b), gpuq.Out(c), -1)
    assert works(gpuq, add, *arrays)


@pytest.mark.parametrize("code", [None, 5, ["__global__ void k() {}"]])
def test_code_that_is_none(gpuq, code):
    with pytest.raises(TypeError, match=f"source or PTX as str.*not {type(code).__name__}"):
        gpuq.module(code)


def test_a_file_name_is_not_taken_for_code(gpuq, tmp_path):
    for name in ("kernel.cu", "some/kernel.ptx", "kernel.cubin", __file__):
        with pytest.raises(gpuq.InvalidError, match="file name: read the file and pass its contents"):
            gpuq.module(name)
    with pytest.raises(TypeError, match="read the file and pass its contents"):
        gpuq.module(tmp_path / "kernel.cu")
    gpuq.module('extern "C" __global__ void k() {} // kernel.cu')


def test_device_memory_set_from_another_shape(gpuq):
    x = gpuq.device_array(3)
    with pytest.raises(ValueError, match=r"shape \(4,\) does not fill one of shape \(3,\)"):
        x.set(np.zeros(4))
    assert (x.set(np.arange(3.0)).get() == [0, 1, 2]).all()


def test_a_wrong_dtype_for_the_kernels_argument(gpuq, add, arrays):
    a, b, c = arrays
    with pytest.raises(TypeError, match=r"argument 1 \(`const float \*a`\) must be float32.*array of float64.*astype\(numpy.float32\)"):
        add.run(CONFIG, gpuq.In(a.astype(np.float64)), gpuq.In(b), gpuq.Out(c), N)
    with pytest.raises(TypeError, match="argument 2.*float32.*int32"):
        add.run(CONFIG, gpuq.In(a), gpuq.to_device(b.astype(np.int32)), gpuq.Out(c), N)
    with pytest.raises(TypeError, match="argument 1.*float64.*float32"):
        gpuq.builtin()["add_f64"].run(CONFIG, gpuq.In(a), gpuq.In(b), gpuq.Out(c), N)
    assert works(gpuq, add, *arrays)


def test_a_missing_out(gpuq, add, arrays):
    a, b, c = arrays
    with pytest.raises(TypeError, match=r"argument 3 \(`float \*c`\).*gpuq\.Out\(a\)"):
        add.run(CONFIG, a, b, c, N)
    with pytest.raises(TypeError, match=r"argument 3 \(`out:c:f32:n`\).*gpuq\.Out\(a\)"):
        gpuq.builtin()["add_f32"].run(CONFIG, gpuq.In(a), gpuq.In(b), gpuq.In(c), N)
    with pytest.raises(TypeError, match=r"argument 1.*only read.*gpuq\.In"):
        add.run(CONFIG, gpuq.Out(a), b, gpuq.Out(c), N)
    with pytest.raises(TypeError, match=r"add takes 4 arguments \(const float \*a.*not 3"):
        add.run(CONFIG, a, b, N)
    with pytest.raises(ValueError, match="read-only.*copy"):
        c.flags.writeable = False
        add.run(CONFIG, a, b, gpuq.Out(c), N)


def test_a_length_beyond_an_array(gpuq, add, arrays):
    a, b, c = arrays
    scale, guard = gpuq.builtin()["scale_f32"], gpuq.array(np.full(1000, 7, np.float32))
    with pytest.raises(gpuq.InvalidError, match=r"scale_f32: argument 3 needs 4000 bytes \(1000 elements of 4 bytes\), "
                                                "but its buffer has 40"):
        scale.run(CONFIG, 2.0, gpuq.In(np.ones(1000, np.float32)), gpuq.Out(guard[:10]), 1000)
    assert (guard == 7).all()
    prepared = scale.prepare(CONFIG, 2.0, gpuq.In(np.ones(10, np.float32)), gpuq.Out(guard[:10]), 10)
    with pytest.raises(gpuq.InvalidError, match="argument 2 of scale_f32 needs 4000 bytes"):
        prepared.fire(n=1000).wait()
    prepared.fire(n=5).wait()
    assert (guard[10:] == 7).all() and works(gpuq, add, *arrays)


@pytest.mark.cpu  # a GPU waits for ever: what stops such a job is its timeout
def test_masks_of_a_warp_that_cannot_meet(gpuq, add, arrays):
    bad = gpuq.module("__global__ void k() { if (threadIdx.x < 16) __syncwarp(); __syncthreads(); }")["k"]
    job = bad.submit((1, 32))
    with pytest.raises(gpuq.KernelFault):
        job.wait()
    assert "lanes 0x0000ffff wait in __syncwarp() with mask 0xffffffff for lanes 0xffff0000" in job.result.output
    assert works(gpuq, add, *arrays)


def test_a_float_where_an_int32_is_wanted(gpuq, add, arrays):
    a, b, c = arrays
    with pytest.raises(TypeError, match=r"argument 4 \(`int n`\) must be an integer.*64\.0.*int\(x\)"):
        add.run(CONFIG, a, b, gpuq.Out(c), float(N))
    with pytest.raises(TypeError, match=r"argument 4 .*float32.*numpy\.int32"):
        add.run(CONFIG, a, b, gpuq.Out(c), np.float32(N))
    assert works(gpuq, add, *arrays)


def test_no_launch_configuration(gpuq, add, arrays):
    with pytest.raises(TypeError, match=r"LaunchConfig"):
        add.run(*arrays, N)
    for bad in ({"grid": 0}, {"grid": (1, 2, 3, 4)}, {"block": -1}, {"shmem_size": -1}):
        with pytest.raises(ValueError):
            gpuq.LaunchConfig(**{"grid": 1, "block": 1, **bad})
    with pytest.raises(TypeError, match="grid"):
        gpuq.LaunchConfig(1.5, 1)
    with pytest.raises(gpuq.Error, match="(?i)thread|block"):
        add.run((1, 5000), arrays[0], arrays[1], gpuq.Out(arrays[2]), N)


def test_an_array_of_a_closed_client(gpuq, add, arrays):
    client = gpuq.connect()
    a = client.array(arrays[0])
    client.close()
    with pytest.raises(gpuq.ClosedError, match="client is closed.*gpuq.array"):
        add.run(CONFIG, gpuq.In(a), gpuq.In(arrays[1]), gpuq.Out(arrays[2]), N)
    with pytest.raises(ConnectionError, match=r"gpuq\.connect\(\)"):
        client.zeros(4)
    assert a.sum() == N and works(gpuq, add, *arrays)


def test_a_client_used_after_fork(gpuq, arrays):
    client = gpuq.connect()
    kernel = client.module(SOURCE)["add"]
    job = client.job()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = []
            for action in (client.status, lambda: client.zeros(4), lambda: works(gpuq, kernel, *arrays), job.submit):
                try:
                    action()
                    told.append("nothing raised")
                except gpuq.ForkedError as error:
                    told.append(str(error))
                except BaseException as error:
                    told.append(f"{type(error)} {error}")
            os.write(writer, "\n".join(told).encode())
        finally:
            os._exit(0)
    os.close(writer)
    told = os.read(reader, 10000).decode().split("\n")
    os.close(reader)
    os.waitpid(child, 0)
    assert len(told) == 4 and all("gpuq.connect() in the child" in line for line in told), told
    assert works(gpuq, kernel, *arrays)


def test_the_daemon_going_away_in_mid_job(gpuq, gpuqd, module, start_gpuqd, monkeypatch):
    out = np.zeros(1, np.int32)
    client = gpuq.connect()
    job = client.module(SOURCE)["forever"].submit((1, 1), gpuq.Out(out))
    waiting = module["forever"].submit((1, 1), gpuq.Out(out)).future()
    until(lambda: any(entry.state == "running" for entry in gpuq.queue()), "a job to run")
    threading.Timer(0.1, gpuqd.stop).start()
    with pytest.raises(gpuq.ClosedError):
        job.wait(60)
    with pytest.raises(ConnectionError):
        waiting.result(60)
    until(lambda: not gpuqd.folder.exists(), "gpuqd to be gone")
    with pytest.raises(gpuq.ClosedError, match=r"gpuq\.connect\(\)"):
        client.zeros(4)
    with pytest.raises(gpuq.ConnectError, match=str(gpuqd.socket)):
        gpuq.zeros(4)

    monkeypatch.setenv("GPUQ_SOCKET", str(start_gpuqd().socket))
    gpuq.builtin()["add_f32"].run(CONFIG, *np.ones((2, N), np.float32), gpuq.Out(np.zeros(N, np.float32)), N)


@pytest.fixture
def ctrl_c():
    """Ctrl-C as in a terminal: a shell has the jobs that it runs in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def is_in(thread, function):
    """Is the thread in this function, or in what that calls?"""
    frame = sys._current_frames()[thread.ident]
    while frame and frame.f_code is not function.__code__:
        frame = frame.f_back
    return frame is not None


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("way", ["wait", "run", "beside", "future"])
def test_ctrl_c_while_waiting_cancels_the_job(gpuq, module, add, arrays, way):
    out = np.zeros(1, np.int32)
    other = module["thrice"].submit((1, 1), gpuq.In(out), gpuq.Out(np.zeros(1, np.int32))).future() if way == "beside" else None
    job = gpuq.job(label="to be interrupted").launch(module["forever"], (1, 1), gpuq.Out(out))

    def interrupt():
        until(lambda: any(entry.label and entry.state == "running" for entry in queue_of.queue()), "the job to run")
        until(lambda: is_in(threading.main_thread(), type(job)._wait), "the main thread to wait for it")
        os.kill(os.getpid(), signal.SIGINT)

    with gpuq.connect() as queue_of:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            if way == "run":
                job.run()
            elif way == "future":
                with gpuq.Executor() as executor:
                    try:
                        executor.submit(job).result()
                    finally:
                        executor.shutdown(cancel_futures=True)
            else:
                job.submit()
                if way == "beside":
                    job.future()
                job.wait()
        thread.join()
    with pytest.raises(gpuq.CancelledError):
        job.wait(60)
    assert job.state == "cancelled" and (other is None or other.result(60))
    assert works(gpuq, add, *arrays)


def test_no_daemon_there(gpuq, tmp_path):
    with pytest.raises(gpuq.ConnectError, match=f"{tmp_path}.*gpuqd"):
        gpuq.connect(tmp_path / "none")
    with pytest.raises(ConnectionError):
        gpuq.connect(tmp_path / "none")


def test_a_quota_is_named(gpuq, start_gpuqd):
    client = gpuq.connect(start_gpuqd(arena_bytes="4M").socket)
    with pytest.raises(gpuq.QuotaError) as caught:
        client.zeros(1 << 24, np.uint8)
    assert caught.value.name == "GPUQ_E_QUOTA" and caught.value.code == -6 and "arena" in str(caught.value)


def test_errors_carry_text_code_and_name_and_pickle(gpuq):
    import pickle
    with pytest.raises(gpuq.CompileError) as caught:
        gpuq.module('extern "C" __global__ void k() { broken; }')
    error = pickle.loads(pickle.dumps(caught.value))
    assert type(error) is gpuq.CompileError and error.name == "GPUQ_E_COMPILE" and error.code == -8
    assert error.text == str(caught.value) and "broken" in error.text
    assert issubclass(gpuq.CancelledError, gpuq.Error) and issubclass(gpuq.TimeoutError, TimeoutError)


@pytest.mark.parametrize("options,error,text", [
    ({"label": 5}, TypeError, "label must be a str, not 5"), ({"label": "a\0b"}, ValueError, "null"),
    ({"priority": "x"}, TypeError, "priority must be an int, not 'x'"), ({"priority": (1 << 32) + 5}, ValueError, "priority"),
    ({"device": 1 << 32}, ValueError, "device"), ({"device": -2}, ValueError, "device"), ({"device": "0"}, TypeError, "device"),
    ({"timeout": "1"}, TypeError, "timeout must be a number"),
])
def test_wrong_options_are_named(gpuq, options, error, text):
    with pytest.raises(error, match=text):
        gpuq.job(**options)


@pytest.mark.parametrize("make", ["zeros", "empty", "device_array"])
@pytest.mark.parametrize("shape", [2**61 + 1, 2**62, (2**31, 2**31), 2**60])
def test_a_size_beyond_64_bits(gpuq, make, shape):
    with pytest.raises(ValueError, match="EiB, more than any memory"):
        getattr(gpuq, make)(shape)


def test_masked_arrays_are_refused(gpuq, add, arrays):
    masked, (_, b, c) = np.ma.masked_less(np.arange(N, dtype=np.float32), 3), arrays
    device = gpuq.device_array(N, np.float32)
    for use in (lambda: gpuq.array(masked), lambda: gpuq.to_device(masked), lambda: device.set(masked),
                lambda: gpuq.job().copy(device, masked), lambda: add.run(CONFIG, gpuq.In(masked), gpuq.In(b), gpuq.Out(c), N)):
        with pytest.raises(TypeError, match="mask.*filled"):
            use()
    assert works(gpuq, add, masked.filled(0), b, c)
