"""What lies in a folder of bilm-tf's kind: which file holds the weights, which the options, which the vocabulary.

Files are told by what is in them. Weights go by many names (`model.hdf5`, `lm_weights.hdf5`,
`elmo_2x4096..._weights.hdf5`) and beside them lie other HDF5 files (softmax weights, cached word vectors, outputs of
a model), so a name says little.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from polyseme.base.errors import FormatError
from polyseme.base.files import read_bytes, read_json, telling
from polyseme.formats import hdf5

_LARGEST_OPTIONS = 1 << 20


@dataclass(frozen=True)
class Hdf5Files:
    """The HDF5 files of a folder by what they hold; the rest (outputs of models, say) is left out."""

    weights: list[Path] = field(default_factory=list)
    softmax: list[Path] = field(default_factory=list)
    token_embeddings: list[Path] = field(default_factory=list)


def files(folder: Path) -> list[Path]:
    """The visible files of a folder, by name."""
    with telling(folder, "read"):
        return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def hdf5_files(folder: Path) -> Hdf5Files:
    """Sort the HDF5 files of a folder."""
    found = Hdf5Files()
    for path in files(folder):
        if hdf5.is_hdf5(path):
            kind = hdf5_kind(path)
            if kind is not None:
                getattr(found, kind).append(path)
    return found


def hdf5_kind(path: Path) -> str | None:
    """`weights`, `softmax` or `token_embeddings`; None for an HDF5 file that is no part of an ELMo."""
    names = hdf5.shapes(path).keys()
    if any(name.startswith(("RNN", "CNN", "char_embed")) for name in names):
        return "weights"
    if "softmax/W" in names:
        return "softmax"
    return "token_embeddings" if set(names) == {"embedding"} else None


def options_file(folder: Path) -> Path:
    """The one JSON file of a folder that has ELMo options."""
    found, broken = [], []
    for path in files(folder):
        if path.suffix != ".json" or path.stat().st_size > _LARGEST_OPTIONS:
            continue
        try:
            values = json.loads(read_bytes(path))
        except (ValueError, RecursionError):
            broken.append(path)
            continue
        if isinstance(values, dict) and "lstm" in values:
            found.append(path)
    if not found and broken:
        read_json(broken[0])  # says what is wrong with it
    if not found:
        raise FormatError(folder, f"holds no options, a JSON file with the key lstm (found: {listed(files(folder))})")
    return only(found, "options")


def vocabulary_file(folder: Path) -> Path | None:
    """The vocabulary of a folder: a text file, plain or gzip, with "vocab" in its name."""
    found = [path for path in files(folder) if "vocab" in path.name.lower() and path.name.endswith((".txt", ".txt.gz"))]
    return only(found, "vocabulary") if found else None


def only(paths: list[Path], what: str) -> Path:
    """The one path of a list, or an error that lists all."""
    if len(paths) > 1:
        raise FormatError(
            paths[0].parent,
            f"holds {len(paths)} files of {what}: {listed(paths)}; expected one, or name it in the call",
        )
    return paths[0]


def listed(paths: Iterable[Path]) -> str:
    """Some names, for people."""
    names = [path.name for path in paths]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "") or "nothing"
