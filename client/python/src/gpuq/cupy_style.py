# SPDX-License-Identifier: Apache-2.0
"""RawKernel and RawModule, as in CuPy."""

from __future__ import annotations

import operator

import numpy as np

from . import _native as native
from .argument import Argument, InOut, Out
from .arrays import Array
from .complex_header import headers_for, translated
from .config import LaunchConfig
from .jobs import Job
from .kernel import Attributes
from .modules import Module


class RawModule:
    """A module with CUDA C++ from `code`, or PTX or cubin from `path`. It is loaded at its first use.

    - `options`: compiler options
    - `name_expressions`: instances of templates to compile, such as "my_sqrt<int>"
    - `enable_cooperative_groups`: launch the kernels cooperatively
    - `client`: a Client, or None for the default client
    - `translate_cucomplex`: functions of cuComplex.h for double also take floats, as in CuPy

    The source may include <cupy/complex.cuh>, and <cuComplex.h> in any case. `backend` and `jitify` change nothing.
    """

    def __init__(self, code: str | None = None, *, path: str | None = None, options=(), backend: str = "nvrtc",
                 translate_cucomplex: bool = False, enable_cooperative_groups: bool = False, name_expressions=None,
                 jitify: bool = False, client=None):
        if (code is None) == (path is None):
            raise TypeError("RawModule: pass either code or path")
        if name_expressions and code is None:
            raise ValueError("RawModule: name_expressions need source, as code")
        self.code = translated(code) if translate_cucomplex and code is not None else code
        self.path = path
        self.options = tuple(options)
        self.name_expressions = tuple(name_expressions or ())
        self.cooperative = enable_cooperative_groups
        self._client = client
        self._module = None

    @property
    def module(self) -> Module:
        """The Module."""
        if self._module is None:
            code = self.code
            if code is None:
                with open(self.path, "rb") as file:
                    code = file.read()
            self._module = Module(code, None, self.options, self.path, names=self.name_expressions,
                                  headers=headers_for(code), client=self._client)
        return self._module

    def compile(self, log_stream=None) -> None:
        """Load the module now, and write compiler warnings to `log_stream`."""
        log = self.module.log
        if log_stream is not None:
            log_stream.write(log)

    def get_function(self, name: str) -> "RawKernel":
        """Get a kernel by name, also one of `name_expressions`: see `Module.get_kernel`."""
        return RawKernel._of(self, name)

    def get_global(self, name: str):
        """Get a variable: see `Module.get_global`."""
        return self.module.get_global(name)

    def __reduce__(self):
        return _module, (self.code, self.path, self.options, self.cooperative, self.name_expressions)

    def __repr__(self) -> str:
        return f"<gpuq.RawModule {self.path or 'of source'}{'' if self._module is None else ', loaded'}>"


def _module(code, path, options, cooperative, name_expressions=()) -> RawModule:
    return RawModule(code, path=path, options=options, enable_cooperative_groups=cooperative,
                     name_expressions=name_expressions)


_WITHOUT_ASKING = 48 << 10  # bytes of shared memory that CUDA gives each kernel


class RawKernel(Attributes):
    """A kernel. The call `kernel(grid, block, args, shared_mem=0)` launches it and waits until it has ended.

    Parameters as for RawModule, with the `name` of the kernel.
    """

    cache_mode_ca = -1  # as CuPy has it for what is not known
    preferred_shared_memory_carveout = -1  # may be set, without effect
    _dynamic = None

    def __init__(self, code: str, name: str, options=(), backend: str = "nvrtc", *, translate_cucomplex: bool = False,
                 enable_cooperative_groups: bool = False, jitify: bool = False, client=None):
        self.raw_module = RawModule(code, options=options, name_expressions=(name,) if "<" in name else (), translate_cucomplex=translate_cucomplex,
                                    enable_cooperative_groups=enable_cooperative_groups, jitify=jitify, client=client)
        self.name = name

    @classmethod
    def _of(cls, raw_module: RawModule, name: str) -> "RawKernel":
        self = cls.__new__(cls)
        self.raw_module = raw_module
        self.name = name
        self.kernel  # reports a wrong name here
        return self

    @property
    def kernel(self):
        """The Kernel."""
        return self.raw_module.module.get_kernel(self.name)

    def _kernel_of(self):
        return self.kernel

    @property
    def attributes(self) -> dict:
        """See `Kernel.attributes`, and those of CuPy that can be set: see `max_dynamic_shared_size_bytes`."""
        more = ("cache_mode_ca", "max_dynamic_shared_size_bytes", "preferred_shared_memory_carveout")
        return {**self.kernel.attributes, **{name: getattr(self, name) for name in more}}

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Bytes of dynamic shared memory of a block. It need not be set: each launch may use what the device has."""
        return max(0, _WITHOUT_ASKING - self.shared_size_bytes) if self._dynamic is None else self._dynamic

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, nbytes: int) -> None:
        self._dynamic = operator.index(nbytes)

    def compile(self, log_stream=None) -> None:
        """Load the module now."""
        self.raw_module.compile(log_stream)

    def submit(self, grid, block, args, *, shared_mem: int = 0, **options) -> Job:
        """As a call, but without waiting. Returns the Job."""
        config, kernel = LaunchConfig(grid, block, None, shared_mem, self.raw_module.cooperative), self.kernel
        return kernel.submit(config, *by_value(kernel, args), **options)

    def __call__(self, grid, block, args, *, shared_mem: int = 0, **options):
        """Launch the kernel and wait until it has ended. Returns the Result.

        `grid`, `block`: tuples of up to three ints. `shared_mem`: bytes of dynamic shared memory for each block.
        `args`: a tuple; an Array or DeviceArray without In, Out or InOut means InOut. A numpy array of one item, such
        as a struct of a dtype with the layout of the source's, is passed by value where the kernel takes no pointer.
        `options`: as for `gpuq.job`.
        """
        return self.submit(grid, block, args, shared_mem=shared_mem, **options).wait()

    def __reduce__(self):
        return RawKernel._of, (self.raw_module, self.name)

    def __repr__(self) -> str:
        return f"<gpuq.RawKernel {self.name}>"


def as_inout(arg):
    """A bare Array means InOut, because arrays of CuPy and PyCUDA have no direction.

    Kernels get an array in Fortran's layout as it is in memory, as in CuPy and PyCUDA.
    """
    if isinstance(arg, Array):
        return InOut(_rows(arg))
    if isinstance(arg, Argument) and isinstance(arg.value, np.ndarray):
        rows = _rows(arg.value)
        if rows is not arg.value:
            return Out(rows, whole=True) if arg.direction == native.OUT_WHOLE else type(arg)(rows)
    return arg


def _rows(array: np.ndarray) -> np.ndarray:
    return array.T if array.flags.f_contiguous and not array.flags.c_contiguous else array


def by_value(kernel, args) -> list:
    """The arguments, with the items of numpy arrays of one item where the kernel takes no pointer."""
    args = tuple(args)
    pointers = [packer.kind == native.POINTER_KIND for packer in kernel._packers]
    pointers += [True] * (len(args) - len(pointers))  # too many: told later
    return [as_inout(arg) if is_pointer or not isinstance(arg, np.ndarray) else _item(arg) for arg, is_pointer in zip(args, pointers)]


def _item(array: np.ndarray):
    is_value = array.size == 1 and not isinstance(array, (Array, np.ma.MaskedArray))
    return array.reshape(())[()] if is_value else as_inout(array)
