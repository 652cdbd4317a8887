"""Where a library is missing, its integration says which extra to install, and nothing else fails."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import polyseme.integrations
from polyseme.base.errors import MissingExtraError

LIBRARIES = (
    *("sklearn", "transformers", "spacy", "sentence_transformers", "gensim", "datasets", "pandas", "polars", "flair"),
    "onnxruntime",
)
EXTRAS = {
    "sklearn": "sklearn",
    "transformers": "transformers",
    "spacy": "spacy",
    "sentence_transformers": "sentence-transformers",
    "gensim": "vectors",
    "datasets": "datasets",
    "flair": "flair",
    "onnx": "onnx",
}
"""Modules that need a library: the extra that installs it."""
MODULES = sorted(path.stem for path in Path(polyseme.integrations.__file__).parent.glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", MODULES)
def test_a_missing_library_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for loaded in [*sys.modules, *LIBRARIES]:
        if loaded.partition(".")[0] in LIBRARIES:
            monkeypatch.setitem(sys.modules, loaded, None)
    module = f"polyseme.integrations.{name}"
    if name not in EXTRAS:
        importlib.import_module(module)
        return
    for each in (module, "polyseme.formats.onnx_runtime"):
        monkeypatch.delitem(sys.modules, each, raising=False)
    with pytest.raises(MissingExtraError, match=rf"polyseme\[{EXTRAS[name]}\]"):
        importlib.import_module(module)
