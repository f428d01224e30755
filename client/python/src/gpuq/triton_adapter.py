# SPDX-License-Identifier: Apache-2.0
"""Kernels compiled by Triton: the cubin, or PTX for the CPU driver, and what Triton's launcher adds to a launch.

It adds 32 threads per warp, dynamic shared memory and clusters from the metadata, and hidden parameters after those in
the source: pointers to scratch memory, or null if the kernel needs none. This module does not import Triton.

Triton compiles a kernel for the values that it sees: it compiles in constants and integers that are 1, and relies on
integers and addresses that are divisible by 16. A launch with other values would compute nonsense, so it is an error.
"""

from __future__ import annotations

import re
import struct

import numpy as np

from . import _native as native
from .argument import Packer
from .config import LaunchConfig, _three
from .daemon import status
from .device import DeviceArray
from .errors import ImageError
from .kernel import Kernel
from .modules import Module
from .triton_parameter import INTEGERS, TritonDescriptor, TritonParameter, TritonTuple

_WORD = struct.Struct("=Qiiqq")
_WARP = 32


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


class TritonKernel(Kernel):
    """A Kernel launched with only a grid. `parameters`: the TritonParameters of the source, in order."""

    def __init__(self, module: Module, name: str, parameters, launch: TritonLaunch):
        inner = module.get_kernel(name)
        super().__init__(module, name, name, "", (), True, inner.attributes)
        self._given_as = tuple(parameters)
        self._launch = launch
        sizes = [packer.size for packer in inner._packers]
        try:
            self._packers = TritonTuple(name, self._given_as).packers(name, 0, sizes)
        except IndexError:
            raise TypeError(f"{name}: its cubin has {len(sizes)} parameters, but its signature has more") from None
        self._hidden = sizes[len(self._packers):]

    def _config(self, config) -> LaunchConfig:
        return self._launch.config(config)

    def _pack(self, job, args, keep: list) -> tuple[bytes, int]:
        args = self._given(args)
        packed, n_args = super()._pack(job, args, keep)
        hidden = [self._scratch(job, i, size) for i, size in enumerate(self._hidden)]
        return packed + b"".join(hidden), n_args + len(hidden)

    def _given(self, args) -> list:
        """The arguments of the PTX. Constants are checked and dropped; the caller may omit those of tl.constexpr, or all."""
        passed = [parameter for parameter in self._given_as if not parameter.is_constant]
        for parameters in (self._given_as, [parameter for parameter in self._given_as if not parameter.declared], passed):
            if len(args) == len(parameters):
                return [each for i, (arg, parameter) in enumerate(zip(args, parameters)) for each in parameter.given(self.name, i, arg)]
        raise TypeError(f"{self.name} takes {len(passed)} arguments ({', '.join(parameter.text for parameter in passed)}), "
                        f"not {len(args)}")

    def _slots(self, operation: int, args) -> list:
        """Of a tensor descriptor the shape is an argument, too, so a replacement array must have the same."""
        slots = super()._slots(operation, self._given(args))
        for slot in slots:
            if slot.packer.keeps_shape and slot.array is not None:
                slot.shape = tuple(np.shape(slot.array))
        return slots

    def _scratch(self, job, i: int, size: int) -> bytes:
        """A hidden parameter: the first is global scratch memory, the second the profiler's."""
        nbytes = self._launch.scratch[i] if i < len(self._launch.scratch) else 0
        if nbytes and size == 8:
            return self._scratch_memory(job, nbytes)
        return _WORD.pack(0, 0, native.NULL if size == 8 else INTEGERS.get(size, native.BYTES), size, 0)

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


_DESCRIPTOR = re.compile(r"tensordesc(?:_im2col)?<(\w+)\[([^\]]*)\]")


class _Source:
    """What Triton tells of the parameters. `uses_tma`: descriptors of the host are tensor maps, which the driver makes."""

    def __init__(self, source, uses_tma: bool):
        self.constants = getattr(source, "constants", None) or getattr(source, "constexprs", None) or {}
        self.divisors = _divisors(getattr(source, "attrs", None) or {})
        self.uses_tma = uses_tma

    def parameter(self, name: str, path: tuple, kind, declared: bool = False):
        """`path`: its index, and within a tuple those of the elements."""
        if isinstance(kind, (tuple, list)):
            return TritonTuple(name, [self.parameter(f"{name}[{i}]", (*path, i), each) for i, each in enumerate(kind)])
        value = self._of(self.constants, name, path)
        if value is not _MISSING or kind == "constexpr":
            if value is _MISSING:
                raise TypeError(f"parameter {name}: Triton does not tell the value of this constant")
            return TritonParameter(name, None, value, declared)
        divisor = self._of(self.divisors, name, path)
        divisor = 1 if divisor is _MISSING else divisor
        if kind.startswith(("tensordesc", "nvTmaDesc")):
            return self._descriptor(name, kind, divisor)
        return TritonParameter(name, kind, divisor=divisor)

    @staticmethod
    def _of(table, name: str, path: tuple):
        return _of(table, name, path[0]) if len(path) == 1 else table.get(path, _MISSING)

    def _descriptor(self, name: str, kind: str, divisor: int) -> TritonDescriptor:
        found = _DESCRIPTOR.match(kind)
        if self.uses_tma or not found:
            raise TypeError(f"parameter {name}: {kind}: from_triton does not pass tensor descriptors of the host to TMA: compile the "
                            'kernel for GPUTarget("cuda", 80, 32), which runs on newer GPUs, too, or pass the array, and let the kernel '
                            "make one, tl.make_tensor_descriptor(pointer, shape, strides, block_shape)")
        rank = re.search(r"input_rank=(\d+)", kind)
        return TritonDescriptor(name, found[1], int(rank[1]) if rank else found[2].count(",") + 1, divisor)


def _parameters(compiled) -> list:
    """The parameters in the source."""
    source, metadata = compiled.src, compiled.metadata
    told = metadata.get("tensordesc_meta") if isinstance(metadata, dict) else getattr(metadata, "tensordesc_meta", None)
    reader = _Source(source, bool(told))
    function = getattr(source, "fn", None)
    names = list(getattr(function, "arg_names", ()))
    declared = [getattr(param, "is_constexpr", False) for param in getattr(function, "params", ())]
    parameters = []
    for i, (key, kind) in enumerate(source.signature.items()):
        at = key if isinstance(key, int) else names.index(key) if key in names else i
        name = names[at] if at < len(names) else str(key)
        parameters.append(reader.parameter(name, (at,), kind, at < len(declared) and declared[at]))
    return parameters


def _launch(metadata) -> TritonLaunch:
    def of(name: str, default):
        return metadata.get(name, default) if isinstance(metadata, dict) else getattr(metadata, name, default)

    n_ctas = of("num_ctas", 1) or 1
    cluster = tuple(of("cluster_dims", None) or (n_ctas, 1, 1))
    scratch = (of("global_scratch_size", 0) or 0, of("profile_scratch_size", 0) or 0)
    return TritonLaunch(_WARP * of("num_warps", 4), of("shared", 0) or 0, None if cluster == (1, 1, 1) else cluster,
                        bool(of("launch_cooperative_grid", False)), scratch)


def _module(asm, name: str, client) -> Module:
    """The PTX for the CPU driver, and for GPUs newer than the kernel was compiled for."""
    if status(client).driver == "cpu":
        return Module(asm["ptx"], "ptx", (), name, client=client)
    try:
        return Module(asm["cubin"], "cubin", (), name, client=client)
    except ImageError:
        if "ptx" not in asm:
            raise
        return Module(asm["ptx"], "ptx", (), name, client=client)


def from_triton(compiled, *, client=None) -> TritonKernel:
    """Create a Kernel from what `kernel.warmup(..., grid=(1,))`, `kernel[grid](...)` or `triton.compile` returned.

    Launch it with a grid, an int or a tuple, instead of a LaunchConfig: `kernel.run(grid, In(x), Out(y), n)`. The
    arguments are those of the source in order; constants may be omitted. A tuple is passed as a tuple with In, Out or
    InOut around its arrays. For a tensor descriptor of the host pass the array in In, Out or InOut, or such a
    TensorDescriptor; TMA is not used. Values other than those that the kernel was compiled for raise ValueError: another
    constant, or an integer or a slice that is not divisible as Triton assumed.
    """
    metadata = compiled.metadata
    name = metadata.get("name") if isinstance(metadata, dict) else getattr(metadata, "name", None)
    name = name or compiled.name
    parameters = _parameters(compiled)
    return TritonKernel(_module(compiled.asm, name, client), name, parameters, _launch(metadata))
