# SPDX-License-Identifier: Apache-2.0
"""Program, ObjectCode, launch: cuda.core's names, with a client in place of a stream."""

from __future__ import annotations

import os

from .config import LaunchConfig
from .jobs import Job
from .modules import Module


class ProgramOptions:
    """Compiler options under cuda.core's names. `define_macro`: "N=4", ("N", 4), or a list of either; `extra`: as given."""

    def __init__(self, std: str | None = None, define_macro=None, undefine_macro=None, use_fast_math: bool = False,
                 name: str | None = None, extra=()):
        self.name = name
        self._options = [*([f"-std={std}"] if std else []), *(_macros("-D", define_macro)), *_macros("-U", undefine_macro),
                         *(["--use_fast_math"] if use_fast_math else []), *extra]

    def as_options(self) -> list[str]:
        """As the compiler takes them."""
        return list(self._options)


def _macros(letter: str, macros) -> list[str]:
    if macros is None:
        return []
    if isinstance(macros, (str, tuple)):
        macros = [macros]
    return [f"{letter}{macro}" if isinstance(macro, str) else f"{letter}{macro[0]}={macro[1]}" for macro in macros]


class Program:
    """Source to be compiled. `code_type`: "c++" or "ptx"; `options`: ProgramOptions, or a sequence of options."""

    def __init__(self, code: str, code_type: str = "c++", options=None):
        self._code = code
        self._type = code_type
        self._options = options

    def compile(self, target_type: str = "cubin", name_expressions=(), client=None) -> "ObjectCode":
        """Compile and load it, in the daemon. `target_type` is accepted and of no matter: the daemon keeps what fits the
        device. Kernels are found by the names they are declared with. Raises CompileError."""
        options, name = self._options, None
        if isinstance(options, ProgramOptions):
            options, name = options.as_options(), options.name
        return ObjectCode(self._code, self._type, options or (), name, client=client)

    def close(self) -> None:
        """Nothing is held."""

    def __repr__(self) -> str:
        return f"<gpuq.Program {self._type}, {len(self._code)} characters>"


class ObjectCode(Module):
    """A Module under cuda.core's name."""

    @classmethod
    def from_cubin(cls, image, *, name: str | None = None, client=None) -> "ObjectCode":
        """Of bytes, or of a file's path."""
        return cls(_bytes(image), "cubin", (), name, client=client)

    @classmethod
    def from_ptx(cls, image, *, name: str | None = None, client=None) -> "ObjectCode":
        """Of text, bytes, or a file's path."""
        if isinstance(image, str) and ".version" in image:
            image = image.encode()
        return cls(_bytes(image), "ptx", (), name, client=client)

    @classmethod
    def from_fatbin(cls, image, *, name: str | None = None, client=None) -> "ObjectCode":
        """Of bytes, or of a file's path."""
        return cls(_bytes(image), "fatbin", (), name, client=client)


def _bytes(image) -> bytes:
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    with open(os.fspath(image), "rb") as file:
        return file.read()


def launch(client, config: LaunchConfig, kernel, *args, **options) -> Job:
    """Submit one launch; does not wait.

    `client`: where cuda.core has a stream; None: the kernel's own. `config`, `args` and `options`: as of `Kernel.submit`.
    """
    return Job(client or kernel.module.client, **options).launch(kernel, config, *args).submit()
