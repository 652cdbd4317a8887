"""The models that come with the package, by their names: each a folder of ours under `polyseme/models`.

A name goes before a path: to load a folder of your own that is called `en`, write `./en`.
"""

from __future__ import annotations

from pathlib import Path

import polyseme
from polyseme.base.errors import PolysemeError

NAMES = ("en", "zh")
"""English, which is what `polyseme.load()` gives, and Chinese."""


def folder_of(name: str | Path) -> Path | None:
    """The folder of a shipped model; None where it is no such name."""
    if name not in NAMES:
        return None
    folder = Path(polyseme.__file__).parent / "models" / str(name)
    if not (folder / "config.json").is_file():
        raise PolysemeError(
            f"the model {name!r} comes with polyseme, but this copy lacks it ({folder}): install polyseme again, "
            f"or write ./{name} for a folder of your own"
        )
    return folder
