# SPDX-License-Identifier: Apache-2.0
"""Folders that all processes of a run have in common."""

import os
import pathlib
import shutil
import tempfile

from . import place


def new(prefix):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
    folder.chmod(0o755)
    return folder


def share():
    """A compile cache, and an installed tree that other users can reach. Returns what removes them."""
    made = [new("gpuq-cache-")]
    os.environ["GPUQ_SHARED_CACHE"] = str(made[0])
    if os.geteuid() == 0 and not all(folder.stat().st_mode & 0o001 for folder in (place.STAGE, *place.STAGE.parents)):
        # Other users must reach the installed tree; where they do not, its copy stands in: it may be moved.
        made.append(new("gpuq-stage-"))
        place.STAGE = pathlib.Path(shutil.copytree(place.STAGE, made[1] / "stage", symlinks=True))
        os.environ["GPUQ_STAGE"] = str(place.STAGE)
    # A compiler that is ending may be removing a file of its own there.
    return lambda: [shutil.rmtree(folder, ignore_errors=True) for folder in made]
