"""Where public labelled data lies: `$POLYSEME_DATA/tasks`; without it the tests that need it are skipped."""

import os
from pathlib import Path

import pytest


def real(name: str) -> Path:
    """A file or folder of labelled data, or skip."""
    root = os.environ.get("POLYSEME_DATA")
    path = Path(root or "", "tasks", name)
    if not root or not path.exists():
        pytest.skip(f"real data: set POLYSEME_DATA to a folder with tasks/{name}")
    return path
