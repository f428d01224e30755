# SPDX-License-Identifier: Apache-2.0
"""In, Out, InOut, Local, and the conversion of values to kernel arguments.

A Packer belongs to one parameter of one kernel. It converts a value to the 32 bytes of a `gpuq_arg`. It computes
everything about its parameter when the kernel is created, so that a call only looks up a type. It also remembers the
dtype and directions of arrays that have passed its checks.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import struct

import numpy as np

from . import _native as native
from .arrays import Array, check_dtype
from .convert import check_unmasked

_BUFFER = struct.Struct("=Qiiqq")  # buffer, direction, kind, size, value


class Argument:
    """An array with its direction. Create it with In, Out or InOut."""

    __slots__ = ("value",)
    direction = native.INOUT

    def __init__(self, value):
        self.value = value.value if isinstance(value, Argument) else value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_describe(self.value)})"


class In(Argument):
    """An array that the kernel reads.

    `value`: Array, DeviceArray, numpy array, buffer or DLPack CPU tensor. The last three are copied when the launch is
    created.
    """

    __slots__ = ()
    direction = native.IN


class Out(Argument):
    """An array that the kernel writes. It is filled with zeros first.

    `value`: as for In. Other types than Array and DeviceArray receive their contents when the job has ended.
    `whole`: the kernel overwrites the whole array, so it is not filled with zeros. Elements that the kernel does not
    write are undefined: zeros, or an earlier content of the array.
    """

    __slots__ = ("direction",)

    def __init__(self, value, whole: bool = False):
        super().__init__(value)
        self.direction = native.OUT_WHOLE if whole else native.OUT


class InOut(Argument):
    """An array that the kernel reads and writes. `value`: as for Out."""

    __slots__ = ()
    direction = native.INOUT


class Local:
    """Shared memory for a `__local` pointer of OpenCL C. `nbytes`: for each work-group."""

    __slots__ = ("nbytes",)

    def __init__(self, nbytes: int):
        self.nbytes = operator.index(nbytes)
        if not 0 <= self.nbytes < 1 << 32:
            raise ValueError(f"nbytes must be a number of bytes, 0 or more, not {nbytes}")

    def __repr__(self) -> str:
        return f"Local({self.nbytes})"


def _describe(value) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return type(value).__name__
    return f"{type(value).__name__} of {dtype}, shape {tuple(shape)}"


# ---- scalars ---------------------------------------------------------------------------


def _scalar_struct(kind: int, letter: str) -> tuple[int, int, struct.Struct]:
    size = struct.calcsize("=" + letter)
    return kind, size, struct.Struct(f"=Qiiq{letter}{8 - size}x")


_LETTERS = {
    "?": native.I8, "b": native.I8, "B": native.I8, "h": native.I16, "H": native.I16, "i": native.I32,
    "I": native.I32, "q": native.I64, "Q": native.I64, "f": native.F32, "d": native.F64,
}
_BY_LETTER = {letter: _scalar_struct(kind, letter) for letter, kind in _LETTERS.items()}
_BY_TYPE = {
    np.bool_: "?", np.int8: "b", np.uint8: "B", np.int16: "h", np.uint16: "H", np.int32: "i", np.uint32: "I",
    np.int64: "q", np.uint64: "Q", np.longlong: "q", np.ulonglong: "Q", np.float32: "f", np.float64: "d",
}
_BY_CTYPE = {
    ctypes.c_bool: "?", ctypes.c_int8: "b", ctypes.c_uint8: "B", ctypes.c_int16: "h", ctypes.c_uint16: "H",
    ctypes.c_int32: "i", ctypes.c_uint32: "I", ctypes.c_int64: "q", ctypes.c_uint64: "Q", ctypes.c_longlong: "q",
    ctypes.c_ulonglong: "Q", ctypes.c_float: "f", ctypes.c_double: "d",
}
_ADVICE = {
    native.I8: "numpy.int8(x)", native.I16: "numpy.int16(x)", native.I32: "numpy.int32(x)",
    native.I64: "numpy.int64(x)", native.F32: "numpy.float32(x)", native.F64: "numpy.float64(x)",
}
_BOUNDS = {native.I8: 8, native.I16: 16, native.I32: 32, native.I64: 64, native.WORD64: 64}
_SIGNED = {8: "b", 16: "h", 32: "i", 64: "q"}
_LARGEST_EXACT = {native.F32: 1 << 24, native.F64: 1 << 53}


def _refined(known) -> int:
    """PTX does not distinguish pointers and 64-bit integers; source does."""
    if known.pointer:
        return native.POINTER_KIND
    return native.I64 if known.dtype is not None else native.WORD64


class Packer:
    """For one parameter. `kind` and `size`: from the daemon; `known`: parameter of the Signature, or None."""

    def __init__(self, kernel: str, index: int, kind: int, size: int, kinds_known: bool, known=None):
        if kind == native.WORD64 and known is not None:
            kind = _refined(known)
        self.index = index
        self.kind = kind
        self.size = size
        self.kinds_known = kinds_known
        self.known = known
        self.dtype = known.dtype if known is not None and known.pointer else None
        self.takes_buffer = (kind in (native.POINTER_KIND, native.WORD64)) if kinds_known else size == 8
        what = f"`{known.text}`" if known is not None else f"{size} bytes, {native.KIND_NAMES[kind]}"
        self.where = f"{kernel}: argument {index + 1} ({what})"
        self.wanted = "gpuq.Texture" if known is not None and "cudaTextureObject_t" in known.text else "scalar"
        self.name = known.name if known is not None and known.name else f"arg{index}"
        self.passed_dtype = None  # of the last array that passed all checks
        self.passed = [False] * len(native.DIRECTIONS)  # by direction, with that dtype
        self._pack_count = self._counts() if kinds_known else None

    def _counts(self):
        """A fast function that packs an int >= 0, if this parameter is an integer. Most integers are such."""
        bits = _BOUNDS.get(self.kind)
        if bits is None:
            return None
        kind, size, packed = _BY_LETTER[self._letter(bits, 0)]
        return functools.partial(packed.pack, 0, 0, kind, size)

    def let_pass(self, dtype: np.dtype, direction: int) -> None:
        """Remember that an array of this dtype and direction passed takes_buffer, check_direction and check_dtype."""
        if self.passed_dtype is not dtype:
            self.passed_dtype = dtype
            self.passed = [False] * len(native.DIRECTIONS)
        self.passed[direction] = True

    def scalar(self, value, keep: list) -> bytes:
        """Pack a scalar. `keep`: objects that must live until the call. Raises TypeError or OverflowError."""
        kind = type(value)
        if kind is int and self._pack_count is not None and value >= 0:
            try:
                return self._pack_count(value)
            except struct.error:
                pass  # too large: reported below
        letter = _BY_TYPE.get(kind)
        if letter is not None:
            return self._typed(value, letter)
        letter = _BY_CTYPE.get(kind)
        if letter is not None:
            return self._typed(value.value, letter)
        if kind is int or kind is bool:
            return self._int(value)
        if kind is float:
            return self._float(value, keep)
        if kind is complex:
            return self._complex(value, keep)
        if value is None or (kind is ctypes.c_void_p and not value):
            return self._null()
        if kind is ctypes.c_void_p:
            raise self._mismatch("pointer of this process")
        if kind is Local:
            return self._local(value)
        return self._other(value, keep)

    def _typed(self, value, letter: str) -> bytes:
        kind, size, packed = _BY_LETTER[letter]
        if size != self.size or (self.kinds_known and kind != self.kind and self.kind != native.BYTES and
                                 not (self.kind == native.WORD64 and kind == native.I64)):
            raise self._mismatch(np.dtype(letter).name)
        return packed.pack(0, 0, kind, size, value)

    def _mismatch(self, given: str) -> TypeError:
        if self.kind == native.POINTER_KIND:
            return TypeError(f"{self.where} must be an array, not a {given}: wrap an array, as in gpuq.Out(a)")
        if self.kind == native.LOCAL:
            return TypeError(f"{self.where} must be local memory, not a {given}: use gpuq.Local(number of bytes)")
        advice = _ADVICE.get(self.kind) if self.kinds_known else f"a numpy scalar of {self.size} bytes"
        return TypeError(f"{self.where} cannot be a {given}" + (f"; use {advice}" if advice else ""))

    def _int(self, value: int) -> bytes:
        if not self.kinds_known:
            raise TypeError(f"{self.where}: this kernel's image does not record its parameters' types, so a Python "
                            "int has no width: use numpy.int32(x), numpy.int64(x), …")
        bits = _BOUNDS.get(self.kind)
        if bits is not None:
            return self._int_of(value, bits)
        if self.kind in _LARGEST_EXACT and abs(value) <= _LARGEST_EXACT[self.kind]:
            return self._typed(value, "f" if self.kind == native.F32 else "d")
        raise self._mismatch("Python int")

    def _letter(self, bits: int, value: int) -> str:
        """The type in the source; if only the width is known, the type that the value fits."""
        dtype = self.known.dtype if self.known is not None and not self.known.pointer else None
        if dtype is not None and dtype.kind in "iu" and dtype.itemsize * 8 == bits:
            return _SIGNED[bits] if dtype.kind == "i" else _SIGNED[bits].upper()
        return _SIGNED[bits] if value < 0 else _SIGNED[bits].upper()

    def _int_of(self, value: int, bits: int) -> bytes:
        kind, size, packed = _BY_LETTER[self._letter(bits, value)]
        try:
            return packed.pack(0, 0, kind, size, value)
        except struct.error:
            raise OverflowError(f"{self.where}: {value} is out of range") from None

    def _float(self, value: float, keep: list) -> bytes:
        if self.kinds_known and self.kind in _LARGEST_EXACT:
            try:
                return self._typed(value, "f" if self.kind == native.F32 else "d")
            except OverflowError:
                raise OverflowError(f"{self.where}: {value} is out of range") from None
        if not self.kinds_known:
            raise TypeError(f"{self.where}: this kernel's image does not record its parameters' types, so a Python "
                            "float has no width: use numpy.float32(x) or numpy.float64(x)")
        if self.known is not None and self.known.dtype == np.float16 and not self.known.pointer and self.size == 2:
            return self._other(np.float16(value), keep)
        if self.kind in _BOUNDS and self.kind != native.WORD64:
            raise TypeError(f"{self.where} must be an integer, not the float {value!r}: use int(x), or "
                            f"{_ADVICE[self.kind]} if that is intended")
        raise self._mismatch("Python float")

    def _complex(self, value: complex, keep: list) -> bytes:
        """As complex<float> or complex<double>, which are structs, by their size."""
        dtype = {8: np.complex64, 16: np.complex128}.get(self.size)
        if not self.kinds_known or self.kind != native.BYTES or dtype is None:
            raise self._mismatch("Python complex")
        return self._other(dtype(value), keep)

    def _null(self) -> bytes:
        if self.size != 8 or not self.takes_buffer:
            raise self._mismatch("None")
        return _BY_LETTER["Q"][2].pack(0, 0, native.NULL, 8, 0)

    def _local(self, value: Local) -> bytes:
        if self.kind != native.LOCAL:
            raise self._mismatch(repr(value))
        return _BUFFER.pack(0, 0, native.LOCAL, 8, value.nbytes)

    def _other(self, value, keep: list) -> bytes:
        """Structs by value: numpy records, complex and half scalars, ctypes.Structure."""
        if isinstance(value, (np.ndarray, Argument)) or not self._is_bytes(value):
            raise self._mismatch(_describe(value))
        if isinstance(value, np.generic):
            check_bits(value.dtype, self.where)
        raw = bytes(value) if isinstance(value, (ctypes.Structure, ctypes.Union, bytes)) else value.tobytes()
        if len(raw) != self.size:
            raise TypeError(f"{self.where} must have {self.size} bytes, but the {type(value).__name__} has {len(raw)}")
        held = ctypes.create_string_buffer(raw, len(raw))
        keep.append(held)
        return _BUFFER.pack(0, 0, native.BYTES, len(raw), ctypes.addressof(held))

    @staticmethod
    def _is_bytes(value) -> bool:
        return isinstance(value, (np.generic, ctypes.Structure, ctypes.Union, bytes))

    # ---- buffers ----

    def check_direction(self, direction: int) -> None:
        known = self.known
        if known is None or known.writes is None:
            return
        if known.must_write and direction == native.IN:
            raise TypeError(f"{self.where} is written by the kernel, but was passed as In: use gpuq."
                            f"{'InOut' if known.text.startswith('inout') else 'Out'}(a), or its result would be lost")
        if not known.writes and direction in (native.OUT, native.OUT_WHOLE):
            raise TypeError(f"{self.where} is only read by the kernel, but was passed as Out: "
                            "use gpuq.In(a)")

    def bare(self, value) -> int:
        """The direction of an array without In, Out or InOut: a GPU's is InOut; a host's must be known as const."""
        if self.known is not None and self.known.writes is False:
            return native.IN
        if not self.takes_buffer:
            raise TypeError(f"{self.where} must be a {self.wanted}, not {_describe(value)}")
        raise TypeError(f"{self.where}: wrap the array to say whether it is read or written: gpuq.In(a) to read it, "
                        f"gpuq.Out(a) to receive the result, gpuq.InOut(a) for both; it is a bare {_describe(value)}")

    def check_offset(self, offset: int) -> None:
        """Check where a slice begins in its memory, which itself begins at a multiple of 256 bytes."""

    def as_rows(self, array: np.ndarray) -> np.ndarray:
        """The host array as the row-major one that is passed."""
        return array

    def check_dtype(self, dtype: np.dtype) -> None:
        wanted = self.dtype
        if wanted is None or dtype == wanted:
            return
        if wanted.itemsize == dtype.itemsize and wanted.kind in "iub" and dtype.kind in "iubSV":
            return  # the same bits, counted otherwise
        raise TypeError(f"{self.where} must be {wanted}, not an array of {dtype}: convert it, "
                        f"a.astype(numpy.{wanted}), or reinterpret its bits, a.view(numpy.{wanted})")


def pack_buffer(handle: int, direction: int) -> bytes:
    return _BUFFER.pack(handle, direction, native.POINTER_KIND, 8, 0)


# ---- host arrays -------------------------------------------------------------------------


def check_bits(dtype: np.dtype, where: str) -> None:
    """Check that a device can read such items as they are in memory. Raises TypeError with what to do."""
    if dtype.hasobject or not dtype.isnative or dtype.itemsize == 0:
        try:
            check_dtype(dtype)
        except TypeError as error:
            raise TypeError(f"{where}: {error}") from None


def check_array(array: np.ndarray, direction: int, where: str) -> np.ndarray:
    """Check that a job can use the array without conversion. Raises TypeError or ValueError with what to do."""
    if type(array) is not Array:
        try:
            check_unmasked(array)
        except TypeError as error:
            raise TypeError(f"{where}: {error}") from None
    if not array.flags.c_contiguous:
        raise ValueError(f"{where}: the array is not C-contiguous (strides {array.strides}): "
                         "pass a contiguous copy, numpy.ascontiguousarray(a)" +
                         ("" if direction == native.IN else "; copy the result back from it"))
    check_bits(array.dtype, where)
    if direction != native.IN and not array.flags.writeable:
        raise ValueError(f"{where}: the array is read-only, but the job writes it: pass a writable copy, a.copy()")
    return array
