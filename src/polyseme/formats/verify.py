"""Check that a model gives the vectors it should: against reference vectors in its folder, or against any file of vectors.

Reference vectors are in `verify.safetensors` in the model's folder: all layers of a few sentences in float32, with the
sentences and their words in the file's metadata. They are computed on the CPU from the model's own start state.
"""

from __future__ import annotations

import contextlib
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from safetensors import SafetensorError, safe_open

import polyseme
from polyseme.base.display import count, html_table
from polyseme.base.errors import FormatError, PolysemeError, UsageError, arg
from polyseme.base.files import HDF5, ZIP, atomic, replace_path_in_errors, starts_with, wrap_os_errors
from polyseme.base.tensor_files import write_unchanged
from polyseme.encoders.base import Encoder
from polyseme.encoders.embed_config import EmbedConfig
from polyseme.encoders.embedding_stream import embed_lines
from polyseme.encoders.folder import REFERENCE
from polyseme.formats.load import as_encoder, model_path
from polyseme.text.files.lines import file_lines

SENTENCES = (
    "The river had broken its bank twice, so the bank refused the farmer's loan.",
    "Please book a table by the window, and bring the book you can't put down.",
    "河岸边的银行今天不开门。",
    "他在行里干了三年,一直行不通。",
    "Ein Schloss steht am See; das Schloss an der Tür klemmt.",
    "",
    ".",
    f"A word of two hundred letters: {'ab' * 100}",
    "naïve e\u0301te\u0301 \u200d 👩\u200d🔬 ½ №7 <S> </S> <UNK> 3.14 http://example.org/?q=1",
)

# what h5py and NumPy raise for a damaged array, or for one of objects
_DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Verification:
    """How far a model is from stored vectors."""

    sentences: int
    words: int
    largest_difference: float
    """Largest absolute difference of any number."""
    where: str
    split_differently: tuple[int, ...] = ()
    """Sentences that the model's splitter now splits differently."""
    tolerance: float = 1e-5
    written: Path | None = None
    """The file of reference vectors, if they were written and not compared."""

    @property
    def good(self) -> bool:
        """Whether the vectors agree within the tolerance."""
        return self.largest_difference <= self.tolerance and not self.split_differently

    @property
    def problem(self) -> str | None:
        """What differs, in a sentence; None: nothing."""
        if self.largest_difference > self.tolerance:
            largest = f"{self.largest_difference:.2g} ({self.where})"
            return f"the vectors differ by up to {largest}; {arg('tolerance')} is {self.tolerance:.2g}"
        if self.split_differently:
            which = ", ".join(map(str, self.split_differently))
            return f"the splitter splits sentence {which} differently than when the vectors were written"
        return None

    def check(self) -> None:
        """Raise an error that says what differs, if anything does."""
        if self.problem is not None:
            raise PolysemeError(self.problem)

    def to_json(self) -> dict[str, Any]:
        if self.written is not None:
            return {"written": str(self.written)}
        return {
            "good": self.good,
            "sentences": self.sentences,
            "words": self.words,
            "largest_difference": self.largest_difference,
            "place": self.where,
            "tolerance": self.tolerance,
            "split_otherwise": list(self.split_differently),
        }

    def __str__(self) -> str:
        if self.written is not None:
            return f"{self.written}: written"
        size = f"{count(self.sentences, 'sentence')}, {count(self.words, 'word')}"
        largest = f"largest difference {self.largest_difference:.2g} (tolerance {self.tolerance:.2g})"
        return f"{'good' if self.good else 'different'}: {size}, {largest}"

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), str(value)) for name, value in self.to_json().items()]
        return html_table(["check", "result"], rows)


def verify(
    model: str | Path | Encoder,
    vectors: str | Path | None = None,
    *,
    input: str | Path | Iterable[str] | None = None,
    write: bool = False,
    tolerance: float = 1e-5,
    config: EmbedConfig | None = None,
) -> Verification:
    """Compare a model with the reference vectors in its folder, or with a file of vectors of the lines of `input`.

    `config` says how `vectors` (HDF5 as bilm-tf wrote it, or npz) were made. `write=True` writes reference vectors into the
    model's folder instead. `Verification.check` raises if the vectors differ.

    >>> polyseme.verify("my-model").good   # doctest: +SKIP
    True
    """
    if (vectors is None) != (input is None):
        raise UsageError(f"{arg('vectors')} and {arg('input')} go together: the vectors, and the lines they were made from")
    if write and vectors is not None:
        raise UsageError(f"{arg('write', True)} stores vectors of this model: leave {arg('vectors')} out")
    if vectors is None and config is not None and config != EmbedConfig():
        changed = [name for name, value in config.to_dict().items() if value != EmbedConfig().to_dict()[name]]
        verb = "describes" if len(changed) == 1 else "describe"
        raise UsageError(f"{' and '.join(map(arg, changed))} {verb} given vectors: add {arg('vectors')} and {arg('input')}")
    encoder = as_encoder(model)
    if vectors is not None and input is not None:
        lines = file_lines(input) if isinstance(input, str | Path) else input
        return compare_file(encoder, lines, vectors, config or EmbedConfig(), tolerance)
    folder = model_path(encoder)
    if write:
        if not folder.is_dir():
            raise PolysemeError(f"{folder} is a file; reference vectors are stored in a folder: convert the model first")
        return Verification(0, 0, 0.0, "nowhere", written=write_reference(encoder, folder))
    return compare_reference(encoder, folder, tolerance)


def write_reference(model: Encoder, folder: str | Path) -> Path:
    """Write vectors of our sentences beside a model's weights."""
    texts = {text: model.words(text) for text in SENTENCES}
    accepted = {text: words for text, words in texts.items() if _accepts(model, words)}
    arrays = {str(i): torch.from_numpy(array) for i, array in enumerate(model.embed(list(accepted.values())))}
    metadata = {
        "sentences": json.dumps(list(accepted)),
        "words": json.dumps(list(accepted.values())),
        "polyseme_version": polyseme.__version__,
    }
    path = Path(folder) / REFERENCE
    with atomic(path) as part, replace_path_in_errors(path, part):
        write_unchanged(arrays, part, metadata)
    return path


def _accepts(model: Encoder, words: list[str]) -> bool:
    """Whether a model takes all words; one with a closed vocabulary refuses unknown ones."""
    try:
        model.embed([words], layers=0)
    except PolysemeError:
        return False
    return True


def compare_reference(model: Encoder, folder: str | Path, tolerance: float = 1e-5) -> Verification:
    """Compare a model with the reference vectors in its folder."""
    path = Path(folder) / REFERENCE
    if not path.exists():
        raise PolysemeError(f"{folder} has no reference vectors ({REFERENCE}): write them with {arg('write', True)}")
    try:
        with wrap_os_errors(path, "read"):
            path.open("rb").close()  # safetensors reports an unreadable file as missing
        with wrap_os_errors(path, "read"), safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            words: list[list[str]] = json.loads(metadata["words"])
            sentences: list[str] = json.loads(metadata["sentences"])
            stored = [file.get_tensor(str(i)) for i in range(len(words))]
    except (SafetensorError, KeyError, ValueError) as error:
        raise FormatError(path, f"is not a file of reference vectors ({error})") from error
    largest = _LargestDifference()
    for number, (array, reference) in enumerate(zip(model.embed(words), stored, strict=True)):
        largest.update(f"sentence {number}", array, reference, path)
    changed = tuple(i for i, text in enumerate(sentences) if model.words(text) != words[i])
    return Verification(len(words), sum(map(len, words)), largest.value, largest.where, changed, tolerance)


def compare_file(
    model: Encoder, lines: Iterable[str], vectors: str | Path, config: EmbedConfig, tolerance: float = 1e-5
) -> Verification:
    """Compare a model with a file of vectors (HDF5 as bilm-tf wrote it, or npz) of these lines."""
    largest = _LargestDifference()
    seen = words = 0
    with open_vectors(vectors) as stored:
        for rows in embed_lines(model, lines, config):
            for row in rows:
                array = stored(row.line)
                if array is None:
                    raise FormatError(vectors, f"has no vectors for line {row.line} (counted from 0)")
                largest.update(f"line {row.line}", row.stack, array, vectors)
                words += len(row.words)
            seen += len(rows)
        if not seen:
            raise PolysemeError(f"there are no lines to compare with {vectors}")
        if stored(seen) is not None:
            raise FormatError(vectors, f"has vectors of more lines than the {seen} of the input: give all lines")
    return Verification(seen, words, largest.value, largest.where, tolerance=tolerance)


class _LargestDifference:
    """The largest difference so far."""

    def __init__(self) -> None:
        self.value, self.where = 0.0, "nowhere"

    def update(self, name: str, array: np.ndarray, reference: np.ndarray, path: str | Path) -> None:
        """Compare two arrays (layers, words, dim); the reference may lack the axis of a single layer."""
        if reference.ndim == 2:
            reference = reference[None]
        if array.shape != reference.shape:
            raise FormatError(path, f"has (layers, words, dim) = {reference.shape} for {name}; the model gives {array.shape}")
        if array.size == 0:
            return
        difference = np.abs(array.astype(np.float64) - reference.astype(np.float64))
        difference[np.isnan(difference)] = np.inf
        layer, word, _ = np.unravel_index(int(difference.argmax()), difference.shape)
        if difference.max() > self.value:
            self.value, self.where = float(difference.max()), f"{name}, word {word}, layer {layer}"


@contextlib.contextmanager
def open_vectors(path: str | Path) -> Iterator[Callable[[int], np.ndarray | None]]:
    """Open a file with one array per line; yields a function from a line number to its vectors, None if it has none."""
    if starts_with(path, HDF5):
        try:
            file = h5py.File(path, "r")
        except OSError as error:
            raise FormatError(path, f"is a damaged HDF5 file ({error})") from error
        with file:
            yield lambda line: _array(lambda name: file[name][...] if name in file else None, line, path)
    elif starts_with(path, ZIP):
        try:
            arrays = np.load(path, allow_pickle=False)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise FormatError(path, f"is a damaged npz file ({error})") from error
        with arrays:
            yield lambda line: _array(arrays.get, line, path)
    else:
        raise FormatError(path, "is neither HDF5 nor npz with one array per line")


def _array(get: Callable[[str], object], line: int, path: str | Path) -> np.ndarray | None:
    """Return the vectors of one line; every problem names the file."""
    try:
        value = get(str(line))
    except _DAMAGE as error:
        raise FormatError(path, f"is damaged: line {line} cannot be read ({error})") from error
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.ndim not in (2, 3):
        raise FormatError(path, f"has {array.dtype} of shape {array.shape} for line {line}; expected numbers of 3 dimensions")
    return array


def difference(one: Encoder, other: Encoder) -> float:
    """Return the largest absolute difference between two models' vectors of our sentences.

    Infinite if a number is NaN or the shapes differ. Both models embed the same sentences in the same order: a word that is
    cached from a smaller batch may differ in its last bit on ARM.
    """
    texts = [words for words in map(one.words, SENTENCES) if _accepts(one, words) & _accepts(other, words)]
    pairs = zip(one.embed(texts), other.embed(texts), strict=True)
    largest = [_distance(a, b) for a, b in pairs if a.size or a.shape != b.shape]
    return math.inf if any(map(math.isnan, largest)) else max(largest, default=0.0)


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max()) if one.shape == other.shape else math.inf  # NumPy's max passes NaN on
