# SPDX-License-Identifier: Apache-2.0
"""Module: compiled code that is loaded in the daemon, with its kernels and variables."""

from __future__ import annotations

import os
import re
from ctypes import byref, c_size_t

import numpy as np

from . import _native as native
from . import arrays
from . import client as clients
from . import signature
from .convert import as_numpy, check_unmasked
from .image import Image
from .kernel import Kernel


def _bytes_of(code) -> bytes:
    try:
        return bytes(memoryview(code))
    except TypeError:
        raise TypeError("code must be source or PTX as str, or the bytes of PTX, a cubin or a fatbin, "
                        f"not {type(code).__name__}" +
                        (": read the file and pass its contents" if isinstance(code, os.PathLike) else "")) from None


def _words_of(what: str, words) -> tuple[str, ...]:
    """Of an argument that is a str, or a sequence of them; a path is a word, too."""
    if isinstance(words, (str, os.PathLike)):
        words = (words,)
    try:
        words = tuple(words or ())
    except TypeError:
        raise TypeError(f"{what} must be a sequence of str, not {type(words).__name__}") from None
    words = tuple(os.fspath(word) if isinstance(word, os.PathLike) else word for word in words)
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"{what} must be str, not {type(word).__name__}: {word!r}")
    return words


def _headers_of(headers) -> tuple[tuple[str, str], ...]:
    try:
        headers = dict(headers or {})
    except (TypeError, ValueError):
        raise TypeError(f"headers must be a dict of {{name: text}}, not {headers!r}") from None
    for name, text in headers.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a header must be str, not {type(name).__name__}: {name!r}")
        if not isinstance(text, str):
            raise TypeError(f"the text of the header {name!r} must be str, not {type(text).__name__}" +
                            (": pass path.read_text()" if isinstance(text, os.PathLike) else ""))
    return tuple(sorted(headers.items()))


class Module:
    """Kernels from source, PTX, a cubin or a fatbin. Create it with `gpuq.module`.

    It loads itself again in another connection, such as that of a forked child, and is pickled as its code. Loading the
    same code again is cheap as long as the client still has it loaded.
    """

    kernel_class = Kernel

    def __init__(self, code: str | bytes, code_type: str | None = None, options=(), name: str | None = None, *,
                 names=(), headers=None, client=None):
        self.client = client or clients.default_client()
        self._code = code.encode() if isinstance(code, str) else _bytes_of(code)
        self._type = _type_of(code_type)
        self._options = _words_of("options", options)
        self._name = name
        self._names = _words_of("names", names)
        self._headers = _headers_of(headers)
        self._fill(self.client._images.get(self.client, self._code, self._type, self._options, name, self._names,
                                           self._headers))

    @classmethod
    def _of_builtins(cls, client) -> "Module":
        self = cls.__new__(cls)
        self.client = client
        self._code = None
        self._type, self._options, self._name, self._names = "builtin", (), "builtin", ()
        self._headers = ()
        self._fill(Image(None, "builtin", (), "builtin"))
        return self

    def _fill(self, image: Image) -> None:
        self._image = image
        self._handle_for = image.handle_for  # (client) -> the module's handle in its current connection
        self._facts = {facts.symbol: facts for facts in image.facts(self.client)}
        self._kernels = {}  # created so far, by symbol

    def _name_of(self, symbol: str) -> str:
        return symbol if symbol in self._image.signatures() or not symbol.startswith("_Z") else _plain(symbol)

    def _kernel(self, symbol: str) -> Kernel:
        facts, name = self._facts[symbol], self._name_of(symbol)
        known = signature.of_builtin(symbol, facts.doc) if self._code is None else self._image.signatures().get(_last(name))
        kernel = self.kernel_class(self, name, symbol, facts.doc, facts.parameters, facts.kinds_known, facts.attributes, known)
        return self._kernels.setdefault(symbol, kernel)

    # ---- kernels ----

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels."""
        return tuple(self._facts)

    def get_kernel(self, name: str) -> Kernel:
        """Get a kernel by name. Raises NotFoundError.

        `name`: one of the module's `names`; its mangled name; its C++ name with template arguments, which are compared
        by meaning ("f<int, 256u>" is "f<int,256>"); or its plain name, with or without namespace, if no other kernel has it.
        """
        kernel = self._kernels.get(name)
        if kernel is None:
            symbol = tuple(self._facts)[self._image.find(self.client, name)]
            kernel = self._kernels[name] = self._kernels.get(symbol) or self._kernel(symbol)
        return kernel

    __getitem__ = get_kernel

    def get_global(self, name: str) -> "Variable":
        """Get a __device__ or __constant__ variable.

        Each session has its own instance, which lives as long as the worker.
        """
        return Variable(self, name)

    @property
    def log(self) -> str:
        """The compiler's warnings."""
        return native.decode(native.module_log(self._handle_for(self.client)))

    @property
    def has_variables(self) -> bool:
        """Whether the module has __device__ or __constant__ variables."""
        return native.module_has_variables(self._handle_for(self.client))

    def __reduce__(self):
        return _rebuild, (type(self), self.client.path, self._code, self._type, self._options, self._name, self._names,
                          self._headers)

    def __repr__(self) -> str:
        names = list(self._facts)
        shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
        return f"<gpuq.Module {self._name or self._type or 'kernel.cu'}: {len(names)} kernels: {shown}>"


class Variable:
    """A variable of a module. Get it with `module.get_global(name)`."""

    def __init__(self, module: Module, name: str):
        self.module = module
        self.name = name

    @property
    def nbytes(self) -> int:
        """The size in bytes. Raises NotFoundError, also for what the compiler made a constant."""
        client, nbytes = self.module.client, c_size_t()
        client._check(native.module_variable_size(self.module._handle_for(client), self.name.encode(), byref(nbytes)))
        return nbytes.value

    def get(self, shape=(), dtype=np.float32, offset: int = 0):
        """Read the value, starting at `offset` bytes, and wait for it. Returns an Array, or a scalar for shape ()."""
        client = self.module.client
        to = arrays.zeros(shape, dtype, client=client)
        client.job().read_variable(self, to, offset).run()
        return to[()] if to.ndim == 0 else to

    def set(self, value, dtype=None, offset: int = 0) -> None:
        """Write a value, starting at `offset` bytes, and wait.

        `value`: an array, or a numpy or ctypes scalar, with all its bytes.
        """
        client = self.module.client
        if not isinstance(value, (np.ndarray, np.generic)):
            if dtype is None and isinstance(value, (int, float, list, tuple)):
                raise TypeError(f"{self.name}: a Python {type(value).__name__} has no width: pass dtype=, such as "
                                "dtype=numpy.float32")
            value = np.asarray(value, dtype) if dtype is not None else np.asarray(as_numpy(value))
        check_unmasked(np.asanyarray(value))
        if dtype is not None:
            value = np.asarray(value, dtype)
        client.job().write_variable(self, np.ascontiguousarray(value), offset).run()

    def __repr__(self) -> str:
        return f"<gpuq.Variable {self.name} of {self.module!r}>"


def _type_of(code_type: str | None) -> str | None:
    if code_type is None:
        return None
    name = {"cuda": "c++", "source": "c++", "cu": "c++", "cl": "opencl"}.get(code_type.lower(), code_type.lower())
    if name not in native.FORMATS:
        raise ValueError(f'code_type must be "c++", "opencl", "ptx", "cubin", "fatbin", or None to detect it, not {code_type!r}')
    return name


def _plain(symbol: str) -> str:
    """`add` of `_Z3addPKfPfi`; a symbol with a scope or template arguments stays as it is."""
    match = re.match(r"_Z(\d+)", symbol)
    if not match:
        return symbol
    name = symbol[match.end():match.end() + int(match.group(1))]
    return symbol if symbol[match.end() + len(name):].startswith("I") else name


def _last(name: str) -> str:
    """`reduce` of `ns::reduce<float, 256u>`."""
    return name.split("<", 1)[0].rsplit("::", 1)[-1]


def _rebuild(kind, path, code, code_type, options, name, names=(), headers=()) -> Module:
    client = clients.for_path(path)
    if code is None:
        return client.builtin()
    return kind(code, code_type, options, name, names=names, headers=headers, client=client)


def module(code: str | bytes, code_type: str | None = None, options=(), name: str | None = None, *,
           names=(), headers=None) -> Module:
    """Compile and load a module, and wait until it is loaded.

    - `code`: CUDA C++ source, OpenCL C source or PTX as str, or bytes of source, PTX, a cubin or a fatbin
    - `code_type`: "c++", "opencl", "ptx", "cubin" or "fatbin"; None: detected from the code, as any but "opencl"
    - `options`: compiler options, such as "-DN=4", "--use_fast_math" or "-Ifolder": this process reads what the source
      includes from the folder, and sends it with the source
    - `name`: a name for messages
    - `names`: kernels that will be used; "ns::reduce<float, 256u>" compiles this instance of a template
    - `headers`: {name: text} of header files that the source includes

    Raises CompileError with the compiler's log, NotFoundError for a name in `names`, ImageError or QuotaError.
    """
    return Module(code, code_type, options, name, names=names, headers=headers)


def builtin() -> Module:
    """The built-in kernels of the daemon. `gpuq kernels` lists them; here `.kernels` and `kernel.doc` describe them."""
    return clients.default_client().builtin()
