"""`import polyseme` costs nothing, and the public names are there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import polyseme


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_brings_nothing_heavy() -> None:
    heavy = run("import sys, polyseme; print([m for m in ('torch', 'numpy', 'h5py', 'rich', 'typer') if m in sys.modules])")
    assert heavy.strip() == "[]"


@pytest.mark.parametrize("name", polyseme.__all__)
def test_public_names(name: str) -> None:
    assert getattr(polyseme, name) is not None


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        polyseme.lod  # noqa: B018
