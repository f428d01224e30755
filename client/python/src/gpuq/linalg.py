# SPDX-License-Identifier: Apache-2.0
"""Library operations: what a library of gpuqd's machine computes as an operation of a job.

Matrix products: cuBLASLt, a BLAS, or a kernel of gpuqd. Fourier transforms: cuFFT or FFTW.
"""

from __future__ import annotations

import math
import typing
from ctypes import byref

import numpy as np

from . import _native as native
from . import arrays
from . import client as clients
from . import memory
from .argument import In, InOut
from .device import DeviceArray
from .jobs import Job, Nothing

_TYPES = {"float16": 0, "bfloat16": 1, "float32": 2, "float64": 3}


def _client_of(client, *given):
    held = next((a for a in given if isinstance(a, DeviceArray)), None)
    return client or (held._memory.client if held is not None else clients.default_client())


def _new_like(a, shape, dtype, client):
    if isinstance(a, DeviceArray):
        return DeviceArray._new(client, shape, dtype, a.device, False)
    return arrays.empty(shape, dtype, client=client)


def _check_array(operation: str, name: str, array) -> None:
    if not isinstance(array, (np.ndarray, DeviceArray)):
        raise TypeError(f"{operation}: {name} must be a numpy array or a DeviceArray, not {type(array).__name__}")


class Stored(typing.NamedTuple):
    """How the matrices of an array lie in memory, in elements."""

    ld: int
    stride: int
    transposed: bool
    extent: int  # from the first element to the end of the last


class Operand(Nothing):
    """Takes the place of a parameter for a matrix."""

    def __init__(self, name: str, dtype: np.dtype):
        super().__init__(f"matmul: {name}")
        self.name = name
        self.dtype = dtype

    def check_dtype(self, dtype: np.dtype) -> None:
        if dtype != self.dtype:
            raise TypeError(f"{self.where} has dtype {dtype}, but a has {self.dtype}")

    def check_offset(self, offset: int) -> None:
        if offset % self.dtype.itemsize:
            raise ValueError(f"{self.where}: its address is not a multiple of {self.dtype.itemsize} bytes")


def _steps(a: np.ndarray) -> list[int] | None:
    """Its strides in elements; those of axes with one element are as if it were contiguous. None: not whole ones."""
    steps, step = [], 1
    for length, stride in zip(reversed(a.shape), reversed(a.strides)):
        if length != 1:
            if stride < 0 or stride % a.itemsize:
                return None
            step = stride // a.itemsize
        steps.insert(0, step)
        step *= length
    return steps


def _stored(a) -> Stored | None:
    """None: its elements lie in another way."""
    rows, columns = a.shape[-2:]
    batch = math.prod(a.shape[:-2])
    if isinstance(a, DeviceArray):
        return Stored(columns, rows * columns if batch > 1 else 0, False, a.size)
    steps = _steps(a)
    if steps is None or any(steps[i] != steps[i + 1] * a.shape[i + 1] for i in range(len(steps) - 3)):
        return None
    stride = steps[-3] if batch > 1 else 0
    for transposed, ld, one, n_rows, n in ((False, steps[-2], steps[-1], rows, columns), (True, steps[-1], steps[-2], columns, rows)):
        if (one == 1 or n == 1) and ld >= n:
            return Stored(ld, stride, transposed, (batch - 1) * stride + (n_rows - 1) * ld + n)
    return None


def _place(job: Job, packer: Operand, a, direction: int) -> tuple[native.Matrix, object]:
    """The matrix for the library, and the array as it is stored."""
    held = memory.of(a) if isinstance(a, np.ndarray) else None
    stored = _stored(a)
    if direction == native.IN and held is None and (stored is None or stored.extent != a.size):
        a = np.ascontiguousarray(a)
        stored = _stored(a)
    if stored is None or (direction != native.IN and stored.transposed):
        raise ValueError(f"{packer.where}: its rows must be contiguous, and one behind the other")
    if stored.transposed:
        a = a.swapaxes(-1, -2)
    if held is None or a.flags.c_contiguous:
        handle = job._handle_of(packer, a, direction)[0]
    else:
        packer.check_dtype(a.dtype)
        if direction != native.IN:
            job._outputs.append(a)
        handle = job._part(packer, held, a.__array_interface__["data"][0] - held.address, stored.extent * a.itemsize)
    return native.Matrix(handle, 0, stored.ld, stored.stride, stored.transposed), a


def _check(a, b, out) -> tuple[int, int, int, tuple[int, ...]]:
    """m, n, k, and the shape of the batch."""
    for name, array in (("a", a), ("b", b), ("out", out)):
        _check_array("matmul", name, array)
        if len(array.shape) < 2:
            raise ValueError(f"matmul: {name} must have at least two axes, not shape {array.shape}")
    (m, k), (k_of_b, n), batch = a.shape[-2:], b.shape[-2:], out.shape[:-2]
    if k != k_of_b or tuple(out.shape[-2:]) != (m, n):
        raise ValueError(f"matmul: the shapes {a.shape} x {b.shape} -> {out.shape} do not fit together")
    if 0 in (m, n, k, *batch):
        raise ValueError(f"matmul: the shapes {a.shape} x {b.shape} -> {out.shape} have no elements")
    for name, array in (("a", a), ("b", b)):
        if array.shape[:-2] not in ((), batch):
            raise ValueError(f"matmul: {name} has shape {array.shape}: its batch must be that of out, {out.shape}, or none")
    return m, n, k, batch


def append(job: Job, a, b, out, alpha: float, beta: float, tf32: bool) -> Job:
    """Job.matmul()"""
    handle = job._building()
    m, n, k, batch = _check(a, b, out)
    dtype = np.dtype(a.dtype)
    if dtype.name not in _TYPES:
        raise TypeError(f"matmul: dtype {dtype} is none of {', '.join(_TYPES)}")
    gemm = native.Gemm(_TYPES[dtype.name], bool(tf32), m, n, k, math.prod(batch), alpha, beta)
    places = []
    for name, letter, array in (("a", "a", a), ("b", "b", b), ("out", "c", out)):
        direction = native.IN if array is not out else native.INOUT if beta else native.OUT
        packer = Operand(name, dtype)
        matrix, array = _place(job, packer, array, direction)
        setattr(gemm, letter, matrix)
        places.append((name, array, direction, packer.where))
    job._client._check(native.job_gemm(handle, byref(gemm)))
    job._record(*places)
    return job


def matmul(a, b, out=None, *, alpha: float = 1, beta: float = 0, tf32: bool = False, client=None, **options):
    """Multiply matrices and wait: out = alpha a b + beta out. Returns `out`.

    `a`, `b`: arrays of shape (m, k) and (k, n), or of a batch of these, of dtype float16, bfloat16 (of ml_dtypes),
    float32 or float64. `out`: None: a new DeviceArray if one of them is one, else a new Array; `beta` must be 0 then. Transposed
    views such as `a.T` need no copy. `tf32`: float32 may be rounded to TF32, which is faster. `options`: as for `gpuq.job`.
    """
    client = _client_of(client, a, b, out)
    if out is None:
        if beta != 0:
            raise ValueError(f"matmul: beta={beta} adds to what out holds, and there is no out: give `out`, or leave out `beta`")
        out = _new_out(a, b, client)
    client.job(**options).matmul(a, b, out, alpha=alpha, beta=beta, tf32=tf32).run()
    return out


def _new_out(a, b, client):
    for name, array in (("a", a), ("b", b)):
        _check_array("matmul", name, array)
    if min(len(np.shape(a)), len(np.shape(b))) < 2:
        raise ValueError(f"matmul: a and b must have at least two axes, not shapes {np.shape(a)} and {np.shape(b)}")
    shape = (*(a.shape[:-2] or b.shape[:-2]), a.shape[-2], b.shape[-1])
    return _new_like(b if isinstance(b, DeviceArray) else a, shape, a.dtype, client)


# ---- Fourier transforms ----

_REAL = {"float32": 2, "complex64": 2, "float64": 3, "complex128": 3}
_COMPLEX, _TO_COMPLEX, _TO_REAL = range(3)
_SCALE_BLOCKS, _SCALE_THREADS = 256, 256


def _check_side(name: str, array) -> None:
    _check_array("fft", name, array)
    if np.dtype(array.dtype).name not in _REAL:
        raise TypeError(f"fft: dtype {array.dtype} of {name} is none of {', '.join(_REAL)}")
    if not array.shape:
        raise ValueError(f"fft: {name} must have at least one axis")


def _check_fft(a, out, ndim: int) -> tuple[int, tuple[int, ...], int]:
    """The form, the lengths of the axes and the number of transforms."""
    _check_side("a", a)
    _check_side("out", out)
    real_a, real_out = (np.dtype(array.dtype).kind == "f" for array in (a, out))
    if (real_a and real_out) or _REAL[np.dtype(a.dtype).name] != _REAL[np.dtype(out.dtype).name]:
        raise TypeError(f"fft: from {a.dtype} to {out.dtype} is no transform")
    if not 1 <= ndim <= 3 or ndim > len(a.shape):
        raise ValueError(f"fft: ndim={ndim} must be 1 to 3, and at most the number of axes of a, {len(a.shape)}")
    shape = tuple(out.shape if real_out else a.shape)
    half = (*shape[:-1], shape[-1] // 2 + 1)
    wanted = (half if real_out else shape, half if real_a else shape)
    if (tuple(a.shape), tuple(out.shape)) != wanted:
        raise ValueError(f"fft: the shapes {a.shape} -> {out.shape} do not fit together: expected {wanted[0]} -> {wanted[1]}")
    if 0 in shape:
        raise ValueError("fft: the arrays have no elements")
    return (_TO_COMPLEX if real_a else _TO_REAL if real_out else _COMPLEX), shape[len(shape) - ndim:], math.prod(shape[:-ndim])


def append_fft(job: Job, a, out, ndim: int, inverse: bool, scale: float) -> Job:
    """Job.fft()"""
    handle = job._building()
    form, lengths, batch = _check_fft(a, out, ndim)
    if inverse and form == _TO_COMPLEX:
        raise ValueError("fft: the inverse of a transform of real numbers gives real numbers: pass an `out` of them")
    places = [(name, array, direction, f"fft: {name}") for name, array, direction in (("a", a, native.IN), ("out", out, native.OUT))]
    handles = [job._place(array, direction, where)[0] for _, array, direction, where in places]
    fft = native.Fft(_REAL[np.dtype(a.dtype).name], form, bool(inverse), ndim, lengths, batch, *handles)
    job._client._check(native.job_fft(handle, byref(fft)))
    job._record(*places)
    return job if scale == 1 else _append_scale(job, out, scale)


def _append_scale(job: Job, a, factor: float) -> Job:
    """Complex numbers are scaled as twice as many real ones."""
    real = np.float32 if _REAL[np.dtype(a.dtype).name] == 2 else np.float64
    kernel = job._client.builtin().get_kernel("scale_f32" if real is np.float32 else "scale_f64")
    numbers = _as_real(a, real)
    return job.launch(kernel, (_SCALE_BLOCKS, _SCALE_THREADS), real(factor), In(numbers), InOut(numbers), numbers.size)


def _as_real(a, real):
    if a.dtype == real:
        return a
    if isinstance(a, DeviceArray):
        return DeviceArray(a._memory, (*a.shape, 2), np.dtype(real), a._offset)
    return a.view(real)


def fft(a, out=None, *, ndim: int = 1, client=None, **options):
    """Fourier transforms of the last `ndim` axes, 1 to 3, as numpy.fft.fft, fft2 and fftn. Waits. Returns `out`.

    `a`: an array of dtype complex64, complex128, or of float32 or float64, whose transform has the first half of the last axis, as
    numpy.fft.rfft. `out`: None: a new DeviceArray if `a` is one, else a new Array. `options`: as for `gpuq.job`. Raises
    NotFoundError if gpuqd's machine has neither cuFFT nor FFTW.
    """
    _check_side("a", a)
    client = _client_of(client, a, out)
    if out is None:
        is_real = np.dtype(a.dtype).kind == "f"
        shape = (*a.shape[:-1], a.shape[-1] // 2 + 1) if is_real else a.shape
        out = _new_like(a, shape, np.result_type(a.dtype, np.complex64), client)
    client.job(**options).fft(a, out, ndim=ndim).run()
    return out


def ifft(a, out=None, *, ndim: int = 1, n: int | None = None, client=None, **options):
    """Inverse Fourier transforms, scaled so that `ifft(fft(a))` is `a`, as numpy.fft.ifft. Otherwise as `fft`.

    `n`: the result has real numbers, and so many in its last axis, as with numpy.fft.irfft. `a` has n // 2 + 1 of them.
    """
    _check_side("a", a)
    client = _client_of(client, a, out)
    if out is None:
        dtype = np.dtype(a.dtype)
        shape = a.shape if n is None else (*a.shape[:-1], n)
        out = _new_like(a, shape, dtype if n is None else np.dtype(f"f{dtype.itemsize // 2}"), client)
    is_real = np.dtype(out.dtype).kind == "f"
    client.job(**options).fft(a, out, ndim=ndim, inverse=not is_real, scale=1 / math.prod(out.shape[-ndim:])).run()
    return out
