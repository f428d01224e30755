# SPDX-License-Identifier: Apache-2.0
"""Kernels compiled by Numba: Python functions as PTX, with arguments passed as numba_parameter tells.

Numba is imported only when `from_numba` is called, and is used only to compile. It needs its NVVM (from a CUDA Toolkit
or its packages), but no GPU.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import types

from . import numba_exceptions, numba_link
from .config import LaunchConfig
from .kernel import Kernel
from .modules import Module
from .numba_parameter import spec_of

_compiling = threading.Lock()


class NumbaKernel(Kernel):
    """A Kernel that passes arguments in Numba's ABI.

    `symbol`: in the PTX; `specs`: the function's parameters; `cooperative`: it synchronizes its grid; `raises`: with
    debug=True, the symbol as in the PTX, and the table of numba_exceptions.
    """

    def __init__(self, module: Module, symbol: str, name: str, doc: str, specs, cooperative: bool = False, raises=None):
        inner = module.get_kernel(symbol)
        super().__init__(module, name, symbol, doc, (), inner.kinds_known, inner.attributes)
        self._specs = tuple(specs)
        self._cooperative = cooperative
        self._exceptions = None if raises is None else numba_exceptions.Exceptions(module, *raises)
        self._packers = [spec.packer(name, i) for i, spec in enumerate(self._specs)]
        wanted = sum(spec.n_words for spec in self._specs)
        given = len(inner._packers)
        if wanted != given:
            raise TypeError(f"{name}: its PTX has {given} parameters, but Numba's ABI should give it {wanted}; "
                            "this version of Numba passes some types differently")

    def _config(self, config) -> LaunchConfig:
        """A kernel that synchronizes its grid is launched cooperatively, as in Numba."""
        config = super()._config(config)
        if not self._cooperative or config.cooperative_launch:
            return config
        return LaunchConfig(config.grid, config.block, config.cluster, config.shmem_size, True)

    def _pack(self, job, args, keep: list) -> tuple[bytes, int]:
        if len(args) != len(self._specs):
            raise TypeError(f"{self.name} takes {len(self._specs)} arguments ({', '.join(self.parameters)}), "
                            f"not {len(args)}")
        if self._exceptions is not None:
            self._exceptions.watch(job)
        parts = []
        for spec, packer, arg in zip(self._specs, self._packers, args):
            parts += spec.pack(job, packer, arg, keep)
        return b"".join(parts), len(parts)

    def _slots(self, operation: int, args) -> list:
        if self._exceptions is not None:
            raise TypeError(f"{self.name} was compiled with debug=True, and a prepared job does not tell what a kernel raises: use "
                            "submit() or run(), or from_numba(..., debug=False)")
        slots, index = [], 0
        for spec, packer, arg in zip(self._specs, self._packers, args):
            slots += spec.slots(operation, packer, index, arg)
            index += spec.n_words
        return slots

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters of the Python function, each with its name and Numba's type."""
        return tuple(spec.text for spec in self._specs)

    def __reduce__(self):
        raises = None if self._exceptions is None else (self._exceptions.symbol, self._exceptions.table)
        return NumbaKernel, (self.module, self._symbol.decode(), self.name, self.doc, self._specs, self._cooperative, raises)


def _normalised(cuda, signature):
    """The argument types of a signature in any of the forms that Numba accepts."""
    for home in ("numba.cuda.core.sigutils", "numba.core.sigutils"):
        try:
            sigutils = __import__(home, fromlist=["normalize_signature"])
            break
        except ImportError:
            continue
    arguments, result = sigutils.normalize_signature(signature)
    if result is not None and str(result) != "none":
        raise TypeError(f"a kernel returns nothing, but the signature returns {result}: use void(...)")
    return arguments


@contextlib.contextmanager
def _device_of(cc):
    """Let this thread compile for `cc`. Numba asks its current device, and so a CUDA context, when it meets a device function."""
    from numba.cuda import compiler, dispatcher
    homes = [home for home in (compiler, dispatcher) if hasattr(home, "get_current_device")]
    thread, device = threading.get_ident(), types.SimpleNamespace(compute_capability=cc)
    with _compiling:
        asked = [home.get_current_device for home in homes]
        for home, ask in zip(homes, asked):
            home.get_current_device = lambda ask=ask: device if threading.get_ident() == thread else ask()
        try:
            yield
        finally:
            for home, ask in zip(homes, asked):
                home.get_current_device = ask


def _default_cc() -> tuple[int, int]:
    """Numba's default, but at least what its compiler supports."""
    from numba import config, cuda
    default = getattr(getattr(cuda, "config", config), "CUDA_DEFAULT_PTX_CC", None) or config.CUDA_DEFAULT_PTX_CC
    try:
        from numba.cuda.cudadrv import nvrtc
        return max(tuple(default), nvrtc.get_lowest_supported_cc())
    except (ImportError, AttributeError):
        return tuple(default)


# ---- synchronization of a grid, which Numba calls in the CUDA runtime's library for devices ----

_HANDLE, _SYNC = "cudaCGGetIntrinsicHandle", "cudaCGSynchronize"
_DECLARED = r"\.extern\s+\.func\s*\([^()]*\)\s*%s\s*\([^()]*\)\s*;"

# The driver gives a cooperative grid memory whose second word is zero at first. Each block adds 1 to it, and the first
# block adds what flips the upper bit when all have added.
_GRID = {
    _HANDLE: """
.func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
        .reg .b32 %low, %high;
        .reg .b64 %words;
        mov.u32 %high, %envreg1;
        mov.u32 %low, %envreg2;
        mov.b64 %words, {%low, %high};
        st.param.b64 [handle], %words;
        ret;
}
""",
    _SYNC: """
.func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
        .reg .pred %is_other, %is_first, %waits;
        .reg .b32 %x, %y, %blocks, %add, %old, %now;
        .reg .b64 %words;
        ld.param.b64 %words, [handle];
        bar.sync 0;
        mov.u32 %x, %tid.x;
        mov.u32 %y, %tid.y;
        or.b32 %x, %x, %y;
        mov.u32 %y, %tid.z;
        or.b32 %x, %x, %y;
        setp.ne.u32 %is_other, %x, 0;
        @%is_other bra done;
        mov.u32 %blocks, %nctaid.x;
        mov.u32 %y, %nctaid.y;
        mul.lo.u32 %blocks, %blocks, %y;
        mov.u32 %y, %nctaid.z;
        mul.lo.u32 %blocks, %blocks, %y;
        sub.u32 %add, 0x80000001, %blocks;
        mov.u32 %x, %ctaid.x;
        mov.u32 %y, %ctaid.y;
        or.b32 %x, %x, %y;
        mov.u32 %y, %ctaid.z;
        or.b32 %x, %x, %y;
        setp.eq.u32 %is_first, %x, 0;
        selp.u32 %add, %add, 1, %is_first;
        membar.gl;
        atom.add.u32 %old, [%words + 4], %add;
again:
        ld.volatile.u32 %now, [%words + 4];
        xor.b32 %now, %now, %old;
        setp.ge.s32 %waits, %now, 0;
        @%waits bra again;
        membar.gl;
done:
        bar.sync 0;
        st.param.b32 [result], 0;
        ret;
}
""",
}


def _define_grid(ptx: str) -> tuple[str, bool]:
    """Define what a kernel calls to synchronize its grid. Returns the PTX, and whether it does."""
    found = False
    for name, text in _GRID.items():
        ptx, n = re.subn(_DECLARED % name, lambda match, text=text: text, ptx)
        found = found or n > 0
    return ptx, found


_ENVIRONMENT = re.compile(r"^\.common \.global \.align 8 \.u64 (_ZN08NumbaEnv\w*);\n", re.MULTILINE)


def _drop_environments(ptx: str) -> str:
    """Leave out Numba's variables for its CPU code, which no kernel uses: launches that share variables run in order."""
    return _ENVIRONMENT.sub(lambda match: "" if ptx.count(match[1]) == 1 else match[0], ptx)


def _check_linked(name: str, ptx: str) -> None:
    missing = numba_link.missing(ptx)
    if missing:
        raise TypeError(f"{name} calls {', '.join(missing)}, which Numba would link, but from_numba cannot: link CUDA C++ source "
                        "or PTX, or write such functions in Python with @cuda.jit(device=True)")


@contextlib.contextmanager
def _nvrtc_without_driver():
    from numba.cuda.cudadrv import nvrtc
    compile_source, nvrtc.compile = nvrtc.compile, numba_link.compile_source
    try:
        yield
    finally:
        nvrtc.compile = compile_source


_RESHAPE = "numba_attempt_nocopy_reshape"  # which Numba links for reshape() when it launches


def _compile_linked(cuda, function, arguments, options) -> str:
    """The kernel and what it links, as one PTX text. Links of other kinds stay out: see _check_linked."""
    with _nvrtc_without_driver():
        codes, _ = cuda.compile_all(function, arguments, **options)
    texts = [code if isinstance(code, (str, bytes)) else code.data for code in codes if isinstance(code, (str, bytes)) or code.kind == "ptx"]
    texts = [text.decode() if isinstance(text, bytes) else text for text in texts]
    if _RESHAPE in numba_link.missing(texts[0]):
        with open(os.path.join(os.path.dirname(cuda.__file__), "reshape_funcs.cu"), encoding="utf-8") as source:
            texts.append(numba_link.compile_source(source.read(), "reshape_funcs.cu", options["cc"])[0].decode())
    return numba_link.merged(texts)


_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_POINTER = re.compile(r"(\.param \.u64) \.ptr (?:\.global )?\.align \d+ ")  # with debug=True also the unused words of an array


def compile_ptx(function, signature, cc=None, fastmath: bool | None = None, debug: bool | None = None) -> tuple:
    """Compile a Python function with numba.cuda.compile.

    Returns the PTX, the parameters as Specs, and with `debug` the kernel's symbol and the table of numba_exceptions,
    else None.

    `function`: a plain function, or one decorated with @cuda.jit. `fastmath`, `debug`: None: as the decorator says.
    """
    import inspect

    from numba import cuda
    targets = getattr(function, "targetoptions", {})
    debug = bool(targets.get("debug")) if debug is None else debug
    options = {"device": False, "abi": "numba", "output": "ptx", "cc": cc or _default_cc(),
               "fastmath": bool(targets.get("fastmath")) if fastmath is None else fastmath}
    if debug:
        options.update(debug=True, opt=False)
    function = getattr(function, "py_func", function)
    arguments = _normalised(cuda, signature)
    names = list(inspect.signature(function).parameters)
    if len(names) != len(arguments):
        raise TypeError(f"{function.__name__} has {len(names)} parameters, but the signature has {len(arguments)}")
    specs = [spec_of(kind, name) for kind, name in zip(arguments, names)]
    with _device_of(options["cc"]), numba_exceptions.compilations() if debug else contextlib.nullcontext([]) as compiled:
        ptx, _ = cuda.compile(function, arguments, **options)
        ptx = ptx.decode() if isinstance(ptx, bytes) else ptx
        if set(numba_link.missing(ptx)) - set(_GRID) and hasattr(cuda, "compile_all"):
            ptx = _compile_linked(cuda, function, arguments, options)
    if not debug:
        return ptx, specs, None
    return _POINTER.sub(r"\1 ", ptx), specs, (_ENTRY.search(ptx)[1], compiled[-1].call_helper.exceptions)


def from_numba(function, signature, *, cc=None, fastmath: bool | None = None, debug: bool | None = None,
               client=None) -> NumbaKernel:
    """Create a Kernel from a Python function, which Numba compiles for the GPU.

    - `function`: a plain function, or one decorated with @cuda.jit
    - `signature`: the types of the parameters in Numba's notation, such as "void(float32[::1], float32, int64)", or a
      tuple of types. Arrays are in row-major order, for float32[::1, :] in Fortran's layout, for float32[:, :] in
      either. Records, tuples, complex numbers, float16, times, enums and CPointers are passed as in Numba.
    - `cc`: compute capability, such as (9, 0); None: Numba's default, which also runs on newer devices
    - `fastmath`: None: as @cuda.jit says
    - `debug`: whether exceptions of the kernel are told; None: as @cuda.jit says. The first one of a job is raised by
      `run()` or `wait()` with Numba's text: function, file, line, thread and block.

    Use the kernel like any other: `kernel.run(config, Out(r), 2.0, n)`. It is launched cooperatively if it synchronizes
    its grid. CUDA C++ and PTX that it links, as float16 and `cuda.declare_device` do, become part of it. Raises
    TypeError for a type that cannot be passed and for other links; Numba's exceptions are passed on.
    """
    ptx, specs, raises = compile_ptx(function, signature, cc, fastmath, debug)
    function = getattr(function, "py_func", function)
    ptx, cooperative = _define_grid(_drop_environments(ptx))
    _check_linked(function.__name__, ptx)
    module = Module(ptx, "ptx", (), f"{function.__name__}.ptx", client=client)
    if len(module.kernels) != 1:
        raise TypeError(f"{function.__name__}: expected one kernel in Numba's PTX, found {len(module.kernels)}")
    return NumbaKernel(module, module.kernels[0], function.__name__, function.__doc__ or "", specs, cooperative, raises)
