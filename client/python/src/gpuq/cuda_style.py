# SPDX-License-Identifier: Apache-2.0
"""Program, ObjectCode and launch, as in cuda.core, but with a client instead of a stream."""

from __future__ import annotations

import os

from .config import LaunchConfig
from .jobs import Job
from .modules import Module


class ProgramOptions:
    """Compiler options, named as in cuda.core.

    `define_macro`: "N=4", ("N", 4), or a list of these; `extra`: further options, passed on unchanged.
    """

    def __init__(self, std: str | None = None, define_macro=None, undefine_macro=None, use_fast_math: bool = False,
                 name: str | None = None, extra=(), *, include_path=None, max_register_count: int | None = None,
                 lineinfo: bool = False, device_code_debug: bool = False):
        self.name = name
        folders = [include_path] if isinstance(include_path, (str, os.PathLike)) else include_path or ()
        self._options = [*([f"-std={std}"] if std else []), *(_macros("-D", define_macro)), *_macros("-U", undefine_macro),
                         *(["--use_fast_math"] if use_fast_math else []), *(f"-I{os.fspath(folder)}" for folder in folders),
                         *([f"-maxrregcount={max_register_count}"] if max_register_count else []),
                         *(["-lineinfo"] if lineinfo else []), *(["-G"] if device_code_debug else []), *extra]

    def as_options(self) -> list[str]:
        """The options as a list of compiler arguments."""
        return list(self._options)


def _macros(letter: str, macros) -> list[str]:
    if macros is None:
        return []
    if isinstance(macros, (str, tuple)):
        macros = [macros]
    return [f"{letter}{macro}" if isinstance(macro, str) else f"{letter}{macro[0]}={macro[1]}" for macro in macros]


class Program:
    """A source text to compile. `code_type`: "c++" or "ptx"; `options`: ProgramOptions, or a sequence of options."""

    def __init__(self, code: str, code_type: str = "c++", options=None):
        self._code = code
        self._type = code_type
        self._options = options

    def compile(self, target_type: str = "cubin", name_expressions=(), client=None) -> "ObjectCode":
        """Compile and load the program in the daemon.

        `target_type` is ignored: the daemon compiles for its devices. `name_expressions`: instances of templates to
        compile; other kernels are found by the names in their declarations. Raises CompileError or NotFoundError.
        """
        options, name = self._options, None
        if isinstance(options, ProgramOptions):
            options, name = options.as_options(), options.name
        return ObjectCode(self._code, self._type, options or (), name, names=name_expressions, client=client)

    def close(self) -> None:
        """Does nothing: a Program holds no resources."""

    def __repr__(self) -> str:
        return f"<gpuq.Program {self._type}, {len(self._code)} characters>"


class ObjectCode(Module):
    """A Module, named as in cuda.core."""

    @classmethod
    def from_cubin(cls, image, *, name: str | None = None, client=None) -> "ObjectCode":
        """Load from bytes, or from a file by its path."""
        return cls(_bytes(image), "cubin", (), name, client=client)

    @classmethod
    def from_ptx(cls, image, *, name: str | None = None, client=None) -> "ObjectCode":
        """Load from text or bytes, or from a file by its path."""
        if isinstance(image, str) and ".version" in image:
            image = image.encode()
        return cls(_bytes(image), "ptx", (), name, client=client)

    @classmethod
    def from_fatbin(cls, image, *, name: str | None = None, client=None) -> "ObjectCode":
        """Load from bytes, or from a file by its path."""
        return cls(_bytes(image), "fatbin", (), name, client=client)


def _bytes(image) -> bytes:
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    with open(os.fspath(image), "rb") as file:
        return file.read()


def launch(client, config: LaunchConfig, kernel, *args, **options) -> Job:
    """Submit one launch without waiting for it.

    `client` is in the place of cuda.core's stream; None: the client of the kernel. `config`, `args` and `options`: as
    for `Kernel.submit`.
    """
    return Job(client or kernel.module.client, **options).launch(kernel, config, *args).submit()
