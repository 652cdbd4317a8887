"""`import polyseme` costs nothing, and the public names are there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import polyseme
from polyseme.base.errors import UsageError


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


def test_arguments_without_a_name() -> None:
    with pytest.raises(UsageError, match=r"neighbours takes only sentence without a name: .* such as word='crane'$"):
        polyseme.neighbours("The crane flew off.", "crane")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match=r"embed_file takes only input and out without a name: .* such as NAME='en'$"):
        polyseme.embed_file("a.txt", "a.npz", "en", model="en")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match=r"tags takes no argument without a name: .* such as train='a.txt'$"):
        polyseme.probe("tags", "a.txt")  # type: ignore[call-overload]
