# SPDX-License-Identifier: Apache-2.0
"""RawKernel and RawModule, as in CuPy."""

from __future__ import annotations

from .argument import InOut
from .arrays import Array
from .config import LaunchConfig
from .jobs import Job
from .kernel import Attributes
from .modules import Module


class RawModule:
    """A module with CUDA C++ from `code`, or PTX or cubin from `path`. It is loaded at its first use.

    `options`: compiler options; `name_expressions`: instances of templates to compile, such as "my_sqrt<int>"; `client`: a
    Client, or None for the default client.
    """

    def __init__(self, code: str | None = None, *, path: str | None = None, options=(), backend: str = "nvrtc",
                 translate_cucomplex: bool = False, enable_cooperative_groups: bool = False, name_expressions=None,
                 jitify: bool = False, client=None):
        if (code is None) == (path is None):
            raise TypeError("RawModule: pass either code or path")
        if translate_cucomplex or jitify:
            raise NotImplementedError("RawModule: translate_cucomplex and jitify are not supported; "
                                      "use cuda/std/complex in the source")
        self.code = code
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
                                  client=self._client)
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


class RawKernel(Attributes):
    """A kernel. The call `kernel(grid, block, args, shared_mem=0)` launches it and waits until it has ended."""

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
        """See `Kernel.attributes`."""
        return self.kernel.attributes

    def compile(self, log_stream=None) -> None:
        """Load the module now."""
        self.raw_module.compile(log_stream)

    def submit(self, grid, block, args, *, shared_mem: int = 0, **options) -> Job:
        """As a call, but without waiting. Returns the Job."""
        config = LaunchConfig(grid, block, None, shared_mem, self.raw_module.cooperative)
        return self.kernel.submit(config, *map(as_inout, args), **options)

    def __call__(self, grid, block, args, *, shared_mem: int = 0, **options):
        """Launch the kernel and wait until it has ended. Returns the Result.

        `grid`, `block`: tuples of up to three ints. `args`: a tuple; an Array or DeviceArray without In, Out or InOut
        means InOut. `options`: as for `gpuq.job`.
        """
        return self.submit(grid, block, args, shared_mem=shared_mem, **options).wait()

    def __reduce__(self):
        return RawKernel._of, (self.raw_module, self.name)

    def __repr__(self) -> str:
        return f"<gpuq.RawKernel {self.name}>"


def as_inout(arg):
    """A bare Array means InOut, because arrays of CuPy and PyCUDA have no direction."""
    return InOut(arg) if isinstance(arg, Array) else arg
