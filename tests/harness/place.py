# SPDX-License-Identifier: Apache-2.0
"""Where things are: the checkout, the build, the installed tree under test."""

import os
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUQ_BUILD", ROOT / "build")).resolve()
STAGE = pathlib.Path(os.environ.get("GPUQ_STAGE", BUILD / "stage")).resolve()
DEVICE = os.environ.get("GPUQ_TEST_DEVICE", "cpu")
LENDING = DEVICE == "gpu" or bool(os.environ.get("GPUQ_TEST_LENDING"))
SANITIZED = bool(os.environ.get("GPUQ_TEST_SANITIZE"))

# Enough for a machine that is slow and loaded; a test that waits this long has failed.
PATIENCE_S = 300 if SANITIZED else 180


def on_gpu():
    return DEVICE == "gpu"


def no_opencl():
    """Why OpenCL C cannot be compiled here, or None: opencl.c looks in these places."""
    folders = ("/usr/lib/clc", "/usr/share/clc", "/usr/lib64/clc")
    if shutil.which("clang") and any(os.path.exists(f"{folder}/nvptx64--nvidiacl.bc") for folder in folders):
        return None
    return "needs clang and libclc" if on_gpu() else None


def program(name):
    """An installed program: of bin, or a private one of libexec/gpuq."""
    for folder in ("bin", "libexec/gpuq"):
        if (STAGE / folder / name).exists():
            return str(STAGE / folder / name)
    raise FileNotFoundError(f"{name} is not in {STAGE}: run tests/setup.sh")


def test_program(name):
    """A program of the build that is not installed; beside these files where they were packed."""
    for folder in (*(BUILD / "tests" / part for part in ("integration", "fault", "hostile")), STAGE / "libexec" / "gpuq-tests"):
        if (folder / name).exists():
            return str(folder / name)
    raise FileNotFoundError(f"{name} was not built")


def n_gpus():
    """GPUs that the NVIDIA driver has."""
    folder = pathlib.Path("/proc/driver/nvidia/gpus")
    return len(list(folder.iterdir())) if folder.is_dir() else 0
