# SPDX-License-Identifier: Apache-2.0
"""Kernels compiled by Triton: the cubin, or PTX for the CPU driver, and what Triton's launcher adds to a launch.

It adds 32 threads per warp, dynamic shared memory and clusters from the metadata, and hidden parameters after those in
the source: pointers to scratch memory, or null if the kernel needs none. This module does not import Triton.

Triton compiles a kernel for the values that it sees: it compiles in constants and integers that are 1, and relies on
integers and addresses that are divisible by 16. A launch with other values would compute nonsense, so it is an error.
"""

from __future__ import annotations

import struct

import numpy as np

from . import _native as native
from .argument import Packer
from .config import LaunchConfig, _three
from .daemon import status
from .device import DeviceArray
from .kernel import Kernel
from .modules import Module
from .signature import Parameter

_WORD = struct.Struct("=Qiiqq")
_WARP = 32
_DTYPES = {
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u1": "bool", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "fp16": "float16", "fp32": "float32", "fp64": "float64",
}
_FLOATS = {2: native.BYTES, 4: native.F32, 8: native.F64}
_INTEGERS = {1: native.I8, 2: native.I16, 4: native.I32, 8: native.I64}


class TritonLaunch:
    """Launch parameters from the metadata. Sizes are in bytes; scratch is per block."""

    def __init__(self, threads: int, shared: int, cluster: tuple[int, int, int] | None, cooperative: bool,
                 scratch: tuple[int, int]):
        self.threads = threads
        self.shared = shared
        self.cluster = cluster
        self.cooperative = cooperative
        self.scratch = scratch

    def config(self, grid) -> LaunchConfig:
        """`grid`: number of programs, as in Triton. Of a LaunchConfig only the grid is used."""
        x, y, z = grid.grid if isinstance(grid, LaunchConfig) else _three(grid, "grid")
        width = self.cluster[0] if self.cluster else 1
        return LaunchConfig((x * width, y, z), self.threads, self.cluster, self.shared, self.cooperative)


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


class TritonKernel(Kernel):
    """A Kernel launched with only a grid. `parameters`: the TritonParameters of the source, in order."""

    def __init__(self, module: Module, name: str, parameters, launch: TritonLaunch):
        inner = module.get_kernel(name)
        super().__init__(module, name, name, "", (), True, inner.attributes)
        self._given_as = tuple(parameters)
        self._launch = launch
        sizes = [packer.size for packer in inner._packers]
        runtime = [parameter for parameter in self._given_as if parameter.kind is not None]
        if len(sizes) < len(runtime):
            raise TypeError(f"{name}: its cubin has {len(sizes)} parameters, but its signature has {len(runtime)}")
        self._packers = [_packer(name, i, parameter, sizes[i]) for i, parameter in enumerate(runtime)]
        self._hidden = sizes[len(runtime):]

    def _config(self, config) -> LaunchConfig:
        return self._launch.config(config)

    def _pack(self, job, args, keep: list) -> tuple[bytes, int]:
        args = self._given(args)
        packed, n_args = super()._pack(job, args, keep)
        hidden = [self._scratch(job, i, size) for i, size in enumerate(self._hidden)]
        return packed + b"".join(hidden), n_args + len(hidden)

    def _given(self, args):
        """Check the constants among the arguments, and drop them. The caller may omit those of tl.constexpr, or all."""
        for parameters in (self._given_as, [parameter for parameter in self._given_as if not parameter.declared]):
            if len(args) == len(parameters):
                return [arg for i, (arg, parameter) in enumerate(zip(args, parameters)) if not self._drops(i, arg, parameter)]
        return args

    def _drops(self, i: int, arg, parameter: TritonParameter) -> bool:
        if parameter.kind is not None:
            return False
        parameter.check_constant(self.name, i, arg)
        return True

    def _slots(self, operation: int, args) -> list:
        return super()._slots(operation, self._given(args))

    def _scratch(self, job, i: int, size: int) -> bytes:
        """A hidden parameter: the first is global scratch memory, the second the profiler's."""
        nbytes = self._launch.scratch[i] if i < len(self._launch.scratch) else 0
        if nbytes and size == 8:
            return self._scratch_memory(job, nbytes)
        return _WORD.pack(0, 0, native.NULL if size == 8 else _INTEGERS.get(size, native.BYTES), size, 0)

    def _scratch_memory(self, job, nbytes: int) -> bytes:
        blocks = 1
        for length in job._grid:
            blocks *= length
        held = DeviceArray._new(job.client, nbytes * blocks, np.uint8, None)
        job._hold(held)  # or a new array would get it before the job has run
        packer = Packer(self.name, len(self._packers), native.POINTER_KIND, 8, True)
        n_outputs = len(job._outputs)
        packed = job._buffer(packer, held, native.OUT)
        del job._outputs[n_outputs:]  # not an output of the caller
        return packed

    def __reduce__(self):
        return TritonKernel, (self.module, self.name, self._given_as, self._launch)


def _packer(kernel: str, index: int, parameter: TritonParameter, size: int) -> TritonPacker:
    kind, text = parameter.kind, f"{parameter.name}: {parameter.kind}"
    if kind.startswith("*"):
        element = _DTYPES.get(kind[1:].lstrip("k"))
        known = Parameter(text, np.dtype(element) if element else None, True, False if kind.startswith("*k") else None,
                          name=parameter.name)
        packer = TritonPacker(kernel, index, native.POINTER_KIND, 8, True, known)
    else:
        kinds = _FLOATS if kind.startswith(("fp", "bf")) else _INTEGERS
        packer = TritonPacker(kernel, index, kinds.get(size, native.BYTES), size, True, Parameter(text, name=parameter.name))
    packer.divisor = parameter.divisor
    packer.short = kind if kind in ("fp16", "bf16") else None
    return packer


def _bfloat16(value: float) -> bytes:
    """The upper half of the float, as Triton's own launcher passes it: not rounded."""
    return struct.pack("=H", int(np.float32(value).view(np.uint32)) >> 16)


_MISSING = object()


def _of(table, name: str, at: int):
    """What a table of Triton says about a parameter: by name, by index or by path, as its versions do."""
    for key in (name, at, (at,)):
        if key in table:
            return table[key]
    return _MISSING


def _divisors(attrs) -> dict:
    """{parameter: what its value or address is divisible by}, from the attributes of any version of Triton."""
    if isinstance(attrs, dict):
        return {key: int(dict(pairs).get("tt.divisibility", 1)) for key, pairs in attrs.items()}
    divisible = getattr(attrs, "divisible_by_16", None)
    if divisible is None:
        divisible = getattr(attrs, "arg_properties", {}).get("tt.divisibility", ())
    return {key: 16 for key in divisible}


def _parameters(compiled) -> list[TritonParameter]:
    """The parameters in the source."""
    source = compiled.src
    constants = getattr(source, "constants", None) or getattr(source, "constexprs", None) or {}
    divisors = _divisors(getattr(source, "attrs", None) or {})
    function = getattr(source, "fn", None)
    names = list(getattr(function, "arg_names", ()))
    declared = [getattr(param, "is_constexpr", False) for param in getattr(function, "params", ())]
    parameters = []
    for i, (key, kind) in enumerate(source.signature.items()):
        at = key if isinstance(key, int) else names.index(key) if key in names else i
        name = names[at] if at < len(names) else str(key)
        if not isinstance(kind, str):
            raise TypeError(f"parameter {name}: from_triton does not support tuples: pass their elements one by one")
        if kind.startswith(("tensordesc", "nvTmaDesc")):
            raise TypeError(f"parameter {name}: {kind}: from_triton does not pass tensor descriptors of the host: pass the array, and "
                            "let the kernel make one, tl.make_tensor_descriptor(pointer, shape, strides, block_shape)")
        value = _of(constants, name, at)
        if value is not _MISSING or kind == "constexpr":
            if value is _MISSING:
                raise TypeError(f"parameter {key}: Triton does not tell the value of this constant")
            parameters.append(TritonParameter(name, None, value, at < len(declared) and declared[at]))
        else:
            divisor = _of(divisors, name, at)
            parameters.append(TritonParameter(name, kind, divisor=1 if divisor is _MISSING else divisor))
    return parameters


def _launch(metadata) -> TritonLaunch:
    def of(name: str, default):
        return metadata.get(name, default) if isinstance(metadata, dict) else getattr(metadata, name, default)

    n_ctas = of("num_ctas", 1) or 1
    cluster = tuple(of("cluster_dims", None) or (n_ctas, 1, 1))
    scratch = (of("global_scratch_size", 0) or 0, of("profile_scratch_size", 0) or 0)
    return TritonLaunch(_WARP * of("num_warps", 4), of("shared", 0) or 0, None if cluster == (1, 1, 1) else cluster,
                        bool(of("launch_cooperative_grid", False)), scratch)


def from_triton(compiled, *, client=None) -> TritonKernel:
    """Create a Kernel from what `kernel.warmup(..., grid=(1,))`, `kernel[grid](...)` or `triton.compile` returned.

    Launch it with a grid, an int or a tuple, instead of a LaunchConfig: `kernel.run(grid, In(x), Out(y), n)`. The
    arguments are those of the source in order; constants may be omitted. Values other than those that the kernel was
    compiled for raise ValueError: another constant, or an integer or a slice that is not divisible as Triton assumed.
    """
    metadata = compiled.metadata
    name = metadata.get("name") if isinstance(metadata, dict) else getattr(metadata, "name", None)
    name = name or compiled.name
    code_type = "ptx" if status(client).driver == "cpu" else "cubin"
    module = Module(compiled.asm[code_type], code_type, (), name, client=client)
    return TritonKernel(module, name, _parameters(compiled), _launch(metadata))
