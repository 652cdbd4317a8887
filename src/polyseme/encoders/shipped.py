"""The models of the package by name, each a model folder under `polyseme/models`.

A name takes precedence over a path: to load your own folder `en`, write `./en`.
"""

from __future__ import annotations

from pathlib import Path

import polyseme
from polyseme.base.errors import PolysemeError
from polyseme.base.hub import cached_path

NAMES = ("en", "zh")
"""English, the default of `polyseme.load()`, and Chinese."""


def shipped_folder(name: str | Path) -> Path | None:
    """Return the folder of a shipped model; None: there is no such name."""
    if name not in NAMES:
        return None
    folder = Path(polyseme.__file__).parent / "models" / str(name)
    if not (folder / "config.json").is_file():
        raise PolysemeError(
            f"this installation lacks the weights of the model {name!r} ({folder}): choose another model, or write ./{name} "
            "for your own folder"
        )
    return folder


def resolve_path(name: str | Path) -> Path:
    """Return the path of a model: a shipped one by its name, else a path, or the local copy of a hub repository."""
    return shipped_folder(name) or cached_path(name, NAMES)
