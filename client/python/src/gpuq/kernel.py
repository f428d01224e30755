# SPDX-License-Identifier: Apache-2.0
"""Kernel: a kernel of a module, and what is known about its parameters."""

from __future__ import annotations

import math
from ctypes import byref, c_uint, c_void_p

import numpy as np

from . import _native as native
from .argument import Argument, Local, Packer
from .config import INT_MAX, LaunchConfig, as_config, whole_number
from .device import DeviceArray
from .jobs import Job
from .texture import Texture
from .waiting import interruptibly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .prepared import Prepared

_NO_ARRAYS = (int, float, np.generic, Local, c_void_p)


class Attributes:
    """Properties of a kernel as the device tells them, for a class with a `_kernel_of()` that returns the Kernel."""

    max_threads_per_block = property(lambda self: self._kernel_of().attributes["max_threads_per_block"])
    num_regs = property(lambda self: self._kernel_of().attributes["num_regs"])
    shared_size_bytes = property(lambda self: self._kernel_of().attributes["shared_size_bytes"])
    const_size_bytes = property(lambda self: self._kernel_of().attributes["const_size_bytes"])
    local_size_bytes = property(lambda self: self._kernel_of().attributes["local_size_bytes"])
    ptx_version = property(lambda self: self._kernel_of().attributes["ptx_version"])
    binary_version = property(lambda self: self._kernel_of().attributes["binary_version"])


class Kernel:
    """A kernel. Get it with `module.get_kernel(name)`. It is pickled as the code of its module and its name."""

    def __init__(self, module, name: str, symbol: str, doc: str, parameters, kinds_known: bool, attributes: dict,
                 known=None):
        self.module = module
        self.name = name
        self.doc = doc
        self.attributes = attributes  # of the device where the module was loaded first
        self.max_block = attributes["max_threads_per_block"]
        self.kinds_known = kinds_known
        self._symbol = symbol.encode()
        if known is not None and len(known) != len(parameters):
            known = None
        self._packers = [
            Packer(name, i, kind, size, kinds_known, known[i] if known else None)
            for i, (kind, size) in enumerate(parameters)
        ]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters as text: as written in the source, or else their kinds."""
        return tuple(packer.where.split("(", 1)[1][:-1].strip("`") for packer in self._packers)

    def submit(self, config, *args, **options) -> Job:
        """Submit one launch as a job, without waiting for it.

        `config`: LaunchConfig, or a tuple (grid, block). `args`: one per parameter: In, Out or InOut around an array; a
        numpy or ctypes scalar; a Texture; or a Python int, float or bool if the type of the parameter is known. `options`: as for
        `gpuq.job`. Raises TypeError, ValueError or OverflowError if an argument does not match its parameter.
        """
        return Job(self.module.client, **options).launch(self, config, *args).submit()

    def run(self, config, *args, **options):
        """Submit one launch and wait for it. Arguments as for `submit`; returns or raises as `Job.wait` does."""
        return Job(self.module.client, **options).launch(self, config, *args).run()

    def prepare(self, config, *args, **options) -> "Prepared":
        """Prepare one launch, which can be fired many times with other arrays and scalars: see Prepared.

        Arguments as for `submit`; it may not depend on other jobs.
        """
        return Job(self.module.client, **options).launch(self, config, *args).prepare()

    def occupancy(self, block, shmem_size: int = 0, *, device: int | None = None) -> int:
        """How many blocks one multiprocessor of the device runs at once. A job asks the device, and waits for its turn.

        `block`: an int or a tuple of up to three; `shmem_size`: bytes of dynamic shared memory.
        """
        client, blocks = self.module.client, c_uint()
        config = LaunchConfig(1, block, None, shmem_size)
        n = min(math.prod(config.block), INT_MAX)  # no device has so many
        r, text = interruptibly(native.module_occupancy, self.module._handle_for(client), self._symbol, n, config.shmem_size,
                                -1 if device is None else whole_number(device, "device", -1), byref(blocks))
        if r < 0:
            raise client._error(r, text)
        return blocks.value

    def _config(self, config) -> LaunchConfig:
        return config if type(config) is LaunchConfig else as_config(config)

    def _pack(self, job: Job, args, keep: list) -> tuple[bytes, int]:
        """The packed arguments and their number. `keep`: objects that must live until the call."""
        packers = self._packers
        if len(args) != len(packers):
            raise TypeError(f"{self.name} takes {len(packers)} arguments ({', '.join(self.parameters)}), "
                            f"not {len(args)}")
        parts = []
        for packer, arg in zip(packers, args):
            if isinstance(arg, Argument):
                parts.append(job._buffer(packer, arg.value, arg.direction))
            elif type(arg) is int:
                parts.append(packer.scalar(arg, keep))
            elif isinstance(arg, DeviceArray):
                parts.append(job._buffer(packer, arg, native.INOUT if _may_write(packer) else native.IN))
            elif isinstance(arg, np.ndarray):
                parts.append(job._buffer(packer, arg, packer.bare(arg)))
            else:
                parts.append(self._value(job, packer, arg, keep))
        return b"".join(parts), len(parts)

    def _value(self, job: Job, packer: Packer, arg, keep: list) -> bytes:
        if type(arg) is Texture:
            return arg._pack(job, packer, keep)
        if packer.kind == native.POINTER_KIND and arg is not None and not isinstance(arg, _NO_ARRAYS):
            return job._buffer(packer, arg, packer.bare(arg))
        return packer.scalar(arg, keep)

    def _slots(self, operation: int, args) -> list:
        """The arguments of a launch, for a Prepared."""
        from .prepared import Slot
        slots = []
        for packer, arg in zip(self._packers, args):
            direction, array = _array_of(packer, arg)
            shape = tuple(array.shape) if isinstance(arg, Texture) and array is not None else None
            slots.append(Slot(operation, packer.name, packer.index, packer, direction, array, shape=shape))
        return slots

    def __reduce__(self):
        return _get, (self.module, self.name)

    def __repr__(self) -> str:
        return f"<gpuq.Kernel {self.name}({', '.join(self.parameters)})>"


def _may_write(packer: Packer) -> bool:
    return packer.known is None or packer.known.writes is not False


def _array_of(packer: Packer, arg) -> tuple:
    """(direction, array) of an argument, as in `Kernel._pack`; (IN, None) for a scalar."""
    if isinstance(arg, Argument):
        return arg.direction, arg.value
    if isinstance(arg, Texture):
        return native.IN, (arg.array if arg._swaps() else None)
    if isinstance(arg, DeviceArray):
        return (native.INOUT if _may_write(packer) else native.IN), arg
    is_scalar = arg is None or isinstance(arg, (int, float, np.generic)) or packer.kind != native.POINTER_KIND
    if is_scalar and not isinstance(arg, np.ndarray):
        return native.IN, None
    return packer.bare(arg), arg


def _get(module, name: str) -> Kernel:
    return module.get_kernel(name)
