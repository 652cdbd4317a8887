"""The package's own models, by their names: each a folder of ours under `polyseme/models`.

A name goes before a path: to load a folder of your own that is called `en`, write `./en`.
"""

from __future__ import annotations

from pathlib import Path

import polyseme
from polyseme.base.errors import PolysemeError
from polyseme.base.hub import cached_path

NAMES = ("en", "zh")
"""English, which is what `polyseme.load()` gives, and Chinese."""


def shipped_folder(name: str | Path) -> Path | None:
    """The folder of a shipped model; None where it is no such name."""
    if name not in NAMES:
        return None
    folder = Path(polyseme.__file__).parent / "models" / str(name)
    if not (folder / "config.json").is_file():
        raise PolysemeError(
            f"this copy of polyseme holds no weights for its own model {name!r} ({folder}): name another model (a folder, a "
            f"file or a hub id), or write ./{name} for a folder of your own"
        )
    return folder


def resolve_path(name: str | Path) -> Path:
    """Where a model lies: a shipped one by its name, else a path, or the local copy of a hub repository."""
    return shipped_folder(name) or cached_path(name, NAMES)
