# SPDX-License-Identifier: Apache-2.0
"""SourceModule, as in PyCUDA."""

from __future__ import annotations

import os
import re
import struct

import numpy as np

from . import _native as native
from . import errors
from .argument import Argument, In, InOut, Out, check_bits
from .arrays import Array
from .complex_header import headers_for
from .config import LaunchConfig
from .cupy_style import as_inout
from .jobs import Job
from .kernel import Attributes
from .modules import Module, Variable
from .signature import without_comments

_WRAPPERS = {"In": In, "Out": Out, "InOut": InOut}
_NO_REFERENCES = ("texture references do not exist in CUDA 12 and later: give the kernel a parameter of type cudaTextureObject_t, "
                  "fetch with tex2D<float>(t, x, y), and pass gpuq.Texture(a)")


class SourceModule:
    """CUDA C++ source, compiled at once. Unless `no_extern_c` is set, it is wrapped in extern "C", as in PyCUDA.

    `options`: compiler options; `include_dirs`: folders of headers, whose files this process reads. The source may
    include <pycuda-complex.hpp>. The other parameters of PyCUDA's SourceModule are ignored.
    """

    def __init__(self, source: str, nvcc: str = "nvcc", options=None, keep: bool = False, no_extern_c: bool = False,
                 arch=None, code=None, cache_dir=None, include_dirs=None, client=None):
        folders = [include_dirs] if isinstance(include_dirs, (str, os.PathLike)) else include_dirs or ()
        self._prints = "printf" in source
        wrapped = source if no_extern_c else f'extern "C" {{\n#line 1\n{source}\n}}\n'
        options = [*(options or ()), *(f"-I{os.fspath(folder)}" for folder in folders)]
        try:
            self.module = Module(wrapped, "c++", options, "kernel.cu", headers=headers_for(source), client=client)
        except errors.CompileError as error:
            if re.search(r"\b(texture|surface)\s*<", without_comments(source)):
                raise NotImplementedError(f"SourceModule: {_NO_REFERENCES}") from error
            raise

    def get_function(self, name: str) -> "Function":
        """Get a kernel by name."""
        return Function(self.module.get_kernel(name), self._prints)

    def get_global(self, name: str) -> "Global":
        """Get a variable, which is also PyCUDA's pair: `pointer, nbytes = module.get_global(name)`. Raises NotFoundError."""
        variable = Global(self.module, name)
        try:
            _ = variable.nbytes
        except errors.NotFoundError:  # the library does not know the constants, which can be read
            variable.get((), np.uint8)
        return variable

    def get_texref(self, name: str):
        """Raises NotImplementedError, which tells what takes their place."""
        raise NotImplementedError(f"get_texref({name!r}): {_NO_REFERENCES}")

    def get_surfref(self, name: str):
        """Raises NotImplementedError."""
        raise NotImplementedError(f"get_surfref({name!r}): gpuq has no surfaces: let the kernel write to an array")

    def __repr__(self) -> str:
        return f"<gpuq.SourceModule {', '.join(self.module.kernels)}>"


class Global(Variable):
    """A variable, and a pair of itself and its size in bytes. It takes the place of a pointer in PyCUDA: `get()` and
    `set()` copy from and to it. It has no address, as it moves when its worker ends.
    """

    def __iter__(self):
        return iter((self, self.nbytes))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i):
        return (self, self.nbytes)[i]


class Function(Attributes):
    """A kernel. The call `f(*args, block=(x, y, z), grid=(x, y))` launches it and waits until it has ended."""

    def __init__(self, kernel, prints: bool = False):
        self.kernel = kernel
        self._prints = prints  # the source may call printf
        self._codes = None

    def _kernel_of(self):
        return self.kernel

    def submit(self, *args, block, grid=(1, 1), shared: int = 0, texrefs=(), **options) -> Job:
        """As a call, but without waiting. Returns the Job."""
        _check_texrefs(texrefs)
        return self.kernel.submit(LaunchConfig(grid, block, None, shared), *_arguments(self.kernel, args), **options)

    def __call__(self, *args, block, grid=(1, 1), shared: int = 0, stream=None, time_kernel: bool = False, texrefs=(), **options):
        """Launch the kernel and wait until it has ended. Returns None, or seconds on the GPU if `time_kernel` is set.

        What the kernel prints goes to sys.stdout.

        `args`: In, Out or InOut of gpuq or PyCUDA around arrays; an Array or DeviceArray, which means InOut; numpy
        scalars; or numpy arrays, by value, where the kernel takes a struct. `shared`: bytes of dynamic shared memory of
        a block. `stream` is ignored. `texrefs` raise NotImplementedError.
        """
        job = self.submit(*args, block=block, grid=grid, shared=shared, texrefs=texrefs, timed=time_kernel, **options)
        result = self._ended(job)
        return result.gpu_time if time_kernel else None

    def _ended(self, job: Job):
        """Wait for the job. What the kernel printed goes to sys.stdout. Returns the Result."""
        result = job.wait()
        if self._prints and result.output:
            print(result.output, end="")
        return result

    # ---- prepared invocations ----

    def prepare(self, arg_types, shared=None, texrefs=()) -> "Function":
        """Set the types of the arguments for prepared_call. Returns the function itself.

        `arg_types`: a string of codes as in the module struct, such as "PPif", with "P" for pointers and "F" and "D"
        for complex numbers; or a sequence of codes, numpy types and dtypes. `shared`: bytes of dynamic shared memory,
        unless a call says otherwise. Raises TypeError if a type does not match the kernel's parameter.
        """
        _check_texrefs(texrefs)
        codes, packers = _codes(arg_types), self.kernel._packers
        if len(codes) != len(packers):
            raise TypeError(f"{self.kernel.name}: prepare() was given {len(codes)} types, but the kernel takes {len(packers)} arguments "
                            f"({', '.join(self.kernel.parameters)})")
        for code, packer in zip(codes, packers):
            _check_code(code, packer)
        self._codes, self._shared = codes, shared or 0
        return self

    def _prepared(self, grid, block, args, shared_size, **options) -> Job:
        if self._codes is None:
            raise RuntimeError(f"{self.kernel.name}: call prepare(), with the types of the arguments, before a prepared call")
        if not isinstance(block, tuple):
            raise TypeError(f"{self.kernel.name}: the second argument must be the block, a tuple of up to three ints, not {block!r}")
        if len(args) != len(self._codes):
            raise TypeError(f"{self.kernel.name} was prepared for {len(self._codes)} arguments, not {len(args)}")
        packed = [_converted(code, packer, arg) for code, packer, arg in zip(self._codes, self.kernel._packers, args)]
        config = LaunchConfig(grid, block, None, self._shared if shared_size is None else shared_size)
        return self.kernel.submit(config, *packed, **options)

    def prepared_call(self, grid, block, *args, shared_size: int | None = None, **options) -> None:
        """Launch the kernel as prepared, and wait until it has ended.

        `grid`: tuple of up to three ints; `block`: the same; `args`: for "P" an Array, a DeviceArray, In, Out or InOut,
        an address of device memory as int, or None; else a number. `shared_size`: bytes of dynamic shared memory of a
        block. `options`: as for `gpuq.job`.
        """
        self._ended(self._prepared(grid, block, args, shared_size, **options))

    def prepared_timed_call(self, grid, block, *args, shared_size: int | None = None, **options):
        """As prepared_call, but without waiting. Returns a function that waits and returns the seconds on the GPU."""
        job = self._prepared(grid, block, args, shared_size, timed=True, **options)
        return lambda: self._ended(job).gpu_time

    def prepared_async_call(self, grid, block, stream, *args, shared_size: int | None = None, **options) -> Job:
        """As prepared_call, but without waiting. Returns the Job. `stream` is ignored: jobs run in their order."""
        return self._prepared(grid, block, args, shared_size, **options)

    def set_cache_config(self, config) -> None:
        """Does nothing: a hint."""

    set_shared_config = set_cache_config

    def __repr__(self) -> str:
        return f"<gpuq function {self.kernel!r}>"


def _check_texrefs(texrefs) -> None:
    if texrefs:
        raise NotImplementedError(f"texrefs: {_NO_REFERENCES}")


# ---- types of prepared invocations ----

_NUMPY = {"F": np.complex64, "D": np.complex128, "?": np.bool_}
_KINDS = {native.F32: "f", native.F64: "d", native.I8: "cbB?", native.I16: "hH", native.I32: "iIlL", native.I64: "qQlLnN"}


def _codes(arg_types) -> list[str]:
    """One code for each argument."""
    text = ""
    for each in arg_types:
        if not isinstance(each, str):
            dtype = np.dtype(each)
            each = f"{dtype.itemsize}s" if dtype.char == "V" else dtype.char
        text += each
    found = re.findall(r"(\d*)([a-zA-Z?])", text)
    if "".join(count + code for count, code in found) != text:
        raise TypeError(f"prepare(): {text!r} is no string of struct's type codes")
    codes = []
    for count, code in found:
        if code == "s":
            codes.append(count + code)
        elif code != "x":
            codes += [code] * int(count or 1)
    return codes


def _size(code: str) -> int:
    return np.dtype(_NUMPY[code]).itemsize if code in _NUMPY else struct.calcsize(code)


def _check_code(code: str, packer) -> None:
    try:
        size = _size(code)
    except struct.error:
        raise TypeError(f"prepare(): {code!r} is none of struct's type codes") from None
    known = _KINDS.get(packer.kind) if packer.kinds_known else None
    if size != packer.size or (code == "P" and not packer.takes_buffer) or (known is not None and code not in known) or \
            (packer.kind == native.POINTER_KIND and code not in "PqQlLnN"):
        raise TypeError(f"{packer.where} cannot be {code!r}, of {size} bytes, as prepare() was told")


def _converted(code: str, packer, arg):
    """The argument as the kernel takes it."""
    is_number = isinstance(arg, (int, float, complex, np.generic))
    if code == "P" or packer.kind == native.POINTER_KIND or (packer.takes_buffer and not is_number):
        return _pointer(packer, arg)
    try:
        if code in _NUMPY:
            return _NUMPY[code](arg)
        if code.endswith("s"):
            return _bytes(packer, arg)
        return np.frombuffer(struct.pack(code, arg), code)[0]
    except (struct.error, TypeError, OverflowError) as error:
        raise TypeError(f"{packer.where} was prepared as {code!r} and cannot be {arg!r}: {error}") from None


def _pointer(packer, arg):
    if isinstance(arg, (int, np.integer)) and not isinstance(arg, bool):
        if packer.kind == native.POINTER_KIND:
            raise TypeError(f"{packer.where} must be an array, not an address: pass the DeviceArray itself")
        if not 0 <= arg < 1 << 64:
            raise OverflowError(f"{packer.where}: {arg} is out of range")
        return np.uint64(arg)
    return _argument(packer, arg)


# ---- arguments ----


def _arguments(kernel, args) -> list:
    packers = [*kernel._packers, *[None] * (len(args) - len(kernel._packers))]  # too many: told later
    return [_argument(packer, arg) for packer, arg in zip(packers, args)]


def _argument(packer, arg):
    """Convert In, Out and InOut of pycuda.driver, recognized by name so that PyCUDA need not be imported."""
    if not isinstance(arg, Argument) and hasattr(arg, "array") and type(arg).__name__ in _WRAPPERS:
        arg = _WRAPPERS[type(arg).__name__](arg.array)
    if isinstance(arg, np.ndarray) and not isinstance(arg, (Array, np.ma.MaskedArray)) and packer is not None and \
            packer.kind != native.POINTER_KIND:
        return arg.reshape(())[()] if arg.size == 1 else _bytes(packer, arg)
    return as_inout(arg)


def _bytes(packer, arg) -> bytes:
    if isinstance(arg, bytes):
        return bytes(arg)
    array = np.ascontiguousarray(arg)
    check_bits(array.dtype, packer.where)
    return array.tobytes()
