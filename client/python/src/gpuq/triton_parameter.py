# SPDX-License-Identifier: Apache-2.0
"""Parameters of kernels that Triton compiled: how a value of each of Triton's types is passed.

| Type | Passed as |
|---|---|
| constant | nothing: it is compiled in |
| pointer, integer, float | itself |
| tuple | each of its elements |
| tensor descriptor of the host | a pointer, the shape and the strides (64 bits each), flags, and both once more |

The last is what Triton makes of a descriptor for GPUs without TMA, and `tensordesc_meta` is then empty. There is a flag
for padding with NaN and one for rounding to TF32; older versions lack the second or both.

Each class describes one parameter of the source, or an element of a tuple. Its `packers()` are for the parameters of
the PTX that it takes, and its `given()` are the arguments for those.
"""

from __future__ import annotations

import copy
import struct

import numpy as np

from . import _native as native
from .argument import Argument, Packer, _describe
from .signature import Parameter

_DTYPES = {
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u1": "bool", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "fp16": "float16", "fp32": "float32", "fp64": "float64",
}
_FLOATS = {2: native.BYTES, 4: native.F32, 8: native.F64}
INTEGERS = {1: native.I8, 2: native.I16, 4: native.I32, 8: native.I64}


class TritonParameter:
    """A parameter of the source.

    `kind`: Triton's type, or None if it is compiled in: `value`. `declared`: as tl.constexpr. `divisor`: what the value
    or the address must be divisible by.
    """

    def __init__(self, name: str, kind: str | None, value=None, declared: bool = False, divisor: int = 1):
        self.name = name
        self.kind = kind
        self.value = value
        self.declared = declared
        self.divisor = divisor
        self.is_constant = kind is None

    @property
    def text(self) -> str:
        return f"{self.name}: {self.kind}"

    def packers(self, kernel: str, index: int, sizes) -> list[Packer]:
        """`index`: of the first one; `sizes`: of all parameters of the PTX, in bytes."""
        return [] if self.is_constant else [_packer(kernel, index, self, sizes[index])]

    def given(self, kernel: str, index: int, arg):
        """`index`: of the argument in the call."""
        if self.is_constant:
            self.check_constant(kernel, index, arg)
        else:
            yield arg

    def check_constant(self, kernel: str, index: int, given) -> None:
        if isinstance(given, np.generic):
            given = given.item()
        if given is not self.value and given != self.value:
            raise ValueError(f"{kernel}: argument {index + 1} (`{self.name}`) is compiled in as {self.value!r} and cannot be "
                             f"{given!r}: compile the kernel for that value")

    def __reduce__(self):
        return TritonParameter, (self.name, self.kind, self.value, self.declared, self.divisor)


class TritonPacker(Packer):
    """Also checks that values and addresses are divisible as the kernel was compiled for, and packs 16-bit floats."""

    divisor = 1
    short = None  # "fp16" or "bf16"
    keeps_shape = False  # the shape of the array is passed, too

    def scalar(self, value, keep: list) -> bytes:
        if self.short and type(value) in (float, int):
            return self._other(_bfloat16(value) if self.short == "bf16" else np.float16(value), keep)
        number = getattr(value, "value", value)  # of a ctypes scalar
        if self.divisor > 1 and isinstance(number, (int, np.integer)) and number % self.divisor:
            raise ValueError(f"{self.where} was compiled for values divisible by {self.divisor} and cannot be {number}: compile "
                             "the kernel with such a value, or mark the parameter with do_not_specialize")
        return super().scalar(value, keep)

    def check_offset(self, offset: int) -> None:
        if offset % self.divisor:
            raise ValueError(f"{self.where} was compiled for addresses divisible by {self.divisor}, but the slice begins "
                             f"{offset} bytes into its array: pass a copy of it, or compile the kernel with such a slice")


def _packer(kernel: str, index: int, parameter: TritonParameter, size: int) -> TritonPacker:
    kind, text = parameter.kind, f"{parameter.name}: {parameter.kind}"
    if kind.startswith("*"):
        element = _DTYPES.get(kind[1:].lstrip("k"))
        known = Parameter(text, np.dtype(element) if element else None, True, False if kind.startswith("*k") else None,
                          name=parameter.name)
        packer = TritonPacker(kernel, index, native.POINTER_KIND, 8, True, known)
    else:
        kinds = _FLOATS if kind.startswith(("fp", "bf")) else INTEGERS
        packer = TritonPacker(kernel, index, kinds.get(size, native.BYTES), size, True, Parameter(text, name=parameter.name))
    packer.divisor = parameter.divisor
    packer.short = kind if kind in ("fp16", "bf16") else None
    return packer


def _bfloat16(value: float) -> bytes:
    """The upper half of the float, as Triton's own launcher passes it: not rounded."""
    return struct.pack("=H", int(np.float32(value).view(np.uint32)) >> 16)


class TritonTuple:
    """A tuple. `parts`: its elements."""

    declared = False

    def __init__(self, name: str, parts):
        self.name = name
        self.parts = tuple(parts)
        self.is_constant = False

    @property
    def text(self) -> str:
        return f"{self.name}: ({', '.join(part.text for part in self.parts)})"

    def packers(self, kernel: str, index: int, sizes) -> list[Packer]:
        packers = []
        for part in self.parts:
            packers += part.packers(kernel, index + len(packers), sizes)
        return packers

    def given(self, kernel: str, index: int, arg):
        if not isinstance(arg, (tuple, list)) or len(arg) != len(self.parts):
            found = f"{len(arg)} elements" if isinstance(arg, (tuple, list)) else f"a {_describe(arg)}"
            raise TypeError(f"{kernel}: argument {index + 1} (`{self.name}`) must be a tuple of {len(self.parts)} elements, not {found}")
        for part, each in zip(self.parts, arg):
            yield from part.given(kernel, index, each)

    def __reduce__(self):
        return TritonTuple, (self.name, self.parts)


class TritonDescriptor:
    """A tensor descriptor that the host makes: an array with its direction, which gives shape and strides, or in In,
    Out or InOut a TensorDescriptor of Triton over an array that gpuq accepts.

    `element`: Triton's type of the items; `ndim`: number of axes. `divisor`: as of a TritonParameter.
    """

    declared = False
    is_constant = False

    def __init__(self, name: str, element: str, ndim: int, divisor: int = 1):
        self.name = name
        self.element = element
        self.ndim = ndim
        self.divisor = divisor
        self.n_flags = 2

    @property
    def text(self) -> str:
        return f"{self.name}: tensordesc<{self.element}>"

    def packers(self, kernel: str, index: int, sizes) -> list[Packer]:
        flags = sizes[index + 1 + 2 * self.ndim:index + 3 + 2 * self.ndim]
        self.n_flags = sum(size == 1 for size in flags)
        kinds = ["i64"] * (2 * self.ndim) + ["i1"] * self.n_flags + ["i32"] * self.ndim + ["i64"] * self.ndim
        wanted = [8, *({"i64": 8, "i1": 1, "i32": 4}[kind] for kind in kinds)]
        if sizes[index:index + len(wanted)] != wanted:
            raise TypeError(f"{kernel}: parameter {self.name}: from_triton does not know how this version of Triton passes "
                            "tensor descriptors: pass the array, and let the kernel make one, "
                            "tl.make_tensor_descriptor(pointer, shape, strides, block_shape)")
        array = _packer(kernel, index, TritonParameter(self.name, f"*{self.element}", divisor=self.divisor), 8)
        array.keeps_shape = True
        return [array, *(_packer(kernel, index + 1 + i, TritonParameter(f"{self.name}.{i}", kind), size)
                         for i, (kind, size) in enumerate(zip(kinds, wanted[1:])))]

    def given(self, kernel: str, index: int, arg):
        where = f"{kernel}: argument {index + 1} (`{self.text}`)"
        array, shape, strides, flags = _described(arg.value if isinstance(arg, Argument) else arg)
        if len(shape) != self.ndim or len(strides) != self.ndim:
            raise ValueError(f"{where} must have {self.ndim} axes, not the shape {shape}")
        if strides[-1] != 1:
            raise ValueError(f"{where}: the items of its last axis must be next to each other, not {strides[-1]} items apart")
        if isinstance(arg, Argument):
            wrapped = copy.copy(arg)
            wrapped.value = array
            array = wrapped
        yield array
        yield from (*shape, *strides, *flags[:self.n_flags], *shape, *strides)

    def __reduce__(self):
        return TritonDescriptor, (self.name, self.element, self.ndim, self.divisor)


def _described(value) -> tuple:
    """(array, shape, strides in items, flags) of an array or a TensorDescriptor."""
    if hasattr(value, "base") and hasattr(value, "block_shape"):
        return value.base, tuple(value.shape), tuple(value.strides), (
            getattr(value, "padding", "zero") == "nan", bool(getattr(value, "round_f32_to_tf32", False)))
    shape = tuple(np.shape(value) if getattr(value, "shape", None) is None else value.shape)
    strides, items = [], 1
    for length in reversed(shape):
        strides.append(items)
        items *= length
    return value, shape, tuple(reversed(strides)), (False, False)
