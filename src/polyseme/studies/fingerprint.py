"""A quick fingerprint of a model: shows whether another one was trained in the same folder."""

from __future__ import annotations

from pathlib import Path

from polyseme.base.hashing import hash_bytes
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
            return hash_bytes(file.read(_PREFIX), str(path.stat().st_size).encode())[:12]
    if not path.is_dir():
        return None
    small = [(path / name).read_bytes() if (path / name).is_file() else b"-" for name in _SMALL_FILES]
    large = path / _LARGE_FILE
    return hash_bytes(*small, str(large.stat().st_size if large.is_file() else None).encode())[:12]
