# SPDX-License-Identifier: Apache-2.0
"""Image: the code of a module, its handles in all connections that use it, and the description of its kernels.

Loading takes the daemon milliseconds, even for code that it has compiled before. A client therefore shares one Image
between all Modules of the same code, and keeps the last few after their Modules are deleted. Code with variables is not
shared, because each of its Modules has its own variables.
"""

from __future__ import annotations

import collections
import ctypes
import gc
import struct
import threading
from ctypes import byref, c_char_p

from . import _native as native
from . import errors
from .waiting import interruptibly

_PARAMETER = struct.Struct("=i4xQ")  # a gpuq_parameter: kind, size

KEPT_N = 16
KEPT_BYTES = 16 << 20


class Facts:
    """Properties of one kernel: `symbol`, `doc`, `parameters` as (kind, size), `kinds_known`, `max_block`, `attributes`."""

    __slots__ = ("symbol", "doc", "parameters", "kinds_known", "max_block", "attributes")

    def __init__(self, info: native.KernelInfo):
        self.symbol = native.decode(info.name)
        self.doc = native.decode(info.text)
        packed = ctypes.string_at(info.parameters, info.n_parameters * _PARAMETER.size) if info.n_parameters else b""
        self.parameters = list(_PARAMETER.iter_unpack(packed))
        self.kinds_known = info.kinds_known
        self.max_block = info.max_block
        told = info.attributes
        self.attributes = {  # as CuPy names them
            "max_threads_per_block": info.max_block,
            "num_regs": told.registers,
            "shared_size_bytes": told.shared_bytes,
            "const_size_bytes": told.const_bytes,
            "local_size_bytes": told.local_bytes,
            "ptx_version": told.ptx_version,
            "binary_version": told.binary_version,
        }


def _texts(texts: tuple) -> ctypes.Array:
    return (c_char_p * (len(texts) + 1))(*(text.encode() for text in texts), None)


class Image:
    """`code`: None for the built-ins; `kind`: a key of _native.FORMATS, or "builtin"."""

    def __init__(self, code: bytes | None, kind: str | None, options: tuple, name: str | None, names: tuple = (),
                 headers: tuple = ()):
        self.code = code
        self.kind = kind
        self.options = options
        self.name = name
        self.names = names
        self.headers = headers  # pairs of a name and a text
        self._lock = threading.Lock()
        self._last = (0, None)  # epoch of the connection asked for last, and the handle there
        self._handles = {}  # by epoch
        self._facts = None
        self._signatures = None

    def handle_for(self, client) -> native.Module:
        """The handle in a client's current connection. The image is loaded there at first use."""
        if client._handle is None:
            client._revive()
        epoch = client._epoch
        last = self._last
        if last[0] == epoch:
            return last[1]
        with self._lock:
            handle = self._handles.get(epoch)
            if handle is None:
                handle = self._handles[epoch] = self._load(client)
            self._last = (epoch, handle)
            return handle

    def _load(self, client) -> native.Module:
        try:
            return self._load_now(client)
        except errors.QuotaError:
            client._images.forget()  # cached images count against the quota
            gc.collect()  # a module and its kernels refer to each other
            return self._load_now(client)

    def _load_now(self, client) -> native.Module:
        handle = native.Module()
        if self.code is None:
            client._check(native.module_builtin(client._handle, byref(handle)))
            return handle

        options, names = _texts(self.options), _texts(self.names)
        headers = (native.Header * max(len(self.headers), 1))(*((name.encode(), text.encode())
                                                                for name, text in self.headers))
        name = (self.name or "kernel.cu" if self.kind in (None, "c++") else self.name or "module").encode()
        code = native.Code(native.FORMATS[self.kind], self.code, len(self.code), name, ctypes.addressof(options),
                           ctypes.addressof(names), ctypes.addressof(headers), len(self.headers))
        code.kept = options, names, headers  # after a Ctrl-C the call goes on in its thread
        r, text = interruptibly(native.module_load_code, client._handle, byref(code), byref(handle))
        if r < 0:
            raise client._error(r, text)
        return handle

    @property
    def reads_files(self) -> bool:
        """Whether an option names a folder, whose files may change while the code stays the same."""
        return any(option.startswith(("-I", "-include-path", "--include-path")) for option in self.options)

    def find(self, client, name: str) -> int:
        """The index of a kernel in `facts`. Raises NotFoundError."""
        i = ctypes.c_size_t()
        native.check(native.module_find(self.handle_for(client), name.encode(), byref(i)))
        return i.value

    def facts(self, client) -> list[Facts]:
        """The properties of all kernels."""
        if self._facts is None:
            handle, info = self.handle_for(client), native.KernelInfo()
            facts = []
            for i in range(native.module_n_kernels(handle)):
                native.check(native.module_kernel(handle, i, byref(info)))
                facts.append(Facts(info))
            self._facts = facts
        return self._facts

    def signatures(self) -> dict:
        """The signatures of the kernels in the source, by name; empty for other code."""
        if self._signatures is None:
            from . import signature
            is_source = self.code is not None and self.kind in (None, "c++") and b"__global__" in self.code
            self._signatures = signature.of_source(self.code.decode(errors="replace")) if is_source else {}
        return self._signatures


class Images:
    """The Images of a client; the most recently used is last."""

    def __init__(self):
        self._lock = threading.Lock()
        self._kept = collections.OrderedDict()

    def get(self, client, *key) -> Image:
        """Get the loaded Image for `key`, the parameters of Image. Raises the exceptions of loading."""
        with self._lock:
            image = self._kept.get(key)
            if image is not None:
                self._kept.move_to_end(key)
        if image is None:
            image = Image(*key)
        if not native.module_has_variables(image.handle_for(client)) and not image.reads_files:
            self._keep(key, image)
        return image

    def _keep(self, key, image: Image) -> None:
        gone = []  # freed without the lock
        with self._lock:
            self._kept.setdefault(key, image)
            while len(self._kept) > KEPT_N or sum(len(image.code) for image in self._kept.values()) > KEPT_BYTES:
                gone.append(self._kept.popitem(last=False))

    def after_fork(self) -> None:
        """In the child, where another thread may have held the lock."""
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Empty the cache."""
        with self._lock:
            kept, self._kept = self._kept, collections.OrderedDict()
        del kept  # without the lock
