# SPDX-License-Identifier: Apache-2.0
"""What Numba links to a kernel, as PTX: CUDA C++ of its own, as for float16, and of `cuda.declare_device(link=...)`.

Numba compiles such source with NVRTC, for which it asks the driver. Here NVRTC of its packages compiles it without one.
All PTX becomes one text.
"""

from __future__ import annotations

import os
import re

_HEAD = re.compile(r"^\s*\.(?:version|target|address_size)\b[^\n]*\n", re.MULTILINE)
_VERSION = re.compile(r"^(\s*\.version\s+)(\d+)\.(\d+)", re.MULTILINE)
_EXTERN = re.compile(r"\.extern\s+\.func\s*(?:\([^()]*\)\s*)?(\w+)\s*(?:\([^()]*\)\s*)?(?:\.noreturn\s*)?;")
_FUNCTION = re.compile(r"\.func\s*(?:\([^()]*\)\s*)?(\w+)")
_PROVIDED = ("vprintf", "__assertfail", "malloc", "free")  # by every driver


def missing(ptx: str) -> list[str]:
    """The functions that the PTX calls, but neither it nor a driver has."""
    return [name for name in _EXTERN.findall(ptx) if name not in _PROVIDED]


def merged(texts) -> str:
    """One PTX text of several. The first is the kernel's; what it calls comes before it."""
    texts = list(texts)
    plain = [_EXTERN.sub("", text) for text in texts]
    defined = {name for text in plain for name in _FUNCTION.findall(text)}
    head = texts[0][:texts[0].index(".version")] + "".join(match.lstrip("\n") for match in _HEAD.findall(texts[0]))
    newest = max((int(major), int(minor)) for text in texts for _, major, minor in _VERSION.findall(text))
    head = _VERSION.sub(lambda match: f"{match[1]}{newest[0]}.{newest[1]}", head, count=1)
    declared: set[str] = set()
    return head + "".join(_body(text, defined, declared) for text in reversed(texts))


def _body(text: str, defined: set[str], declared: set[str]) -> str:
    """Without its head, and without declarations of what is defined or declared already."""
    def kept(match) -> str:
        if match[1] in defined or match[1] in declared:
            return ""
        declared.add(match[1])
        return match[0]

    return "\n" + _EXTERN.sub(kept, _HEAD.sub("", text[text.index(".version"):]))


def compile_source(source, name: str, cc, ltoir: bool = False, lineinfo: bool = False, debug: bool = False):
    """As numba.cuda.cudadrv.nvrtc.compile, but without asking the driver. Returns the PTX and the log."""
    from cuda.bindings import nvrtc
    text = source.decode() if isinstance(source, bytes) else source
    options = [f"--gpu-architecture=compute_{cc[0]}{cc[1]}", "--relocatable-device-code=true", "-std=c++17",
               *(["-lineinfo"] if lineinfo else []), *(f"-I{folder}" for folder in _folders(nvrtc))]
    program = _checked(nvrtc, nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], []))
    result, = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    log = _output(nvrtc, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        from .errors import COMPILE, CompileError
        raise CompileError(f"{name}, which Numba links: {log.strip()}", COMPILE)
    return _output(nvrtc, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program).encode(), log


def _checked(nvrtc, answer):
    result, *values = answer
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {result.name}")
    return values[0] if values else None


def _output(nvrtc, size, get, program) -> str:
    data = b" " * _checked(nvrtc, size(program))
    _checked(nvrtc, get(program, data))
    return data.rstrip(b"\0").decode(errors="replace")


def _folders(nvrtc) -> list[str]:
    """Where Numba has NVRTC look for headers."""
    import numba.cuda
    from numba import config
    from numba.cuda.cuda_paths import get_cuda_paths
    home = os.path.dirname(numba.cuda.__file__)
    major = nvrtc.nvrtcVersion()[1]
    folders = [os.path.join(home, "include", str(major)), get_cuda_paths()["include_dir"].info, _cccl(),
               os.path.join(home, "memory_management")]
    extra = getattr(getattr(numba.cuda, "config", config), "CUDA_NVRTC_EXTRA_SEARCH_PATHS", "") or ""
    return [folder for folder in (*folders, *extra.split(":")) if folder]


def _cccl() -> str | None:
    try:
        from cuda.pathfinder import find_nvidia_header_directory
        return find_nvidia_header_directory("cccl")
    except ImportError:
        return None
