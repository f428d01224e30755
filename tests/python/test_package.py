# SPDX-License-Identifier: Apache-2.0
"""The package as a package: what it exports, how fast it is imported, that it installs from the checkout."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from harness import place

PROGRAM = """
import numpy, gpuq
s = numpy.zeros(1)
gpuq.builtin()["sum_f64"].run((1, 64), numpy.arange(10.0), gpuq.Out(s), 10)
assert s[0] == 45
print(gpuq.__file__)
print(gpuq._native.path)
"""


def python(program, **environment):
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd="/",
                           env={**os.environ, **environment}, timeout=place.PATIENCE_S)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split("\n")


def test_every_name_is_there_documented_and_typed(gpuq):
    for name in gpuq.__all__:
        thing = getattr(gpuq, name)
        assert thing.__doc__, name
    assert set(gpuq.__all__) <= set(dir(gpuq))
    with pytest.raises(AttributeError):
        gpuq.no_such_name
    assert (pathlib.Path(gpuq.__file__).parent / "py.typed").exists()


def test_importing_it_takes_little_over_numpy(gpuq, tmp_path):
    """Compiled once, as pip does."""
    program = "import numpy, time; t = time.process_time(); import gpuq; gpuq.connect, gpuq.In; print(time.process_time() - t)"
    times = [float(python(program, PYTHONDONTWRITEBYTECODE="", PYTHONPYCACHEPREFIX=str(tmp_path))[0]) for _ in range(6)]
    assert min(times) < 0.090, times  # three times what it takes on an idle machine


def test_nothing_of_others_is_imported(gpuq):
    program = "import sys, gpuq; gpuq.builtin(); print([m for m in ('numba', 'triton', 'torch', 'cupy', 'concurrent.futures') if m in sys.modules])"
    assert python(program)[0] == "[]"


def test_a_process_that_runs_kernels_loads_no_driver(gpuq):
    program = """
import gpuq
out = gpuq.zeros(1)
kernel = gpuq.RawKernel('extern "C" __global__ void set(double *out) { out[0] = 3; }', "set")
kernel((1,), (1,), (gpuq.Out(out),))
assert out[0] == 3
print({line.split()[5].rsplit("/", 1)[1].split(".")[0] for line in open("/proc/self/maps") if "/" in line})
"""
    libraries = python(program)[0]
    assert "'libgpuq'" in libraries
    assert not any(driver in libraries for driver in ("libcuda", "libnvidia", "libgpuq-cpu")), libraries


def test_a_process_that_only_passes_on_ids_imports_no_numpy(gpuq):
    job = gpuq.job().fill(gpuq.zeros(4), 1)
    job.run()
    program = f"""
import sys, gpuq
assert gpuq.wait_id({job.id!r}).state == "done" and gpuq.status().state == "ready" and gpuq.queue() == []
print("numpy" in sys.modules)
"""
    assert python(program)[0] == "False"


def test_the_installed_tree_finds_its_library(gpuq):
    folder = place.STAGE / "lib" / "python3" / "dist-packages"
    if not folder.exists():
        pytest.skip("the tree under test was installed without the package")
    told = python(PROGRAM, PYTHONPATH=str(folder), GPUQ_LIBRARY="")
    assert told[0].startswith(str(folder)) and told[1].startswith(str(place.STAGE))


def pip(*arguments):
    ended = subprocess.run([sys.executable, "-m", "pip", *map(str, arguments), "--no-index", "--no-deps", "--quiet"], capture_output=True, text=True,
                           env={**os.environ, "PYTHONPATH": "", "PIP_BREAK_SYSTEM_PACKAGES": "1"})
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("way", ["checkout", "wheel"])
def test_pip_installs_it_with_the_builds_library(gpuq, tmp_path, way):
    if not all(map(importlib.util.find_spec, ("pip", "setuptools"))):
        pytest.skip("no pip or no setuptools here")
    if not (place.ROOT / "client" / "python").exists():
        pytest.skip("a packed tree has no sources")
    source = shutil.copytree(place.ROOT / "client" / "python", tmp_path / "source", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    if way == "wheel":
        pip("wheel", "--no-build-isolation", "--wheel-dir", tmp_path, source)
        [source] = tmp_path.glob("*.whl")
        assert re.fullmatch(r"gpuq-[0-9.]+-py3-none-linux_\w+\.whl", source.name), "one of this platform, for its library, and of any Python"
    target = tmp_path / "site"
    pip("install", "--no-build-isolation", "--target", target, source)
    told = python(PROGRAM, PYTHONPATH=str(target), GPUQ_LIBRARY="")
    assert told[:2] == [str(target / "gpuq" / "__init__.py"), str(target / "gpuq" / "libgpuq.so.0")]


def test_what_a_job_needs_is_imported_before_a_fork(gpuq):
    """Once in the parent, not once in each of a hundred children; and not before that."""
    program = """
import os, sys, gpuq
names = ("gpuq.jobs", "gpuq.modules", "gpuq.signature")
assert not any(name in sys.modules for name in names)
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, repr([name for name in names if name in sys.modules] + ["path" in vars(sys.modules["gpuq._native"])]).encode())
    os._exit(0)
print(os.read(reader, 1000).decode())
"""
    assert python(program)[0] == "['gpuq.jobs', 'gpuq.modules', 'gpuq.signature', True]"
    assert python(program, GPUQ_LIBRARY="/no/such/library")[0] == "['gpuq.jobs', 'gpuq.modules', 'gpuq.signature', False]"


def test_the_readmes_first_program_is_ten_lines_and_works_as_printed(gpuq):
    readme = place.ROOT / "README.md"
    if not readme.exists():
        pytest.skip("a packed tree has no README.md")
    program = readme.read_text().split("## A first Python program")[1].split("```python\n")[1].split("```")[0]
    assert program.count("\n") == 10
    assert python(program)[0].endswith("] right")
    indented = "".join(f"    {line}" if line.strip() else line for line in program.splitlines(keepends=True))
    assert indented in (place.ROOT / "client" / "python" / "README.md").read_text()
