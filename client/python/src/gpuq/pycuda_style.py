# SPDX-License-Identifier: Apache-2.0
"""SourceModule, as in PyCUDA."""

from __future__ import annotations

from .argument import Argument, In, InOut, Out
from .config import LaunchConfig
from .cupy_style import as_inout
from .jobs import Job
from .kernel import Attributes
from .modules import Module

_WRAPPERS = {"In": In, "Out": Out, "InOut": InOut}


class SourceModule:
    """CUDA C++ source, compiled at once. Unless `no_extern_c` is set, it is wrapped in extern "C", as in PyCUDA.

    `options`: compiler options; `include_dirs`: folders of headers. The other parameters of PyCUDA's SourceModule are
    ignored.
    """

    def __init__(self, source: str, nvcc: str = "nvcc", options=None, keep: bool = False, no_extern_c: bool = False,
                 arch=None, code=None, cache_dir=None, include_dirs=(), client=None):
        if not no_extern_c:
            source = f'extern "C" {{\n#line 1\n{source}\n}}\n'
        options = [*(options or ()), *(f"-I{folder}" for folder in include_dirs)]
        self.module = Module(source, "c++", options, "kernel.cu", client=client)

    def get_function(self, name: str) -> "Function":
        """Get a kernel by name."""
        return Function(self.module.get_kernel(name))

    def get_global(self, name: str):
        """Get a variable: see `Module.get_global`."""
        return self.module.get_global(name)

    def __repr__(self) -> str:
        return f"<gpuq.SourceModule {', '.join(self.module.kernels)}>"


class Function(Attributes):
    """A kernel. The call `f(*args, block=(x, y, z), grid=(x, y))` launches it and waits until it has ended."""

    def __init__(self, kernel):
        self.kernel = kernel

    def _kernel_of(self):
        return self.kernel

    def submit(self, *args, block, grid=(1, 1), shared: int = 0, **options) -> Job:
        """As a call, but without waiting. Returns the Job."""
        return self.kernel.submit(LaunchConfig(grid, block, None, shared), *map(_argument, args), **options)

    def __call__(self, *args, block, grid=(1, 1), shared: int = 0, stream=None, time_kernel: bool = False, **options):
        """Launch the kernel and wait until it has ended. Returns None, or seconds on the GPU if `time_kernel` is set.

        `args`: In, Out or InOut of gpuq or PyCUDA around arrays; an Array or DeviceArray, which means InOut; or numpy
        scalars. `shared`: bytes of dynamic shared memory. `stream` is ignored.
        """
        result = self.submit(*args, block=block, grid=grid, shared=shared, timed=time_kernel, **options).wait()
        return result.gpu_time if time_kernel else None

    def __repr__(self) -> str:
        return f"<gpuq function {self.kernel!r}>"


def _argument(arg):
    """Convert In, Out and InOut of pycuda.driver, recognized by name so that PyCUDA need not be imported."""
    if not isinstance(arg, Argument) and hasattr(arg, "array") and type(arg).__name__ in _WRAPPERS:
        return _WRAPPERS[type(arg).__name__](arg.array)
    return as_inout(arg)
