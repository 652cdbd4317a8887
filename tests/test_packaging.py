"""What a release contains: the shipped models, the types, and nothing that is not needed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_source_distribution_has_the_shipped_models() -> None:
    """Wheels are built from it. A pattern without a leading slash matches at every depth, `src/polyseme/models` too."""
    pathspec = pytest.importorskip("pathspec", reason="comes with hatchling")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    excluded = pathspec.GitIgnoreSpec.from_lines(settings["tool"]["hatch"]["build"]["targets"]["sdist"]["exclude"])
    kept = [path.relative_to(ROOT) for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert Path("src/polyseme/models/en/model.safetensors") in kept and Path("src/polyseme/py.typed") in kept
    assert [path for path in kept if excluded.match_file(path)] == []
    assert excluded.match_file("models/pyproject.toml") and excluded.match_file("tests/test_packaging.py")
