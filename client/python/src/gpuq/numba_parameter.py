# SPDX-License-Identifier: Apache-2.0
"""Parameters of kernels that Numba compiled: how a value of each of Numba's types is passed.

| Type | Passed as |
|---|---|
| array | meminfo, parent, number of items, bytes per item, data, the shape and the strides of each axis |
| integer, float, boolean, float16, datetime64, timedelta64 | itself |
| member of an enum | its value |
| complex | its real and its imaginary part |
| tuple | each of its elements |
| record | a pointer to it |
| CPointer | itself |

meminfo and parent are null on a GPU. A Spec describes one parameter of the Python function. It takes `n_words`
parameters of the PTX.
"""

from __future__ import annotations

import enum
import math
import struct

import numpy as np

from . import _native as native
from .argument import Argument, Packer, _describe
from .convert import as_numpy
from .device import DeviceArray
from .signature import Parameter

_WORD = struct.Struct("=Qiiqq")
_KINDS = {"f4": native.F32, "f8": native.F64, "i1": native.I8, "u1": native.I8, "b1": native.I8, "i2": native.I16,
          "u2": native.I16, "i4": native.I32, "u4": native.I32, "i8": native.I64, "u8": native.I64, "f2": native.I16}


def _word(value: int) -> bytes:
    return _WORD.pack(0, 0, native.I64, 8, value)


def _direction(packer: Packer, arg):
    """(direction, array) of an argument."""
    if isinstance(arg, Argument):
        return arg.direction, arg.value
    if isinstance(arg, DeviceArray):
        return (native.INOUT if packer.known.writes else native.IN), arg
    return packer.bare(arg), arg


class Spec:
    """A parameter. `text`: its name and Numba's type, "x: float32"; `dtype`: of the value, or of an array's items."""

    n_words = 1

    def __init__(self, text: str, dtype):
        self.text = text
        self.dtype = np.dtype(dtype)
        self.name = text.split(":")[0]

    def known(self) -> Parameter:
        return Parameter(self.text, self.dtype, name=self.name)

    def packer(self, kernel: str, index: int):
        """What packs the argument `index`. Numpy and ctypes scalars must have the parameter's type."""
        raise NotImplementedError

    def pack(self, job, packer, arg, keep: list) -> list[bytes]:
        """The packed words. `keep`: objects that must live until the call."""
        return [packer.scalar(arg, keep)]

    def slots(self, operation: int, packer, index: int, arg) -> list:
        """What a prepared job can replace. `index`: of the first word."""
        from .prepared import Slot
        return [Slot(operation, self.name, index, packer)]

    def __reduce__(self):
        return type(self), (self.text, self.dtype)


def _plain(arg):
    """The value of a member of an enum."""
    return arg.value if isinstance(arg, enum.Enum) else arg


# ---- scalars ----


class Scalar(Spec):
    """An integer, a float, a boolean, a float16 or a time, or a member of an enum with such values."""

    def __init__(self, text: str, dtype):
        super().__init__(text, dtype)
        if self.dtype.kind not in "mM" and self.dtype.str[1:] not in _KINDS:
            raise TypeError(f"{text}: from_numba does not pass {self.dtype} scalars: pass an array of one item")

    def packer(self, kernel: str, index: int) -> Packer:
        kind = native.I64 if self.dtype.kind in "mM" else _KINDS[self.dtype.str[1:]]
        chosen = {"f2": _HalfPacker, "M8": _TimePacker, "m8": _TimePacker}.get(self.dtype.str[1:3], Packer)
        return chosen(kernel, index, kind, self.dtype.itemsize, True, self.known())

    def pack(self, job, packer, arg, keep: list) -> list[bytes]:
        return [packer.scalar(_plain(arg), keep)]


class _HalfPacker(Packer):
    """A float16: its bits."""

    def scalar(self, value, keep: list) -> bytes:
        if type(value) not in (float, int, np.float16):
            raise self._mismatch(_describe(value))
        return self._typed(int(np.float16(value).view(np.uint16)), "H")


class _TimePacker(Packer):
    """A datetime64 or timedelta64: its count of units."""

    def scalar(self, value, keep: list) -> bytes:
        if getattr(value, "dtype", None) != self.known.dtype:
            raise TypeError(f"{self.where} cannot be {value!r}: use numpy.{self.known.dtype.type.__name__}(x, "
                            f"{np.datetime_data(self.known.dtype)[0]!r})")
        return self._typed(int(value.view(np.int64)), "q")


class Complex(Spec):
    """A complex number."""

    n_words = 2

    def packer(self, kernel: str, index: int) -> list[Packer]:
        kind = native.F32 if self.dtype == np.complex64 else native.F64
        return [_PartPacker(part, kernel, index, kind, self.dtype.itemsize // 2, True, self.known()) for part in ("real", "imag")]

    def pack(self, job, packer, arg, keep: list) -> list[bytes]:
        return [part.scalar(_plain(arg), keep) for part in packer]

    def slots(self, operation: int, packer, index: int, arg) -> list:
        from .prepared import Slot
        return [Slot(operation, self.name, index + i, part) for i, part in enumerate(packer)]


class _PartPacker(Packer):
    """One part of a complex number."""

    def __init__(self, part: str, *args):
        super().__init__(*args)
        self.part = part

    def scalar(self, value, keep: list) -> bytes:
        if type(value) not in (complex, float, int) and getattr(value, "dtype", None) != self.known.dtype:
            raise TypeError(f"{self.where} cannot be a {_describe(value)}; use numpy.{self.known.dtype}(x)")
        return super().scalar(float(getattr(value, self.part)), keep)


class Tuple(Spec):
    """A tuple. `specs`: of its elements."""

    def __init__(self, text: str, specs):
        super().__init__(text, np.void)
        self.specs = tuple(specs)
        self.n_words = sum(spec.n_words for spec in self.specs)

    def packer(self, kernel: str, index: int) -> tuple:
        return f"{kernel}: argument {index + 1} (`{self.text}`)", [spec.packer(kernel, index) for spec in self.specs]

    def _pairs(self, packer, arg):
        where, packers = packer
        arg = _plain(arg)
        if not isinstance(arg, (tuple, list)) or len(arg) != len(self.specs):
            given = f"{len(arg)} elements" if isinstance(arg, (tuple, list)) else f"a {_describe(arg)}"
            raise TypeError(f"{where} must be a tuple of {len(self.specs)} elements, not {given}")
        return zip(self.specs, packers, arg)

    def pack(self, job, packer, arg, keep: list) -> list[bytes]:
        return [word for spec, each, value in self._pairs(packer, arg) for word in spec.pack(job, each, value, keep)]

    def slots(self, operation: int, packer, index: int, arg) -> list:
        slots = []
        for spec, each, value in self._pairs(packer, arg):
            slots += spec.slots(operation, each, index, value)
            index += spec.n_words
        return slots

    def __reduce__(self):
        return Tuple, (self.text, self.specs)


# ---- memory ----


class Buffer(Spec):
    """What is passed as memory. `readonly`: the kernel does not write it."""

    def __init__(self, text: str, dtype, readonly: bool = False):
        super().__init__(text, dtype)
        self.readonly = readonly

    def known(self) -> Parameter:
        return Parameter(self.text, self.dtype, True, not self.readonly, name=self.name)

    def packer(self, kernel: str, index: int) -> Packer:
        return Packer(kernel, index, native.POINTER_KIND, 8, True, self.known())


class Pointer(Buffer):
    """A CPointer: an array with its direction, an address of device memory as int, or None."""

    def packer(self, kernel: str, index: int) -> Packer:
        return _AddressPacker(kernel, index, native.POINTER_KIND, 8, True, self.known())

    def pack(self, job, packer, arg, keep: list) -> list[bytes]:
        if arg is None or isinstance(arg, (int, np.integer)):
            return [packer.scalar(arg, keep)]
        direction, array = _direction(packer, arg)
        return [job._buffer(packer, array, direction)]

    def slots(self, operation: int, packer, index: int, arg) -> list:
        from .prepared import Slot
        if arg is None or isinstance(arg, (int, np.integer)):
            return [Slot(operation, self.name, index, packer)]
        direction, array = _direction(packer, arg)
        return [Slot(operation, self.name, index, packer, direction, array)]


class _AddressPacker(Packer):
    """Also takes an int, an address that `DeviceArray.address` gave."""

    def scalar(self, value, keep: list) -> bytes:
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            if not 0 <= value < 1 << 63:
                raise OverflowError(f"{self.where}: {value} is no address")
            return _word(int(value))
        return super().scalar(value, keep)


class Record(Buffer):
    """A record: a numpy record or an array of one, with its direction."""

    def _array(self, packer, arg):
        if isinstance(arg, np.void):
            raise TypeError(f"{packer.where}: wrap the record to say whether it is read or written: gpuq.In(r), gpuq.Out(r) or "
                            "gpuq.InOut(r)")
        direction, array = _direction(packer, arg)
        if isinstance(array, np.void):
            array = np.asarray(array)  # of the same memory
        if math.prod(np.shape(array)) != 1:
            raise ValueError(f"{packer.where} must be one record, not the shape {tuple(np.shape(array))}")
        return direction, array

    def pack(self, job, packer, arg, keep: list) -> list[bytes]:
        direction, array = self._array(packer, arg)
        return [job._buffer(packer, array, direction)]

    def slots(self, operation: int, packer, index: int, arg) -> list:
        from .prepared import Slot
        direction, array = self._array(packer, arg)
        return [Slot(operation, self.name, index, packer, direction, array, nbytes=self.dtype.itemsize)]


class ArrayOf(Buffer):
    """An array with `ndim` axes. `layout`: "C" row-major, "F" Fortran's, or "A" either."""

    def __init__(self, text: str, dtype, ndim: int, readonly: bool = False, layout: str = "C"):
        super().__init__(text, dtype, readonly)
        self.ndim = ndim
        self.layout = "C" if ndim < 2 else layout
        self.n_words = 5 + 2 * ndim

    def packer(self, kernel: str, index: int) -> Packer:
        packer = super().packer(kernel, index)
        packer.fortran = _FortranPacker(kernel, index, native.POINTER_KIND, 8, True, self.known())
        return packer

    def _array(self, packer, arg):
        """(direction, array, whether it is in Fortran's layout)"""
        direction, array = _direction(packer, arg)
        if not isinstance(array, (np.ndarray, DeviceArray)):
            array = as_numpy(array, writes=direction != native.IN)
        if array.ndim != self.ndim:
            raise ValueError(f"{packer.where} must have {self.ndim} axes, not the shape {tuple(array.shape)}")
        is_host = isinstance(array, np.ndarray)
        if self.layout == "F" and not is_host:
            raise TypeError(f"{packer.where} must be in Fortran layout, but a DeviceArray is row-major: compile the kernel for "
                            f"{self.dtype}[{':, ' * (self.ndim - 1)}::1]")
        if self.layout == "F" and not array.flags.f_contiguous:
            raise ValueError(f"{packer.where} must be in Fortran layout: pass numpy.asfortranarray(a)" +
                             ("" if direction == native.IN else " and copy the result back from it"))
        return direction, array, is_host and self.layout != "C" and (self.layout == "F" or not array.flags.c_contiguous) \
            and array.flags.f_contiguous

    def pack(self, job, packer, arg, keep: list) -> list[bytes]:
        direction, array, is_fortran = self._array(packer, arg)
        size = array.dtype.itemsize
        data = job._buffer(packer.fortran if is_fortran else packer, array, direction)
        words = (array.size, size, *array.shape, *_strides(array.shape, size, is_fortran))
        packed = [_word(word) for word in words]
        return [_word(0), _word(0), *packed[:2], data, *packed[2:]]

    def slots(self, operation: int, packer, index: int, arg) -> list:
        """Shape and strides are separate arguments, so a replacement array must have the same shape and layout."""
        from .prepared import Slot
        direction, array, is_fortran = self._array(packer, arg)
        chosen = packer.fortran if is_fortran else packer
        return [Slot(operation, self.name, index + 4, chosen, direction, array, shape=tuple(array.shape))]

    def __reduce__(self):
        return ArrayOf, (self.text, self.dtype, self.ndim, self.readonly, self.layout)


class _FortranPacker(Packer):
    """Takes a host array in Fortran's layout."""

    def as_rows(self, array: np.ndarray) -> np.ndarray:
        if not array.flags.f_contiguous:
            raise ValueError(f"{self.where} must be in Fortran layout: pass numpy.asfortranarray(a)")
        return array.T


def _strides(shape, size: int, is_fortran: bool) -> list[int]:
    """In bytes."""
    strides = []
    for length in shape if is_fortran else reversed(shape):
        strides.append(size)
        size *= length
    return strides if is_fortran else strides[::-1]


# ---- Numba's types ----


def _dtype(kind, text: str) -> np.dtype:
    """The numpy dtype of a Numba type."""
    name = {"bool": "bool_", "boolean": "bool_", "char": "int8", "uchar": "uint8"}.get(str(kind), str(kind))
    try:
        return np.dtype(name.rstrip("_"))
    except (TypeError, ValueError):
        pass
    for home in ("numba.cuda.np.numpy_support", "numba.np.numpy_support"):
        try:
            return np.dtype(__import__(home, fromlist=["as_dtype"]).as_dtype(kind))
        except Exception:  # not there, or one of Numba's errors, whose classes depend on the version
            continue
    raise TypeError(f"{text}: from_numba accepts arrays, records, tuples, numbers, booleans and times, but not this type")


def spec_of(kind, name: str) -> Spec:
    """The Spec for a Numba type. Raises TypeError for a type that is not supported."""
    text = f"{name}: {kind}"
    kinds = {each.__name__ for each in type(kind).__mro__}  # numba and numba-cuda have classes of their own
    if hasattr(kind, "layout") and hasattr(kind, "ndim"):
        return ArrayOf(text, _dtype(kind.dtype, text), kind.ndim, not kind.mutable, kind.layout)
    if "BaseTuple" in kinds:
        return Tuple(text, [spec_of(each, f"{name}[{i}]") for i, each in enumerate(kind)])
    if "Record" in kinds:
        return Record(text, _dtype(kind, text))
    if "CPointer" in kinds:
        return Pointer(text, _dtype(kind.dtype, text))
    if "EnumMember" in kinds:
        return spec_of(kind.dtype, name)
    dtype = _dtype(kind, text)
    return Complex(text, dtype) if dtype.kind == "c" else Scalar(text, dtype)
