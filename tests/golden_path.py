"""Where the golden files lie: numbers that the original programs gave for small models.

The folder is `$POLYSEME_GOLDEN`, else `$POLYSEME_DATA/../golden`; without it the tests that need it are skipped.
"""

import os
from pathlib import Path

import pytest


def golden(name: str) -> Path:
    """A folder of golden files, or skip."""
    if os.environ.get("POLYSEME_GOLDEN"):
        root = Path(os.environ["POLYSEME_GOLDEN"])
    elif os.environ.get("POLYSEME_DATA"):
        root = Path(os.environ["POLYSEME_DATA"]).parent / "golden"
    else:
        pytest.skip("golden files: set POLYSEME_GOLDEN or POLYSEME_DATA")
    if not (root / name).exists():
        pytest.skip(f"golden files: no folder {name} in the golden folder")
    return root / name
