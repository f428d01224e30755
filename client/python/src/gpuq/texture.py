# SPDX-License-Identifier: Apache-2.0
"""Texture: an array as an argument for a parameter of type cudaTextureObject_t."""

from __future__ import annotations

import ctypes
import operator
import struct

import numpy as np

from . import _native as native
from .argument import In, check_array
from .device import DeviceArray
from .convert import as_numpy

_DESC = struct.Struct("=iIQQQii???5x")  # a gpuq_texture_desc
_ARG = struct.Struct("=QiiqQ")  # a gpuq_arg: buffer, direction, kind, size, description
_FORMATS = {np.dtype(name): number for number, name in enumerate(
    ("uint8", "uint16", "uint32", "int8", "int16", "int32", "float16", "float32"), 1)}
_MODES = {"clamp": 0, "border": 1, "wrap": 2, "mirror": 3}
_ROWS = 32  # bytes, a multiple of which the GPUs of today want from row to row


class Texture:
    """A texture over an array, which the kernel reads with `tex1Dfetch` or `tex2D`.

    `array`: as for In. With one axis it is fetched by index; with two it has rows and columns; a last axis of `channels`
    makes texels of 2 or 4 values. Its dtype is uint8, uint16, uint32, int8, int16, int32, float16 or float32.
    `channels`: 1, 2 or 4; if not given, the length of the third axis, or 1.
    `width`: texels of each row that belong to the texture, the others being padding; if not given, all.
    `address_mode`: what a fetch outside gets: "clamp", "border" (0), "wrap", "mirror", or a pair of these for x and y. The
    last two need `normalized`.
    `filter_mode`: "point" or "linear", which needs floats.
    `normalized`: whether coordinates are from 0 to 1 instead of in texels.
    `read_mode`: "element", or "normalized" to read integers of 8 or 16 bits as floats from 0 (signed: -1) to 1.

    The row of an array in shared or in GPU memory must have a multiple of 32 bytes; pad it and give the `width`. Other
    arrays are copied when the launch is created, with padded rows.
    """

    __slots__ = ("array", "channels", "width", "modes", "linear", "normalized", "to_float")

    def __init__(self, array, *, channels: int | None = None, width: int | None = None, address_mode="clamp",
                 filter_mode: str = "point", normalized: bool = False, read_mode: str = "element"):
        self.array = array.value if isinstance(array, In) else array
        if not isinstance(self.array, DeviceArray):
            self.array = as_numpy(self.array)
        self.modes = _modes(address_mode)
        self.linear = _choice(filter_mode, "filter_mode", ("point", "linear")) == "linear"
        self.to_float = _choice(read_mode, "read_mode", ("element", "normalized")) == "normalized"
        self.normalized = bool(normalized)
        self.channels = self._channels(channels)
        self.width = self._width(width)
        self._check()

    def _channels(self, channels: int | None) -> int:
        ndim, shape = self.array.ndim, self.array.shape
        if channels is None:
            channels = shape[2] if ndim == 3 else 1
        channels = operator.index(channels)
        if channels not in (1, 2, 4):
            raise ValueError(f"a texture has 1, 2 or 4 channels, not {channels}")
        if channels > 1 and (ndim < 2 or shape[-1] != channels):
            raise ValueError(f"the last axis must have a length of {channels}, the number of channels; the array's shape is {shape}")
        return channels

    @property
    def _extent(self) -> tuple[int, ...]:
        """The array's shape in texels."""
        shape = self.array.shape
        return shape[:-1] if self.channels > 1 or self.array.ndim == 3 else shape

    def _width(self, width: int | None) -> int:
        if len(self._extent) not in (1, 2):
            raise ValueError(f"a texture has one axis or two, and one of channels; the array's shape is {self.array.shape}")
        most = self._extent[-1]
        width = most if width is None else operator.index(width)
        if not 1 <= width <= most:
            raise ValueError(f"width must be from 1 to {most}, not {width}")
        return width

    def _check(self) -> None:
        dtype = self.array.dtype
        if dtype not in _FORMATS:
            raise TypeError(f"a texture cannot be of {dtype}, only of {', '.join(map(str, _FORMATS))}: convert it with astype()")
        if self.to_float and (dtype.kind == "f" or dtype.itemsize > 2):
            raise ValueError(f"read_mode \"normalized\" is for integers of 8 or 16 bits, not for {dtype}")
        if self.linear and dtype.kind != "f" and not self.to_float:
            raise ValueError(f"filter_mode \"linear\" needs floats, but the array is of {dtype}: convert it, or use read_mode=\"normalized\"")
        if max(self.modes) >= _MODES["wrap"] and not self.normalized:
            raise ValueError("address_mode \"wrap\" and \"mirror\" need normalized=True")
        if len(self._extent) == 1 and (self.linear or self.normalized or any(self.modes)):
            raise ValueError("a texture of one axis is fetched by index, without filter_mode, address_mode and normalized: "
                             "reshape the array to (1, n) for tex2D()")

    def __repr__(self) -> str:
        return f"Texture({type(self.array).__name__} of {self.array.dtype}, shape {tuple(self.array.shape)})"

    # ---- as an argument ----

    def _pack(self, job, packer, keep: list) -> bytes:
        """The packed gpuq_arg. `keep`: objects that must live until the call."""
        if packer.size != 8 or packer.kind not in (native.WORD64, native.I64, native.BYTES):
            raise packer._mismatch(repr(self))
        if packer.known is not None and "cudaSurfaceObject_t" in packer.known.text:
            raise TypeError(f"{packer.where} is a surface, which gpuq does not have: let the kernel write to an array")
        array = self._rows()
        height = self._extent[0] if len(self._extent) == 2 else 0
        desc = ctypes.create_string_buffer(_DESC.pack(_FORMATS[self.array.dtype], self.channels, self.width, height,
                                                      array.nbytes // height if height else 0, *self.modes, self.linear,
                                                      self.normalized, self.to_float), _DESC.size)
        keep.append(desc)
        handle = job._handle_of(packer, array, native.IN)[0]
        return _ARG.pack(handle, native.IN, native.TEXTURE, 8, ctypes.addressof(desc))

    def _rows(self):
        """The array itself, or one with padded rows that a copy is made of."""
        if isinstance(self.array, DeviceArray) or not self._is_copied():
            return self.array
        array = np.ascontiguousarray(self.array)
        if len(self._extent) == 1:
            return array
        raw = array.reshape(len(array), -1).view(np.uint8)
        short = -raw.shape[1] % _ROWS
        return np.pad(raw, ((0, 0), (0, short))) if short else array

    def _is_copied(self) -> bool:
        from . import memory
        return memory.of(self.array) is None

    def _swaps(self) -> bool:
        """Whether the array itself is in the job, so that another may take its place in a prepared one."""
        if isinstance(self.array, DeviceArray):
            return True
        return self.array.flags.c_contiguous and self._rows() is self.array


def _choice(value, name: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}")
    return value


def _modes(mode) -> tuple[int, int]:
    pair = (mode, mode) if isinstance(mode, str) else tuple(mode)
    if len(pair) != 2:
        raise ValueError(f"address_mode must be one mode, or two of them, not {mode!r}")
    return tuple(_MODES[_choice(one, "address_mode", tuple(_MODES))] for one in pair)
