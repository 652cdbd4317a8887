"""A quick fingerprint of a model: shows whether another one was trained in the same folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from polyseme.encoders.folder import COST

_SMALL_FILES = ("config.json", COST)
_LARGE_FILE = "model.safetensors"
_PREFIX = 1 << 20  # bytes of a file of vectors that are hashed


def quick_fingerprint(path: str | Path) -> str | None:
    """Hash a model folder or a file of vectors, by small files or the beginning and by size.

    None: there is nothing at the path, as with the names of shipped models.
    """
    path = Path(path).expanduser()
    if path.is_file():  # other vectors can have the same size
        with path.open("rb") as file:
            return hashlib.sha256(file.read(_PREFIX) + str(path.stat().st_size).encode()).hexdigest()[:12]
    if not path.is_dir():
        return None
    digest = hashlib.sha256()
    for name in _SMALL_FILES:
        digest.update((path / name).read_bytes() if (path / name).is_file() else b"-")
    large = path / _LARGE_FILE
    digest.update(str(large.stat().st_size if large.is_file() else None).encode())
    return digest.hexdigest()[:12]
