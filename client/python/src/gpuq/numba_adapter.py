# SPDX-License-Identifier: Apache-2.0
"""Kernels compiled by Numba: Python functions as PTX, with arrays passed in Numba's ABI.

In that ABI an array is meminfo, parent, number of items, bytes per item, data, and the shape and strides of each axis.
The first two are null on a GPU. Numba is imported only when `from_numba` is called, and is used only to compile. It
needs its NVVM (from a CUDA Toolkit or its packages), but no GPU.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import types

import numpy as np

from . import _native as native
from .argument import Argument, Packer
from .convert import as_numpy
from .device import DeviceArray
from .kernel import Kernel
from .modules import Module
from .signature import Parameter

_WORD = struct.Struct("=Qiiqq")
_KINDS = {"f4": native.F32, "f8": native.F64, "i1": native.I8, "u1": native.I8, "b1": native.I8, "i2": native.I16,
          "u2": native.I16, "i4": native.I32, "u4": native.I32, "i8": native.I64, "u8": native.I64}


_compiling = threading.Lock()


class Spec:
    """One parameter of the Python function: `ndim` -1 for a scalar."""

    def __init__(self, text: str, dtype: str, ndim: int = -1, readonly: bool = False):
        self.text = text
        self.dtype = np.dtype(dtype)
        self.ndim = ndim
        self.readonly = readonly

    def packer(self, kernel: str, index: int) -> Packer:
        if self.ndim >= 0:
            known = Parameter(self.text, self.dtype, True, not self.readonly, name=self.text.split(":")[0])
            return Packer(kernel, index, native.POINTER_KIND, 8, True, known)
        code = self.dtype.str[1:]
        return Packer(kernel, index, _KINDS[code], self.dtype.itemsize, True,
                      Parameter(self.text, self.dtype, name=self.text.split(":")[0]))

    def __reduce__(self):
        return Spec, (self.text, self.dtype.str, self.ndim, self.readonly)


class NumbaKernel(Kernel):
    """A Kernel that passes arrays in Numba's ABI. `symbol`: in the PTX; `specs`: the function's parameters."""

    def __init__(self, module: Module, symbol: str, name: str, doc: str, specs):
        inner = module.get_kernel(symbol)
        super().__init__(module, name, symbol, doc, (), inner.kinds_known, inner.attributes)
        self._specs = tuple(specs)
        self._packers = [spec.packer(name, i) for i, spec in enumerate(self._specs)]
        wanted = sum(1 if spec.ndim < 0 else 5 + 2 * spec.ndim for spec in self._specs)
        given = len(inner._packers)
        if wanted != given:
            raise TypeError(f"{name}: its PTX has {given} parameters, but Numba's ABI should give it {wanted}; "
                            "this version of Numba passes some types differently")

    def _pack(self, job, args, keep: list) -> tuple[bytes, int]:
        if len(args) != len(self._specs):
            raise TypeError(f"{self.name} takes {len(self._specs)} arguments ({', '.join(self.parameters)}), "
                            f"not {len(args)}")
        parts = []
        for spec, packer, arg in zip(self._specs, self._packers, args):
            if spec.ndim < 0:
                parts.append(packer.scalar(arg, keep))
            else:
                parts += self._array(job, spec, packer, arg)
        return b"".join(parts), len(parts)

    def _array(self, job, spec: Spec, packer: Packer, arg) -> list[bytes]:
        direction, array = self._direction(packer, arg)
        if not isinstance(array, (np.ndarray, DeviceArray)):
            array = as_numpy(array, writes=direction != native.IN)
        if array.ndim != spec.ndim:
            raise ValueError(f"{packer.where} must have {spec.ndim} axes, not the shape {tuple(array.shape)}")
        size = array.dtype.itemsize
        strides = [size] * spec.ndim
        for axis in range(spec.ndim - 2, -1, -1):
            strides[axis] = strides[axis + 1] * array.shape[axis + 1]
        data = job._buffer(packer, array, direction)
        return [_word(0), _word(0), _word(array.size), _word(size), data, *map(_word, array.shape), *map(_word, strides)]

    def _slots(self, operation: int, args) -> list:
        """Shape and strides are separate arguments, so a replacement array must have the same shape."""
        from .prepared import Slot
        slots, index = [], 0
        for spec, packer, arg in zip(self._specs, self._packers, args):
            if spec.ndim < 0:
                slots.append(Slot(operation, packer.name, index, packer))
                index += 1
            else:
                direction, array = self._direction(packer, arg)
                slots.append(Slot(operation, packer.name, index + 4, packer, direction, array, shape=tuple(np.shape(array))))
                index += 5 + 2 * spec.ndim
        return slots

    @staticmethod
    def _direction(packer: Packer, arg):
        if isinstance(arg, Argument):
            return arg.direction, arg.value
        if isinstance(arg, DeviceArray):
            return (native.INOUT if packer.known.writes else native.IN), arg
        return packer.bare(arg), arg

    def __reduce__(self):
        return NumbaKernel, (self.module, self._symbol.decode(), self.name, self.doc, self._specs)


def _word(value: int) -> bytes:
    return _WORD.pack(0, 0, native.I64, 8, value)


def _spec(kind, name: str) -> Spec:
    """The Spec for a Numba type."""
    text = f"{name}: {kind}"
    if hasattr(kind, "layout") and hasattr(kind, "ndim"):
        if kind.layout == "F" and kind.ndim > 1:
            raise TypeError(f"{text}: arrays are passed in row-major order, but this kernel expects the Fortran layout: declare "
                            f"it as {kind.dtype}[{':, ' * (kind.ndim - 1)}::1]")
        return Spec(text, _dtype(kind.dtype, text).str, kind.ndim, not kind.mutable)
    dtype = _dtype(kind, text)
    if dtype.str[1:] not in _KINDS:
        raise TypeError(f"{text}: Numba passes this type in parts; use arrays, integers, floats and booleans")
    return Spec(text, dtype.str)


def _dtype(kind, text: str) -> np.dtype:
    """The numpy dtype, found by the type's name, which is the same in Numba and numpy."""
    name = {"bool": "bool_", "boolean": "bool_", "char": "int8", "uchar": "uint8"}.get(str(kind), str(kind))
    try:
        return np.dtype(name.rstrip("_"))
    except TypeError:
        raise TypeError(f"{text}: from_numba accepts arrays and scalars of integers, floats and booleans") from None


def _normalised(cuda, signature):
    """The argument types of a signature in any of the forms that Numba accepts."""
    for home in ("numba.cuda.core.sigutils", "numba.core.sigutils"):
        try:
            sigutils = __import__(home, fromlist=["normalize_signature"])
            break
        except ImportError:
            continue
    arguments, result = sigutils.normalize_signature(signature)
    if result is not None and str(result) != "none":
        raise TypeError(f"a kernel returns nothing, but the signature returns {result}: use void(...)")
    return arguments


@contextlib.contextmanager
def _device_of(cc):
    """Let this thread compile for `cc`. Numba asks its current device, and so a CUDA context, when it meets a device function."""
    from numba.cuda import compiler, dispatcher
    homes = [home for home in (compiler, dispatcher) if hasattr(home, "get_current_device")]
    thread, device = threading.get_ident(), types.SimpleNamespace(compute_capability=cc)
    with _compiling:
        asked = [home.get_current_device for home in homes]
        for home, ask in zip(homes, asked):
            home.get_current_device = lambda ask=ask: device if threading.get_ident() == thread else ask()
        try:
            yield
        finally:
            for home, ask in zip(homes, asked):
                home.get_current_device = ask


def _default_cc() -> tuple[int, int]:
    """Numba's default, but at least what its compiler supports."""
    from numba import config, cuda
    default = getattr(getattr(cuda, "config", config), "CUDA_DEFAULT_PTX_CC", None) or config.CUDA_DEFAULT_PTX_CC
    try:
        from numba.cuda.cudadrv import nvrtc
        return max(tuple(default), nvrtc.get_lowest_supported_cc())
    except (ImportError, AttributeError):
        return tuple(default)


def compile_ptx(function, signature, cc=None, fastmath: bool = False) -> tuple[str, list[Spec]]:
    """Compile a Python function with numba.cuda.compile. Returns the PTX and the parameters.

    `function`: a plain function, or one decorated with @cuda.jit.
    """
    import inspect

    from numba import cuda
    function = getattr(function, "py_func", function)
    arguments = _normalised(cuda, signature)
    names = list(inspect.signature(function).parameters)
    if len(names) != len(arguments):
        raise TypeError(f"{function.__name__} has {len(names)} parameters, but the signature has {len(arguments)}")
    specs = [_spec(kind, name) for kind, name in zip(arguments, names)]
    cc = cc or _default_cc()
    with _device_of(cc):
        ptx, _ = cuda.compile(function, arguments, device=False, abi="numba", output="ptx", fastmath=fastmath, cc=cc)
    return (ptx.decode() if isinstance(ptx, bytes) else ptx), specs


def from_numba(function, signature, *, cc=None, fastmath: bool = False, client=None) -> NumbaKernel:
    """Create a Kernel from a Python function, which Numba compiles for the GPU.

    `signature`: the types of the parameters in Numba's notation, such as "void(float32[::1], float32, int64)", or a
    tuple of types. Arrays are passed in row-major order; a Fortran layout raises TypeError. `cc`: compute capability, such as (9, 0); None: Numba's
    default, which also runs on newer devices. Use the kernel like any other: `kernel.run(config, Out(r), 2.0, n)`.
    Numba's exceptions are passed on.
    """
    ptx, specs = compile_ptx(function, signature, cc, fastmath)
    function = getattr(function, "py_func", function)
    module = Module(ptx, "ptx", (), f"{function.__name__}.ptx", client=client)
    if len(module.kernels) != 1:
        raise TypeError(f"{function.__name__}: expected one kernel in Numba's PTX, found {len(module.kernels)}")
    return NumbaKernel(module, module.kernels[0], function.__name__, function.__doc__ or "", specs)
