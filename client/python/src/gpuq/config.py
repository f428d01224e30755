# SPDX-License-Identifier: Apache-2.0
"""LaunchConfig: grid, block, clusters and dynamic shared memory, named as in cuda.core."""

from __future__ import annotations

import operator
import struct

INT_MAX = (1 << 31) - 1
_PACKED = struct.Struct("=3I3II3I?3x")


class LaunchConfig:
    """The launch configuration of a kernel. It is immutable and can be used for many launches.

    `grid`: number of blocks; `block`: threads in a block; `cluster`: blocks in a cluster; each is an int or a tuple of
    up to three ints. `shmem_size`: bytes of dynamic shared memory per block; `cooperative_launch`: all blocks are
    resident at once.
    """

    __slots__ = ("grid", "block", "cluster", "shmem_size", "cooperative_launch", "_packed")

    def __init__(self, grid=1, block=1, cluster=None, shmem_size: int = 0, cooperative_launch: bool = False):
        fill = object.__setattr__
        fill(self, "grid", _three(grid, "grid"))
        fill(self, "block", _three(block, "block"))
        fill(self, "cluster", None if cluster is None else _three(cluster, "cluster"))
        fill(self, "shmem_size", operator.index(shmem_size))
        fill(self, "cooperative_launch", bool(cooperative_launch))
        if not 0 <= self.shmem_size < 1 << 32:
            raise ValueError(f"shmem_size must be a number of bytes, 0 or more, not {shmem_size}")
        fill(self, "_packed", _PACKED.pack(*self.grid, *self.block, self.shmem_size, *(self.cluster or (0, 0, 0)),
                                           self.cooperative_launch))

    def __setattr__(self, name, value):
        raise AttributeError("a LaunchConfig is immutable: create another one")

    def __eq__(self, other) -> bool:
        return isinstance(other, LaunchConfig) and self._packed == other._packed

    def __hash__(self) -> int:
        return hash(self._packed)

    def __reduce__(self):
        return LaunchConfig, (self.grid, self.block, self.cluster, self.shmem_size, self.cooperative_launch)

    def __repr__(self) -> str:
        more = "".join(f", {name}={value!r}" for name, value in (("cluster", self.cluster), (
            "shmem_size", self.shmem_size), ("cooperative_launch", self.cooperative_launch)) if value)
        return f"LaunchConfig(grid={self.grid}, block={self.block}{more})"


def _three(value, name: str) -> tuple[int, int, int]:
    try:
        lengths = (operator.index(value),)
    except TypeError:
        try:
            lengths = tuple(map(operator.index, value))
        except TypeError:
            raise TypeError(f"{name} must be an int or a tuple of up to three ints, not {value!r}") from None
    if not 1 <= len(lengths) <= 3:
        raise ValueError(f"{name} must have one to three lengths, not {value!r}")
    if not all(0 < length < 1 << 32 for length in lengths):
        raise ValueError(f"{name}: each length must be 1 or more, not {value!r}")
    return (*lengths, *(1,) * (3 - len(lengths)))


def whole_number(value, name: str, lowest: int, highest: int = INT_MAX) -> int:
    """Check a number for a C int, to which ctypes would cut it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {value!r}") from None
    if not lowest <= number <= highest:
        raise ValueError(f"{name}={number} is out of range")
    return number


def as_config(config) -> LaunchConfig:
    """Convert a LaunchConfig or a tuple (grid, block) to a LaunchConfig."""
    if isinstance(config, LaunchConfig):
        return config
    if isinstance(config, tuple) and 2 <= len(config) <= 4:
        return LaunchConfig(*config)
    raise TypeError(f"the first argument must be a gpuq.LaunchConfig(grid=, block=) or a tuple (grid, block), not {config!r}")
