"""The examples in docstrings run, and give the results that they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import polyseme
from polyseme.base.errors import MissingExtraError

SOURCE = Path(polyseme.__file__).parent


def modules() -> list[str]:
    """The modules that have an example."""
    paths = [path for path in SOURCE.rglob("*.py") if ">>>" in path.read_text(encoding="utf-8")]
    return sorted(".".join(("polyseme", *path.relative_to(SOURCE).with_suffix("").parts)) for path in paths)


@pytest.mark.parametrize("name", modules())
def test_examples_of(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner, output = doctest.DocTestRunner(), list[str]()
    try:
        module = importlib.import_module(name)
    except MissingExtraError as error:
        pytest.skip(str(error))
    for example in doctest.DocTestFinder().find(module):
        runner.run(example, out=output.append)
    assert not runner.failures, "".join(output)


def test_public_names_have_examples() -> None:
    for name in set(polyseme.__all__) - {"__version__"}:
        assert ">>>" in (getattr(polyseme, name).__doc__ or ""), name
