"""The files of a bilm-tf folder: which one has the weights, the options, the vocabulary.

Files are recognized by content. Weights have many names (`model.hdf5`, `lm_weights.hdf5`, `elmo_2x4096..._weights.hdf5`), and
the folder may have other HDF5 files (softmax weights, cached word vectors, outputs of a model), so a name says little.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError, PolysemeError, arg
from polyseme.base.files import read_bytes, read_json, wrap_os_errors
from polyseme.formats import hdf5, tf_checkpoint

log = logging.getLogger(__name__)
_MAX_JSON = 1 << 20  # bytes; options have a few hundred
# a file with any of them has the weights of an ELMo, perhaps incomplete
_WEIGHT_NAMES = ("RNN", "RNN_0", "RNN_1", "CNN", "char_embed")


@dataclass(frozen=True)
class Hdf5Files:
    """The HDF5 files of a folder by content; others (outputs of models) are left out."""

    weights: list[Path] = field(default_factory=list)
    softmax: list[Path] = field(default_factory=list)
    token_embeddings: list[Path] = field(default_factory=list)


def files(folder: Path) -> list[Path]:
    """Return the visible files of a folder, sorted by name."""
    with wrap_os_errors(folder, "read"):
        return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def hdf5_files(folder: Path, *ignored: type[Exception]) -> Hdf5Files:
    """Find the HDF5 files of a folder; those that raise an ignored error are left out."""
    found = Hdf5Files()
    for path in files(folder):
        with contextlib.suppress(*ignored):
            if hdf5.is_hdf5(path) and (kind := hdf5_content(path)) is not None:
                getattr(found, kind).append(path)
    return found


def softmax_beside(weights: Path) -> Hdf5Files:
    """Find the output layer beside a weights file, if it can only belong to these weights.

    The user named one file, and its folder may be a folder of downloads, so other files need not belong to it.
    """
    found = hdf5_files(weights.parent, PolysemeError)  # problems of other files do not matter here
    if len(found.weights) == len(found.softmax) == 1:
        return Hdf5Files(softmax=found.softmax)
    if found.softmax:
        names = join_names(path.name for path in found.softmax)
        log.warning("%s: ignored %s, which may belong to other weights in the folder", weights.name, names)
    return Hdf5Files()


def checkpoint_of(name: str | Path) -> Path | None:
    """Return the index of a TensorFlow checkpoint by its name (model.ckpt-1000) or another of its files; None: it is none."""
    path = Path(name).expanduser()
    if path.is_dir() or path.suffix == tf_checkpoint.INDEX:
        return None
    base = re.sub(r"\.(?:data-\d+-of-\d+|meta)\Z", "", path.name)
    index = path.with_name(base + tf_checkpoint.INDEX)
    return index if index.is_file() and (base != path.name or not path.exists()) else None


def latest_checkpoint(folder: Path) -> Path | None:
    """Return the index of the checkpoint that a folder's file `checkpoint` names, else of that with the largest number."""
    found = [path for path in files(folder) if tf_checkpoint.is_checkpoint(path)]
    if not found:
        return None
    note = folder / "checkpoint"
    named = (
        re.search(rb'^model_checkpoint_path:\s*"([^"]*)"', read_bytes(note, limit=_MAX_JSON), re.M) if note.is_file() else None
    )
    base = re.split(r"[/\\]", named[1].decode("utf-8", "replace"))[-1] + tf_checkpoint.INDEX if named else None
    numbers = {path: int(match[1]) if (match := re.search(r"(\d+)\.index\Z", path.name)) else -1 for path in found}
    latest = next((path for path in found if path.name == base), max(found, key=numbers.__getitem__))
    if len(found) > 1:
        log.warning("%s has %d checkpoints: read %s", folder, len(found), latest.name)
    return latest


def hdf5_content(path: Path) -> str | None:
    """Return `weights`, `softmax` or `token_embeddings`; None for an HDF5 file that does not belong to an ELMo."""
    found, entries = hdf5.top(path, *_WEIGHT_NAMES, "softmax/W", "embedding")
    if set(found) & set(_WEIGHT_NAMES):
        return "weights"
    if "softmax/W" in found:
        return "softmax"
    return "token_embeddings" if found and entries == 1 else None


def json_object(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a small file; None if it has something else."""
    try:
        values = json.loads(read_bytes(path, limit=_MAX_JSON))
    except (ValueError, RecursionError, FormatError):
        return None
    return values if isinstance(values, dict) else None


def is_transformers(folder: Path) -> bool:
    """Whether a folder has a model of the transformers library."""
    path = folder / "config.json"
    return path.is_file() and bool({"model_type", "architectures"} & (json_object(path) or {}).keys())


def is_options(path: Path) -> bool:
    """Whether a file has ELMo options, whatever its name."""
    return "lstm" in (json_object(path) or {})


def options_file(folder: Path) -> Path:
    """Return the one JSON file of a folder that has ELMo options."""
    candidates = [path for path in files(folder) if path.suffix == ".json"]
    found = [path for path in candidates if is_options(path)]
    if not found:
        for path in candidates:
            if "options" in path.name:
                read_json(path)  # reports what is wrong with it
        names = join_names(path.name for path in files(folder))
        what = "has no options, a JSON file with the key lstm"
        raise FormatError(folder, f"{what} (found: {names}): give it with {arg('options')}")
    return single(found, "options")


def vocabulary_file(folder: Path) -> Path | None:
    """Return the vocabulary of a folder: a text file, plain or gzip, with "vocab" in its name."""
    found = [path for path in files(folder) if "vocab" in path.name.lower() and path.name.endswith((".txt", ".txt.gz"))]
    return single(found, "vocabulary") if found else None


def single(paths: list[Path], what: str) -> Path:
    """Return the one path of a list; raise an error that lists all if there are several."""
    if len(paths) > 1:
        names = join_names(path.name for path in paths)
        how = "give one of them, unpacked if they are in an archive"
        raise FormatError(paths[0].parent, f"has {len(paths)} files of {what} ({names}): {how}")
    return paths[0]


def join_names(names: Iterable[str]) -> str:
    """Join at most eight names for a message."""
    known = list(names)
    return ", ".join(known[:8]) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
