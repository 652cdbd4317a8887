"""What lies in a folder of bilm-tf's kind: which file holds the weights, which the options, which the vocabulary.

Files are told by what is in them. Weights go by many names (`model.hdf5`, `lm_weights.hdf5`,
`elmo_2x4096..._weights.hdf5`) and beside them lie other HDF5 files (softmax weights, cached word vectors, outputs of
a model), so a name says little.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import read_bytes, read_json, wrap_os_errors
from polyseme.formats import hdf5

log = logging.getLogger(__name__)
_LARGEST = 1 << 20  # bytes; options have a few hundred
_PARTS = ("RNN", "RNN_0", "RNN_1", "CNN", "char_embed")  # any of them makes a file the weights of an ELMo, if a bad one


@dataclass(frozen=True)
class Hdf5Files:
    """The HDF5 files of a folder by what they hold; the rest (outputs of models, say) is left out."""

    weights: list[Path] = field(default_factory=list)
    softmax: list[Path] = field(default_factory=list)
    token_embeddings: list[Path] = field(default_factory=list)


def files(folder: Path) -> list[Path]:
    """The visible files of a folder, by name."""
    with wrap_os_errors(folder, "read"):
        return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def hdf5_files(folder: Path) -> Hdf5Files:
    """Sort the HDF5 files of a folder."""
    found = Hdf5Files()
    for path in files(folder):
        if hdf5.is_hdf5(path):
            kind = hdf5_content(path)
            if kind is not None:
                getattr(found, kind).append(path)
    return found


def beside(weights: Path) -> Hdf5Files:
    """The output layer that lies beside a weights file, where it can only be of these weights.

    The user has named one file, so all others in its folder are taken with care: it may be a folder of downloads.
    """
    found = Hdf5Files()
    for path in files(weights.parent):
        with contextlib.suppress(PolysemeError):  # what is wrong with another file is not asked here
            if hdf5.is_hdf5(path) and (kind := hdf5_content(path)) is not None:
                getattr(found, kind).append(path)
    if len(found.weights) == len(found.softmax) == 1:
        return Hdf5Files(softmax=found.softmax)
    if found.softmax:
        names = join_names(path.name for path in found.softmax)
        log.warning("%s: left out %s, for it may be of other weights in the folder", weights.name, names)
    return Hdf5Files()


def hdf5_content(path: Path) -> str | None:
    """`weights`, `softmax` or `token_embeddings`; None for an HDF5 file that is no part of an ELMo."""
    found, entries = hdf5.top(path, *_PARTS, "softmax/W", "embedding")
    if set(found) & set(_PARTS):
        return "weights"
    if "softmax/W" in found:
        return "softmax"
    return "token_embeddings" if found and entries == 1 else None


def json_object(path: Path) -> dict[str, Any] | None:
    """The JSON object that a small file holds; None where it holds another thing."""
    try:
        values = json.loads(read_bytes(path, most=_LARGEST))
    except (ValueError, RecursionError, FormatError):
        return None
    return values if isinstance(values, dict) else None


def is_options(path: Path) -> bool:
    """Whether a file holds ELMo options, whatever its name."""
    return "lstm" in (json_object(path) or {})


def options_file(folder: Path) -> Path:
    """The one JSON file of a folder that has ELMo options."""
    candidates = [path for path in files(folder) if path.suffix == ".json"]
    found = [path for path in candidates if is_options(path)]
    if not found:
        for path in candidates:
            if "options" in path.name:
                read_json(path)  # says what is wrong with it
        names = join_names(path.name for path in files(folder))
        raise FormatError(
            folder,
            f"holds no options, a JSON file with the key lstm (found: {names}): name it by --options FILE (options= in Python)",
        )
    return only(found, "options")


def vocabulary_file(folder: Path) -> Path | None:
    """The vocabulary of a folder: a text file, plain or gzip, with "vocab" in its name."""
    found = [path for path in files(folder) if "vocab" in path.name.lower() and path.name.endswith((".txt", ".txt.gz"))]
    return only(found, "vocabulary") if found else None


def only(paths: list[Path], what: str) -> Path:
    """The one path of a list, or an error that lists all."""
    if len(paths) > 1:
        names = join_names(path.name for path in paths)
        raise FormatError(
            paths[0].parent,
            f"holds {len(paths)} files of {what} ({names}): name one of them, unpacked where they are in an archive",
        )
    return paths[0]


def join_names(names: Iterable[str]) -> str:
    """Some names, for people."""
    known = list(names)
    return ", ".join(known[:8]) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
