# SPDX-License-Identifier: Apache-2.0
"""Exceptions in kernels that Numba compiled with debug=True.

Such a kernel keeps a record in variables of its module: a code for the exception, and the thread and block that raised
it first. A job clears the record before the first launch of the kernel, and reads it after its last operation. The
codes are Numba's; what they mean is known when the kernel has been compiled.
"""

from __future__ import annotations

import contextlib
import os
import threading

import numpy as np

from .arrays import zeros

_PLACES = ("tidz", "tidy", "tidx", "ctaidz", "ctaidy", "ctaidx")


@contextlib.contextmanager
def compilations():
    """A list of what this thread compiles meanwhile, as Numba's compiler returns it: the kernel is the last."""
    from numba.cuda import compiler
    compile_cuda, thread, results = compiler.compile_cuda, threading.get_ident(), []

    def kept(*args, **options):
        result = compile_cuda(*args, **options)
        if threading.get_ident() == thread:
            results.append(result)
        return result

    compiler.compile_cuda = kept
    try:
        yield results
    finally:
        compiler.compile_cuda = compile_cuda


def _made(kind, *args) -> Exception:
    """A class of the user's may take other arguments than Numba gives it."""
    try:
        return kind(*args)
    except Exception:
        return RuntimeError(f"{kind.__name__}: {args[0]}")


class Exceptions:
    """`table`: {code: (class, arguments or None, (function, file, line) or None)}"""

    def __init__(self, module, symbol: str, table: dict):
        self.symbol = symbol
        self.table = table
        self._code, *self._places = [module.get_global(f"{symbol}__{name}__") for name in ("errcode", *_PLACES)]

    def watch(self, job) -> None:
        """Called before each launch of the kernel in a job."""
        if job._checks is None:
            job._checks = {}
        if self not in job._checks:
            job.write_variable(self._code, np.zeros(1, np.int32))
            job._checks[self] = zeros(1 + len(_PLACES), np.int32, client=job.client)

    def read(self, job, record) -> None:
        """Append what reads the record."""
        n_outputs = len(job._outputs)
        for i, variable in enumerate((self._code, *self._places)):
            job.read_variable(variable, record[i:i + 1])
        del job._outputs[n_outputs:]  # not outputs of the caller

    def found(self, record) -> Exception | None:
        """The exception in a record, with Numba's text, or None."""
        code, *places = record.tolist()
        if code == 0:
            return None
        kind, args, where = self.table.get(code, (SystemError, (f"unknown error {code} in the kernel",), None))
        text = f"tid={places[:3]} ctaid={places[3:]}"
        if where is not None:
            text = f"In function {where[0]!r}, file {os.path.abspath(where[1])}, line {where[2]}, {text}"
        return _made(kind, f"{text}: {args[0]}", *args[1:]) if args else _made(kind, text)
