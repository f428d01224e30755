# SPDX-License-Identifier: Apache-2.0
"""Jobs and modules that are wrong: a clear error for each, and every other job untouched."""

import numpy
import pytest

from harness import kernels, place
from harness.client import F_ADD_SEALS, In, InOut, Job, Out, Refused, Scalar, Slice, f32, f64, i32, u64
from harness.kernels import assert_failed
from harness.messages import pb

N = 64


@pytest.fixture
def module(client):
    return client.load(kernels.BASIC)


@pytest.fixture(autouse=True)
def bystander(gpuqd):
    """A job of another session that runs while the test goes wrong, and then gives the right result."""
    client = gpuqd.connect()
    values = numpy.arange(N, dtype=numpy.int32)
    out, gate = client.arena(values.nbytes), kernels.Gate(client)
    job_id = client.submit(kernels.held_job(client.load(kernels.BASIC), client.array(values), out, N, gate))
    gate.wait_for()
    yield gate
    gate.open()
    assert client.wait(job_id).state == pb.DONE
    numpy.testing.assert_array_equal(out.array(numpy.int32), 3 * values)


def buffers(client):
    return client.array(numpy.arange(N, dtype=numpy.int32)), client.arena(4 * N)


# ---- kernels and arguments ----

def test_an_unknown_kernel_lists_those_there_are(client, module):
    completion = client.run(Job().launch(module, "no_such_kernel"))
    assert_failed(completion, pb.E_NOT_FOUND, "no_such_kernel", "add_one", "forever")


def test_an_unknown_module(client):
    assert_failed(client.run(Job().launch(999999, "copy")), pb.E_NOT_FOUND)


@pytest.mark.parametrize("drop", [1, 2, 3])
def test_too_few_arguments(client, module, drop):
    source, target = buffers(client)
    args = [In(source), Out(target), u64(N)][:3 - drop]
    assert_failed(client.run(Job().launch(module, "copy", args)), pb.E_INVALID, "copy", 3, 3 - drop)


def test_too_many_arguments(client, module):
    source, target = buffers(client)
    args = [In(source), Out(target), u64(N), i32(1)]
    assert_failed(client.run(Job().launch(module, "copy", args)), pb.E_INVALID, "copy", 3, 4)


def test_an_argument_of_the_wrong_size(client, module):
    source, target = buffers(client)
    args = [In(source), Out(target), i32(N)]
    completion = client.run(Job().launch(module, "copy", args))
    assert_failed(completion, pb.E_INVALID, "argument 3", "copy")
    # Kinds where they are known; else sizes.
    assert "i64" in completion.error.text or "8" in completion.error.text


def test_a_float_for_an_integer_of_the_same_size(client):
    module = client.builtin()
    out = client.arena(8 * N)
    args = [f64(2), In(out), Out(client.arena(8 * N)), f64(N)]
    assert_failed(client.run(Job().launch(module, "scale_f64", args)), pb.E_INVALID, "scale_f64")
    args = [u64(2), In(out), Out(client.arena(8 * N)), u64(N)]
    assert_failed(client.run(Job().launch(module, "scale_f64", args)), pb.E_INVALID, "scale_f64")


def test_a_scalar_for_a_buffer_and_a_buffer_for_a_scalar(client):
    module = client.builtin()
    x, y = client.arena(4 * N), client.arena(4 * N)
    assert_failed(client.run(Job().launch(module, "scale_f32", [f32(2), u64(4096), Out(y), u64(N)])),
                  pb.E_INVALID)
    assert_failed(client.run(Job().launch(module, "scale_f32", [In(x), In(x), Out(y), u64(N)])), pb.E_INVALID)


def test_a_pointer_that_is_no_buffers_is_null_or_refused(client, module):
    _source, target = buffers(client)
    client.run_well(Job().launch(module, "copy", [Scalar(bytes(8), pb.POINTER), Out(target), u64(0)]))
    for data in (b"\1" + bytes(7), bytes(4)):
        completion = client.run(Job().launch(module, "copy", [Scalar(data, pb.POINTER), Out(target), u64(0)]))
        assert_failed(completion, pb.E_INVALID, "argument 1")


def test_a_built_in_kernel_takes_no_null_pointer(client):
    job = Job().launch(client.builtin(), "sum_f32", [Scalar(bytes(8), pb.POINTER), Out(client.arena(4)), u64(N)])
    assert_failed(client.run(job), pb.E_INVALID, "argument 1")


def test_a_buffer_index_that_does_not_exist(client, module):
    source, target = buffers(client)
    message = kernels.copy_job(module, source, target, N).message
    del message.buffers[1:]
    assert_failed(client.run(message), pb.E_INVALID)


def test_a_kernel_index_that_does_not_exist(client, module):
    message = kernels.copy_job(module, *buffers(client), N).message
    del message.kernels[:]
    assert_failed(client.run(message), pb.E_INVALID)


# ---- buffers ----

@pytest.mark.parametrize("offset, length", [(0, 4 * N + 1), (4 * N + 1, 0), (4 * N, 1), (1 << 63, 1 << 63),
                                            (8, (1 << 64) - 8), ((1 << 64) - 1, 1)])
def test_a_slice_out_of_range(client, module, offset, length):
    source, target = buffers(client)
    job = kernels.copy_job(module, Slice(source.id, offset, length), target, 1)
    assert_failed(client.run(job), pb.E_INVALID)


def test_an_unknown_arena(client, module):
    job = kernels.copy_job(module, Slice(123456789, 0, 4), client.arena(4), 1)
    assert_failed(client.run(job), pb.E_NOT_FOUND)


def test_a_closed_arena(client, module):
    source, target = buffers(client)
    source.close()
    assert_failed(client.run(kernels.copy_job(module, source, target, N)), pb.E_NOT_FOUND)


def test_an_image_is_no_buffer(client, module):
    image = client.arena(4 * N, pb.IMAGE)
    job = kernels.copy_job(module, Slice(image.id, 0, 4 * N), client.arena(4 * N), N)
    completion = client.run(job)
    assert_failed(completion, completion.error.code)
    assert completion.error.code in (pb.E_INVALID, pb.E_NOT_FOUND)


@pytest.mark.parametrize("to_offset, from_offset, length", [(0, 0, 4 * N + 1), (4 * N, 0, 1), (0, 4 * N, 1),
                                                            ((1 << 64) - 4, 0, 8)])
def test_a_copy_beyond_its_buffers(client, to_offset, from_offset, length):
    source, target = buffers(client)
    job = Job().copy(target, source, length, to_offset, from_offset)
    assert_failed(client.run(job), pb.E_INVALID)


def test_a_copy_to_a_buffer_that_is_only_read(client):
    source, target = buffers(client)
    assert_failed(client.run(Job().copy(target, source, 4, direction=pb.IN)), pb.E_INVALID)


@pytest.mark.parametrize("length, width", [(4 * N + 4, 4), (3, 2), (4, 3), (4, 8), (5, 4)])
def test_a_fill_beyond_its_buffer_or_of_a_wrong_width(client, length, width):
    assert_failed(client.run(Job().fill(client.arena(4 * N), length, 1, width)), pb.E_INVALID)


# ---- library operations ----

def matrix_product(client, **changes):
    """4 x 4 matrices; libgpuq would refuse the changes itself."""
    job = Job()
    uses = {name: (InOut if name == "c" else In)(client.arena(64)) for name in "abc"}
    gemm = pb.Gemm(element=pb.SINGLE, m=4, n=4, k=4, batch=1, alpha=1,
                   **{name: pb.Matrix(buffer=job.buffer(use), ld=4) for name, use in uses.items()})
    for path, value in changes.items():
        *parents, field = path.split("__")
        setattr(getattr(gemm, parents[0]) if parents else gemm, field, value)
    job.operations.append(pb.Operation(gemm=gemm))
    return job


@pytest.mark.parametrize("changes, words", [
    ({"m": 5}, ["a needs 80 bytes", "has 64"]),
    ({"k": 5, "a__ld": 5}, ["a needs 80 bytes"]),
    ({"n": 5, "b__ld": 5, "c__ld": 5}, ["b needs 80 bytes"]),
    ({"c__ld": 5}, ["c needs 76 bytes"]),
    ({"c__offset": 2**64 - 4}, ["c needs 64 bytes at offset 18446744073709551612"]),
    ({"b__offset": 2}, ["offset 2 of b"]),
    ({"a__ld": 0}, ["ld of a is 0"]),
    ({"m": 0}, ["m is 0"]),
    ({"batch": 0}, ["batch is 0"]),
    ({"batch": 2**31}, ["batch is 2147483648"]),
    ({"batch": 2}, ["stride 0 of c", "overlap"]),
    ({"batch": 2, "c__stride": 2**63}, ["c needs 18446744073709551615 bytes"]),
    ({"element": 4}, ["type 4 is none of f16"]),
    ({"element": pb.F16, "tf32": True}, ["tf32 is for f32, not for f16"]),
    ({"c__transposed": True}, ["c cannot be transposed"]),
    ({"a__buffer": 3}, ["buffer 4 does not exist"]),
    ({"c__buffer": 0}, ["c overlaps a"]),
])
def test_a_matrix_product_outside_of_its_buffers(client, bystander, changes, words):
    assert_failed(client.run(matrix_product(client, **changes)), pb.E_INVALID, *words)
    if place.on_gpu():
        bystander.open()  # the first product of a worker waits there until nothing runs
    client.run_well(matrix_product(client))


def test_a_matrix_product_without_a_matrix(client):
    job = Job()
    job.operations.append(pb.Operation(gemm=pb.Gemm(m=1, n=1, k=1, batch=1)))
    assert_failed(client.run(job), pb.E_INVALID, "a matrix is missing")


def test_a_matrix_product_into_a_buffer_that_is_only_read(client):
    job = matrix_product(client)
    job.buffers[2] = In(job.buffers[2].slice)
    assert_failed(client.run(job), pb.E_INVALID, "gemm: c", "read-only")


def test_a_matrix_product_on_a_slice_that_is_not_aligned(client):
    job = matrix_product(client)
    job.buffers[0] = In(client.device_arena(128).slice(2, 64))
    assert_failed(client.run(job), pb.E_INVALID, "gemm: a", "not aligned")


def transform(client, **changes):
    """One of 8 complex numbers; libgpuq would refuse the changes itself."""
    job = Job()
    fft = pb.Fft(element=pb.SINGLE, lengths=[8], batch=1, to=job.buffer(Out(client.arena(64))))
    setattr(fft, "from", job.buffer(In(client.arena(64))))
    for field, value in changes.items():
        if field == "lengths":
            fft.lengths[:] = value
        else:
            setattr(fft, field, value)
    job.operations.append(pb.Operation(fft=fft))
    return job


@pytest.mark.parametrize("changes, words", [
    ({"lengths": [9]}, ["from needs 72 bytes", "has 64"]),
    ({"batch": 2}, ["from needs 128 bytes"]),
    ({"batch": 2**31 - 1, "lengths": [2**31 - 1]}, ["from needs 18446744073709551615 bytes"]),
    ({"element": pb.DOUBLE}, ["from needs 128 bytes"]),
    ({"form": pb.REAL_TO_COMPLEX, "lengths": [16]}, ["to needs 72 bytes"]),
    ({"form": pb.COMPLEX_TO_REAL, "lengths": [15], "to_offset": 8}, ["to needs 60 bytes at offset 8"]),
    ({"from_offset": 2**64 - 8}, ["from needs 64 bytes at offset 18446744073709551608"]),
    ({"from_offset": 4}, ["offset 4 of from"]),
    ({"lengths": []}, ["0 axes"]),
    ({"lengths": [2, 2, 2, 1]}, ["4 axes"]),
    ({"lengths": [0]}, ["length 0 of axis 1"]),
    ({"lengths": [2**16, 2**16]}, ["length 65536 of axis 2"]),
    ({"batch": 0}, ["batch is 0"]),
    ({"element": pb.F16}, ["f32 or f64"]),
    ({"form": 3}, ["known form"]),
    ({"from": 2}, ["buffer 3 does not exist"]),
    ({"from": 0}, ["to overlaps from"]),
    ({"to": 1}, ["to overlaps from"]),
])
def test_a_fourier_transform_outside_of_its_buffers(client, changes, words):
    assert_failed(client.run(transform(client, **changes)), pb.E_INVALID, *words)


def test_a_fourier_transform_into_a_buffer_that_is_only_read(client):
    job = transform(client)
    job.buffers[0] = In(job.buffers[0].slice)
    assert_failed(client.run(job), pb.E_INVALID, "fft: to", "read-only")


@pytest.mark.parametrize("size", [0, 1 << 63, (1 << 64) - 1])
def test_an_arena_of_a_useless_size(client, size):
    for place in (pb.HOST, pb.DEVICE, pb.IMAGE):
        with pytest.raises(Refused) as refused:
            client.arena(size, place)
        assert refused.value.code in (pb.E_INVALID, pb.E_QUOTA, pb.E_MEMORY)


# ---- geometry ----

@pytest.mark.parametrize("grid, block", [(1, 1025), (1, (1, 1025)), (1, (1, 1, 65)), (1, (64, 32)),
                                         ((1, 65536), 1), ((1, 1, 65536), 1), (1 << 31, 1),
                                         (1, 0xffffffff), (1, (1 << 16, 1 << 16))])
def test_grid_or_block_beyond_the_device(client, module, grid, block):
    completion = client.run(Job().launch(module, "nothing", grid=grid, block=block))
    assert_failed(completion, completion.error.code, "nothing")
    assert completion.error.code in (pb.E_INVALID, pb.E_LAUNCH)


def test_shared_memory_beyond_the_device(client, module):
    completion = client.run(Job().launch(module, "nothing", shared=64 << 20))
    assert completion.state == pb.FAILED and completion.error.code in (pb.E_INVALID, pb.E_LAUNCH)


def test_a_cooperative_grid_that_cannot_be_resident(client, module):
    completion = client.run(Job().launch(module, "nothing", grid=1 << 24, block=256, cooperative=True))
    assert completion.state == pb.FAILED and completion.error.code in (pb.E_INVALID, pb.E_LAUNCH)


# ---- the rest of a job's head ----

@pytest.mark.parametrize("fields, code", [
    ({"priority": 101}, pb.E_INVALID), ({"priority": -101}, pb.E_INVALID),
    ({"label": "x" * 65}, pb.E_INVALID), ({"device": 1000}, pb.E_NOT_FOUND)])
def test_a_field_out_of_range(client, module, fields, code):
    completion = client.run(Job(**fields).launch(module, "nothing"))
    assert completion.state == pb.FAILED
    assert completion.error.code in (code, pb.E_INVALID)


def test_a_job_of_nothing_is_done(client):
    assert client.run(Job()).state == pb.DONE


# ---- dependencies ----

def test_a_dependency_on_an_unknown_job(client, module):
    job = Job(after=[(client.session << 32) - 5]).launch(module, "nothing")
    assert_failed(client.run(job), pb.E_DEPENDENCY)


def test_a_dependency_on_itself_or_on_a_later_job_is_a_cycle(client, module):
    next_id = client.session << 32 | client.tag + 1
    assert_failed(client.run(Job(after=[next_id]).launch(module, "nothing")), pb.E_CYCLE)

    next_id = client.session << 32 | client.tag + 1
    first, second = client.submit(Job(after=[next_id + 1]).launch(module, "nothing"),
                                  Job(after=[next_id]).launch(module, "nothing"))
    assert_failed(client.wait(first), pb.E_CYCLE)
    assert_failed(client.wait(second), pb.E_DEPENDENCY)


def test_a_dependency_on_a_failed_job(client, module):
    failed, after, after_that = client.submit(
        Job().launch(module, "no_such_kernel"),
        Job(after=[client.session << 32 | client.tag + 1]).launch(module, "nothing"),
        Job(after=[client.session << 32 | client.tag + 2]).launch(module, "nothing"))
    assert_failed(client.wait(failed), pb.E_NOT_FOUND)
    assert_failed(client.wait(after), pb.E_DEPENDENCY)
    assert_failed(client.wait(after_that), pb.E_DEPENDENCY)


# ---- modules ----

def refused_load(client, *args, **options):
    with pytest.raises(Refused) as refused:
        client.load(*args, **options)
    return refused.value


def test_source_that_does_not_compile_gives_the_compilers_log(client):
    error = refused_load(client, 'extern "C" __global__ void k() { undeclared_name = 1; }', name="bad.cu")
    assert error.code == pb.E_COMPILE
    assert "undeclared_name" in error.text and "bad.cu" in error.text


@pytest.mark.parametrize("option", ["-I/etc", "-include/etc/passwd", "-o/tmp/x", "--unknown", "-DA=1;rm -rf", ""])
def test_an_option_that_is_not_allowed(client, bystander, option):
    if option == "-DA=1;rm -rf":
        bystander.open()
        client.load(kernels.BASIC, options=[option])  # never sees a shell
        return
    assert refused_load(client, kernels.BASIC, options=[option]).code in (pb.E_INVALID, pb.E_COMPILE)


PTX = b""".version 6.0
.target sm_50
.address_size 64
.visible .entry nothing()
{
        ret;
}
"""


def test_ptx(client, bystander):
    bystander.open()
    module = client.load(PTX, name="nothing.ptx")
    client.run_well(Job().launch(module, "nothing"))


def test_ptx_that_is_wrong(client):
    assert refused_load(client, PTX.replace(b"ret;", b"retreat;")).code == pb.E_COMPILE


@pytest.mark.parametrize("data", [b"\x7fELF" + b"\0" * 200, b"\x7fELF", b"\x50\xed\x55\xba" + b"\xff" * 100])
def test_a_module_that_is_not_a_module(client, data):
    error = refused_load(client, data)
    assert error.code in (pb.E_IMAGE, pb.E_COMPILE) and error.text


@pytest.mark.parametrize("format", [pb.CUBIN, pb.FATBIN, pb.PTX])
def test_a_module_of_another_format_than_said(client, format):
    error = refused_load(client, b"certainly not " * 20, format=format)
    assert error.code in (pb.E_IMAGE, pb.E_COMPILE)


def test_an_image_that_is_not_sealed_shorter_than_said_or_unknown(client):
    unsealed = client.image(kernels.BASIC.encode(), seals=0)
    for image, length in ((unsealed.id, len(kernels.BASIC)), (424242, 10)):
        with pytest.raises(Refused) as refused:
            client.call(module_load=pb.ModuleLoad(image=image, length=length))
        assert refused.value.code in (pb.E_INVALID, pb.E_NOT_FOUND)
    short = client.image(b"x" * 10)
    with pytest.raises(Refused) as refused:
        client.call(module_load=pb.ModuleLoad(image=short.id, length=11))
    assert refused.value.code == pb.E_INVALID


def test_a_host_arena_cannot_be_resized(client):
    import fcntl
    import os
    arena = client.arena(4096)
    with pytest.raises(OSError):
        os.ftruncate(arena.fd, 0)
    with pytest.raises(OSError):
        os.ftruncate(arena.fd, 1 << 30)
    with pytest.raises(OSError):
        fcntl.fcntl(arena.fd, F_ADD_SEALS, 8)
