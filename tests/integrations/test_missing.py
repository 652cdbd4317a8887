"""Where a library is missing, its integration says which extra to install, and nothing else fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polyseme.integrations

HERE = Path(polyseme.integrations.__file__).parent
EXTRAS = {"sklearn": "sklearn"}
"""Modules that need a library: the extra that installs it."""
CODE = """
import importlib, sys
for name in ("sklearn", "transformers", "spacy", "sentence_transformers", "gensim", "datasets", "pandas", "polars", "flair"):
    sys.modules[name] = None  # as if it were not installed
from polyseme.base.errors import MissingExtraError
for name in sys.argv[1:]:
    try:
        importlib.import_module(f"polyseme.integrations.{name}")
    except MissingExtraError as error:
        print(name, str(error).split("polyseme[")[1].split("]")[0])
    else:
        print(name, "imported")
"""


def test_a_missing_library_is_named() -> None:
    modules = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "__init__")
    out = subprocess.run([sys.executable, "-c", CODE, *modules], capture_output=True, text=True, check=True).stdout
    assert dict(line.split() for line in out.splitlines()) == {name: EXTRAS.get(name, "imported") for name in modules}
