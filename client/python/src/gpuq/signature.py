# SPDX-License-Identifier: Apache-2.0
"""Signature: parameters of kernels, from CUDA C++ source and from the descriptions of built-in kernels.

The daemon checks kinds and sizes. Only the source tells what a pointer points to and whether it is const. Types that
this module does not understand (typedefs, structs, template parameters) are not checked.
"""

from __future__ import annotations

import re

import numpy as np

_TYPES = {
    "bool": "bool", "char": "int8", "signed char": "int8", "unsigned char": "uint8", "short": "int16",
    "unsigned short": "uint16", "int": "int32", "signed": "int32", "unsigned": "uint32", "unsigned int": "uint32",
    "long": "int64", "unsigned long": "uint64", "long long": "int64", "unsigned long long": "uint64",
    "float": "float32", "double": "float64", "int8_t": "int8", "uint8_t": "uint8", "int16_t": "int16",
    "uint16_t": "uint16", "int32_t": "int32", "uint32_t": "uint32", "int64_t": "int64", "uint64_t": "uint64",
    "size_t": "uint64", "cudaTextureObject_t": "uint64", "cudaSurfaceObject_t": "uint64", "__half": "float16", "half": "float16",
}
_SCALARS = {"i32": np.dtype(np.int32), "u32": np.dtype(np.uint32), "i64": np.dtype(np.int64), "u64": np.dtype(np.uint64),
            "f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}  # of the built-ins' texts
_SKIPPED = {"const", "volatile", "__restrict__", "__restrict", "restrict", "__grid_constant__", "struct"}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_KERNEL = re.compile(r"\b__global__\b([^;{}()]*(?:__launch_bounds__\s*\([^)]*\))?[^;{}()]*)\b(\w+)\s*\(")


class Parameter:
    """A parameter of a kernel. Unknown properties are None.

    `text`: as written; `name`; `dtype`: of a scalar, or of a pointer's elements; `writes`: whether the kernel may write.
    """

    __slots__ = ("text", "name", "dtype", "pointer", "writes", "must_write")

    def __init__(self, text, dtype=None, pointer=False, writes=None, must_write=False, name=None):
        self.text = text
        self.name = name
        self.dtype = dtype
        self.pointer = pointer
        self.writes = writes
        self.must_write = must_write

    def __repr__(self) -> str:
        return f"<{self.text}>"


def _words(text: str) -> str:
    words = [word for word in re.findall(r"\w+", text) if word not in _SKIPPED]
    long = words.count("long")
    if long and set(words) <= {"long", "int", "unsigned", "signed"}:
        return ("unsigned " if "unsigned" in words else "") + "long"
    if len(words) > 1 and words[-1] == "int":
        words = words[:-1]
    if words and words[0] == "signed" and words[-1] != "char":
        words = words[1:] or ["int"]
    return " ".join(words)


def _parameter(text: str) -> Parameter:
    text = " ".join(text.split())
    declared = text.split("=")[0]
    match = re.match(r"(.*?)(\w+)\s*(\[[^\]]*\])?\s*$", declared)
    if not match or "(" in text or "<" in text or "&" in text:
        return Parameter(text)

    kind, name, brackets = match.groups()
    stars = kind.count("*")
    if not kind.strip():  # no name, as in `int`
        kind, name = name, None
    if stars + bool(brackets) == 0:
        return Parameter(text, _dtype(kind), name=name)
    if stars + bool(brackets) > 1:
        return Parameter(text, pointer=True, name=name)
    return Parameter(text, _dtype(kind.split("*")[0]), True, not re.search(r"\bconst\b", kind.split("*")[0]), name=name)


def _dtype(kind: str):
    name = _TYPES.get(_words(kind))
    return np.dtype(name) if name else None


def _closing(text: str, start: int) -> int:
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return -1


def _split(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += {"(": 1, "<": 1, "[": 1, "{": 1, ")": -1, ">": -1, "]": -1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def without_comments(source: str) -> str:
    """The source text without its comments, and with empty strings."""
    return _COMMENT.sub(lambda match: '""' if match.group().startswith('"') else " ", source)


def of_source(source: str) -> dict[str, list[Parameter]]:
    """The kernels of a source text, by name. A kernel that occurs twice with different parameters is left out."""
    text = without_comments(source)
    found: dict[str, list[Parameter] | None] = {}
    for match in _KERNEL.finditer(text):
        end = _closing(text, match.end())
        inside = text[match.end():end].strip()
        parameters = [] if inside in ("", "void") else [_parameter(part) for part in _split(inside)]
        name = match.group(2)
        if name in found and repr(found[name]) != repr(parameters):
            found[name] = None
        else:
            found[name] = parameters
    return {name: parameters for name, parameters in found.items() if parameters is not None}


def of_builtin(name: str, text: str) -> list[Parameter] | None:
    """Parameters from the daemon's description of a built-in kernel.

    The description has one line each for what it does, its arguments ("in:a:f32:n out:b:f32:n u64:n") and its launch.
    The library and the daemon check the lengths.
    """
    lines = text.split("\n")
    if len(lines) < 2:
        return None
    element = np.dtype(np.float64 if name.endswith("_f64") else np.float32)
    parameters = []
    for word in lines[1].split():
        kind, name, dtype, _ = [*word.split(":"), "", "", ""][:4]
        if kind in ("in", "out", "inout"):
            parameters.append(Parameter(word, _SCALARS.get(dtype, element), True, kind != "in", kind != "in", name))
        else:
            parameters.append(Parameter(word, _SCALARS.get(kind), name=name))
    return parameters
