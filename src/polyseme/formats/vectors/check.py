"""Does a model still give the vectors that it gave? Against some kept beside its weights, or against anybody's file.

Reference vectors are kept in `verify.safetensors` in the model's folder: all layers of a few sentences of ours in
float32, with the sentences and their words in the file's metadata. They are taken by the model's own start state on the
processor.
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

import h5py
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import polyseme
from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import HDF5, ZIP, atomic, starts_with, wrap_os_errors
from polyseme.encoders.base import Encoder
from polyseme.encoders.folder import REFERENCE
from polyseme.formats.vectors.store import EmbedConfig, embed_rows

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


# what h5py and NumPy raise at a damaged array, or at one of objects
_DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Check:
    """How far a model is from stored vectors."""

    sentences: int
    words: int
    largest: float
    """Largest absolute difference of any number."""
    place: str
    """Where it is."""
    resplit: tuple[int, ...] = ()
    """Sentences that the model's splitter now splits in another way."""


def write_reference(model: Encoder, folder: str | Path) -> Path:
    """Keep vectors of our sentences beside a model's weights."""
    texts = {text: model.words(text) for text in SENTENCES}
    kept = {text: words for text, words in texts.items() if _takes(model, words)}
    arrays = {str(i): array for i, array in enumerate(model.embed(list(kept.values())))}
    metadata = {
        "sentences": json.dumps(list(kept)),
        "words": json.dumps(list(kept.values())),
        "polyseme_version": polyseme.__version__,
    }
    path = Path(folder) / REFERENCE
    with atomic(path) as part:
        try:
            save_file(arrays, part, metadata=metadata)
        except SafetensorError as error:  # its voice for a full disk
            raise PolysemeError(f"cannot write {path}: {error}") from error
        part.chmod(0o644)  # safetensors lets nobody but the owner read
    return path


def _takes(model: Encoder, words: list[str]) -> bool:
    """A model over a closed list of words refuses all others; those sentences are left out."""
    try:
        model.embed([words], layers=0)
    except PolysemeError:
        return False
    return True


def check_reference(model: Encoder, folder: str | Path) -> Check:
    """Compare a model with the vectors kept in its folder."""
    path = Path(folder) / REFERENCE
    if not path.exists():
        raise PolysemeError(f"{folder} holds no reference vectors ({REFERENCE}): `polyseme verify --write` keeps some")
    try:
        with wrap_os_errors(path, "read"):
            path.open("rb").close()  # safetensors says of a file that may not be read that it is not there
        with wrap_os_errors(path, "read"), safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            words: list[list[str]] = json.loads(metadata["words"])
            sentences: list[str] = json.loads(metadata["sentences"])
            stored = [file.get_tensor(str(i)) for i in range(len(words))]
    except (SafetensorError, KeyError, ValueError) as error:
        raise FormatError(path, f"is no file of reference vectors ({error})") from error
    largest = _Largest()
    for number, (array, given) in enumerate(zip(model.embed(words), stored, strict=True)):
        largest.see(f"sentence {number}", array, given, path)
    now = tuple(i for i, text in enumerate(sentences) if model.words(text) != words[i])
    return Check(len(words), sum(map(len, words)), largest.value, largest.place, now)


def check_file(model: Encoder, lines: Iterable[str], vectors: str | Path, settings: EmbedConfig) -> Check:
    """Compare a model with a file of vectors (HDF5 as bilm-tf wrote it, or npz) of these lines."""
    largest = _Largest()
    seen = words = 0
    with open_vectors(vectors) as stored:
        for rows in embed_rows(model, lines, settings):
            for row in rows:
                given = stored(row.line)
                if given is None:
                    raise FormatError(vectors, f"holds no vectors for line {row.line} (counted from 0)")
                largest.see(f"line {row.line}", row.vectors, given, vectors)
                words += len(row.words)
            seen += len(rows)
        if not seen:
            raise PolysemeError(f"there are no lines to compare with {vectors}")
        if stored(seen) is not None:
            raise FormatError(vectors, f"holds vectors of more lines than the {seen} of the input: give all of them")
    return Check(seen, words, largest.value, largest.place)


class _Largest:
    """The largest difference seen."""

    def __init__(self) -> None:
        self.value, self.place = 0.0, "nowhere"

    def see(self, name: str, ours: np.ndarray, foreign: np.ndarray, path: str | Path) -> None:
        if foreign.ndim == 2:  # AllenNLP wrote a single layer without its axis
            foreign = foreign[None]
        if ours.shape != foreign.shape:
            raise FormatError(path, f"holds (layers, words, dim) = {foreign.shape} for {name}; the model gives {ours.shape}")
        if ours.size == 0:
            return
        difference = np.abs(ours.astype(np.float64) - foreign.astype(np.float64))
        difference[np.isnan(difference)] = np.inf
        layer, word, _ = np.unravel_index(int(difference.argmax()), difference.shape)
        if difference.max() > self.value:
            self.value, self.place = float(difference.max()), f"{name}, word {word}, layer {layer}"


@contextlib.contextmanager
def open_vectors(path: str | Path) -> Iterator[Callable[[int], np.ndarray | None]]:
    """A function from a line's number to its vectors (None: it has none), for a file of one array a line."""
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
        raise FormatError(path, "is neither HDF5 nor npz with one array a line")


def _array(get: Callable[[str], object], line: int, path: str | Path) -> np.ndarray | None:
    """One line's vectors; whatever is wrong with them is told with the file's name."""
    try:
        found = get(str(line))
    except _DAMAGE as error:
        raise FormatError(path, f"is damaged: line {line} cannot be read ({error})") from error
    if found is None:
        return None
    array = np.asarray(found)
    if array.dtype.kind not in "fiu" or array.ndim not in (2, 3):
        raise FormatError(path, f"holds {array.dtype} of shape {array.shape} for line {line}; expected numbers of 3 dimensions")
    return array


def _largest(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max()) if one.shape == other.shape else math.inf  # NumPy's max passes NaN on


def difference(one: Encoder, other: Encoder) -> float:
    """Largest absolute difference between two models' vectors of our sentences; infinite where one is no number, or where
    they are of other shapes.

    Both read the same in the same order: a word that is remembered from a smaller batch may differ in its last bit on ARM.
    """
    texts = [words for words in map(one.words, SENTENCES) if _takes(one, words) & _takes(other, words)]
    pairs = zip(one.embed(texts), other.embed(texts), strict=True)
    largest = [_largest(a, b) for a, b in pairs if a.size or a.shape != b.shape]
    return math.inf if any(map(math.isnan, largest)) else max(largest, default=0.0)
