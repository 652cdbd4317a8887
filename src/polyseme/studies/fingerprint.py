"""Which model lies in a folder: what tells it from one that was trained anew in the same place."""

from __future__ import annotations

import hashlib
from pathlib import Path

from polyseme.encoders.folder import COST

_READ = ("config.json", COST)
_SIZED = "model.safetensors"
_BEGIN = 1 << 20  # bytes of a file of vectors that are looked at


def quick_fingerprint(place: str | Path) -> str | None:
    """A short name of the model or the file of vectors in a place, by its small files or its beginning, and its size; None:
    nothing is there, as with the names of shipped models."""
    path = Path(place).expanduser()
    if path.is_file():  # vectors of other numbers can be as long to the byte
        with path.open("rb") as file:
            return hashlib.sha256(file.read(_BEGIN) + str(path.stat().st_size).encode()).hexdigest()[:12]
    if not path.is_dir():
        return None
    found = hashlib.sha256()
    for name in _READ:
        found.update((path / name).read_bytes() if (path / name).is_file() else b"-")
    large = path / _SIZED
    found.update(str(large.stat().st_size if large.is_file() else None).encode())
    return found.hexdigest()[:12]
