"""Hashes of files and JSON values: checksums, and keys of what is stored by its content."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from polyseme.base.files import wrap_os_errors


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with wrap_os_errors(path, "read"), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_bytes(*parts: bytes) -> str:
    """Return the SHA-256 of some bytes, one part after the other."""
    return hashlib.sha256(b"".join(parts)).hexdigest()


def hash_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value, whatever the order of its keys.

    >>> hash_json({"a": 1, "b": 2}) == hash_json({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
