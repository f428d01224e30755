# SPDX-License-Identifier: Apache-2.0
"""Figures on disk as they become known."""

import json


def write(path, result):
    """Whole at any moment, whenever the run is cut off."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps(result, indent=1))
    new.replace(path)
