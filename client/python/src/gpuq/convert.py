# SPDX-License-Identifier: Apache-2.0
"""Wraps buffers, and tensors of other libraries (by DLPack), as numpy arrays that share their memory."""

from __future__ import annotations

import numpy as np

_DL_CPU = 1


class _Pointer:
    """Writable memory of another object, to which it holds a reference."""

    def __init__(self, array: np.ndarray):
        self.owner = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.__array_interface__["data"][0], False)}


def _from_dlpack(a, writes: bool) -> np.ndarray:
    kind = a.__dlpack_device__()[0]
    if kind != _DL_CPU:
        raise TypeError(f"{type(a).__name__} is in GPU memory of this process's own context, which gpuqd cannot access: "
                        "pass a CPU copy (t.cpu() of a torch tensor), or keep data on the GPU with gpuq.to_device()")
    if getattr(a, "requires_grad", False):
        a = a.detach()
    array = np.from_dlpack(a)
    if writes and not array.flags.writeable:
        array = np.asarray(_Pointer(array))  # numpy marks it read-only because DLPack could not say
    return array


def check_unmasked(a: np.ndarray) -> None:
    if type(a) is not np.ndarray and isinstance(a, np.ma.MaskedArray):
        raise TypeError("a masked array would lose its mask: pass a.filled(value), or a.data and numpy.ma.getmaskarray(a) as two arrays")


def as_numpy(a, writes: bool = False, sequences: bool = False) -> np.ndarray:
    """A numpy array of the same memory. `writes`: it will be written; `sequences`: lists and numbers are copied.

    Raises TypeError for what has no memory of its own, or only a GPU's.
    """
    if isinstance(a, np.ndarray):
        check_unmasked(a)
        return a
    if hasattr(a, "__dlpack_device__"):
        return _from_dlpack(a, writes)
    if hasattr(a, "__cuda_array_interface__"):
        raise TypeError(f"{type(a).__name__} is in GPU memory of this process's own context, which gpuqd cannot access: "
                        "pass a CPU copy, or keep data on the GPU with gpuq.to_device()")
    if hasattr(a, "__array_interface__"):
        return np.asarray(a)
    try:
        return np.asarray(memoryview(a))
    except TypeError:
        pass
    if sequences:
        return np.asarray(a)
    raise TypeError(f"expected a numpy array, a buffer or a DLPack CPU tensor, not {type(a).__name__}: "
                    "convert it with numpy.asarray(x, dtype=...)")
