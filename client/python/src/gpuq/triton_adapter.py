# SPDX-License-Identifier: Apache-2.0
"""Kernels compiled by Triton: the cubin, and what Triton's launcher adds to a launch.

It adds 32 threads per warp, dynamic shared memory and clusters from the metadata, and hidden parameters after those in
the source: pointers to scratch memory, or null if the kernel needs none. This module does not import Triton.
"""

from __future__ import annotations

import struct

import numpy as np

from . import _native as native
from .argument import Packer
from .config import LaunchConfig, _three
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


class TritonKernel(Kernel):
    """A Kernel launched with only a grid. `types`: (name, Triton's type, or None for a constant), in order."""

    def __init__(self, module: Module, name: str, types, launch: TritonLaunch):
        inner = module.get_kernel(name)
        super().__init__(module, name, name, "", (), True, inner.max_block)
        self._types = tuple(types)
        self._launch = launch
        sizes = [packer.size for packer in inner._packers]
        runtime = [(text, kind) for text, kind in self._types if kind is not None]
        if len(sizes) < len(runtime):
            raise TypeError(f"{name}: its cubin has {len(sizes)} parameters, but its signature has {len(runtime)}")
        self._packers = [_packer(name, i, text, kind, sizes[i]) for i, (text, kind) in enumerate(runtime)]
        self._hidden = sizes[len(runtime):]

    def _config(self, config) -> LaunchConfig:
        return self._launch.config(config)

    def _pack(self, job, args, keep: list) -> tuple[bytes, int]:
        args = self._given(args)
        packed, n_args = super()._pack(job, args, keep)
        hidden = [self._scratch(job, i, size, keep) for i, size in enumerate(self._hidden)]
        return packed + b"".join(hidden), n_args + len(hidden)

    def _given(self, args):
        """Drop the constants, which are compiled in, from the arguments."""
        if len(args) != len(self._types):
            return args
        return [arg for arg, (_, kind) in zip(args, self._types) if kind is not None]

    def _slots(self, operation: int, args) -> list:
        return super()._slots(operation, self._given(args))

    def _scratch(self, job, i: int, size: int, keep: list) -> bytes:
        """A hidden parameter: the first is global scratch memory, the second the profiler's."""
        nbytes = self._launch.scratch[i] if i < len(self._launch.scratch) else 0
        if nbytes and size == 8:
            return self._scratch_memory(job, nbytes, keep)
        return _WORD.pack(0, 0, _INTEGERS.get(size, native.BYTES), size, 0)

    def _scratch_memory(self, job, nbytes: int, keep: list) -> bytes:
        blocks = 1
        for length in job._grid:
            blocks *= length
        held = DeviceArray._new(job.client, nbytes * blocks, np.uint8, None)
        keep.append(held)
        packer = Packer(self.name, len(self._packers), native.POINTER_KIND, 8, True)
        n_outputs = len(job._outputs)
        packed = job._buffer(packer, held, native.OUT)
        del job._outputs[n_outputs:]  # not an output of the caller
        return packed

    def __reduce__(self):
        return TritonKernel, (self.module, self.name, self._types, self._launch)


def _packer(kernel: str, index: int, text: str, kind: str, size: int) -> Packer:
    text = f"{text}: {kind}"
    if kind.startswith("*"):
        element = _DTYPES.get(kind[1:].lstrip("k"))
        known = Parameter(text, np.dtype(element) if element else None, True, False if kind.startswith("*k") else None)
        return Packer(kernel, index, native.POINTER_KIND, 8, True, known)
    kinds = _FLOATS if kind.startswith(("fp", "bf")) else _INTEGERS
    return Packer(kernel, index, kinds.get(size, native.BYTES), size, True, Parameter(text))


def _types(compiled) -> list[tuple[str, str | None]]:
    """The parameters in the source with their types; None for constants, which the cubin does not have."""
    source = compiled.src
    constants = getattr(source, "constants", None) or getattr(source, "constexprs", None) or {}
    names = list(getattr(getattr(source, "fn", None), "arg_names", ()))
    types = []
    for i, (key, kind) in enumerate(source.signature.items()):
        at = key if isinstance(key, int) else names.index(key) if key in names else i
        if not isinstance(kind, str):
            raise TypeError(f"parameter {key}: from_triton does not support tuples: pass their elements one by one")
        is_constant = kind == "constexpr" or any(name in constants for name in (key, at, (at,)))
        types.append((names[at] if at < len(names) else str(key), None if is_constant else kind))
    return types


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
    arguments are those of the source in order; constants may be omitted.
    """
    metadata = compiled.metadata
    name = metadata.get("name") if isinstance(metadata, dict) else getattr(metadata, "name", None)
    name = name or compiled.name
    module = Module(compiled.asm["cubin"], "cubin", (), name, client=client)
    return TritonKernel(module, name, _types(compiled), _launch(metadata))
