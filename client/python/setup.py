# SPDX-License-Identifier: Apache-2.0
"""Built from a checkout whose library is built too, the package carries it, so that it works from anywhere.

$GPUQ_LIBRARY names another one to carry; "none": none. What that one needs beside libc comes along where it lies in the
same folder, as in a tree that was packed to be moved. All else is in pyproject.toml.
"""

import os
import pathlib
import shutil

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

SONAME = "libgpuq.so.0"
NEEDED = "libprotobuf-c.so.1"


def library():
    """The library to carry, or None: it is found at run time then."""
    named = os.environ.get("GPUQ_LIBRARY")
    if named:
        return None if named == "none" else pathlib.Path(named)
    build = os.environ.get("GPUQ_BUILD") or pathlib.Path(__file__).resolve().parents[2] / "build"
    path = pathlib.Path(build) / "stage" / "lib" / SONAME
    return path if path.exists() else None


class BuildPy(build_py):
    def run(self):
        super().run()
        if library() and not getattr(self, "editable_mode", False):
            package = pathlib.Path(self.build_lib) / "gpuq"
            shutil.copyfile(library(), package / SONAME)
            needed = library().with_name(NEEDED)
            if needed.exists():
                shutil.copyfile(needed, package / NEEDED)


class GpuqDistribution(Distribution):
    """A wheel with a library is of one platform, though of no particular Python."""

    def has_ext_modules(self):
        return library() is not None


commands = {"build_py": BuildPy}
try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    try:
        from wheel.bdist_wheel import bdist_wheel
    except ImportError:
        bdist_wheel = None

if bdist_wheel is not None:

    class BdistWheel(bdist_wheel):
        def get_tag(self):
            return "py3", "none", super().get_tag()[2]

    commands["bdist_wheel"] = BdistWheel

setup(cmdclass=commands, distclass=GpuqDistribution)
