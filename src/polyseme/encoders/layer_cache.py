"""A disk cache for the layers of frozen encoders.

A frozen encoder gives the same vectors in every epoch and every run, so a task that trains only the mix of its layers need not
compute them again. All texts, each a sentence or a document of several, follow one another in one file, each word with all its
layers, so that a text is read in one piece. The folder's name is a hash of the encoder and the texts, so other
weights or texts never meet an old cache. It is renamed when complete. Of several processes that want the same layers, one
builds and the others wait; a build that was stopped continues.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import shutil
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.base.array_file import ArrayFile
from polyseme.base.display import count, format_duration
from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import read_json, wrap_os_errors, write_text
from polyseme.base.progress import progress, report, visible
from polyseme.encoders.base import Encoder
from polyseme.encoders.config import CachePrecision
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.text.shards.files import lock_target, temporary_path

_log = logging.getLogger(__name__)
STATES, PROGRESS = "states.npy", "progress.json"
_NAME = "layers-"
_AT_A_TIME = 1 << 14  # words between two records of progress
_TEXTS = 96  # texts between them, if these have at most four times the words: long texts fill batches, too
_MORE_ON_CUDA = 8  # times as many, for several large batches
_REPORT = 30  # seconds between two reports, where there is no progress bar

Document = Sequence[Sequence[str]]
"""Sentences that are read together, often only one."""
_TYPES: dict[CachePrecision, type] = {"fp16": np.float16, "fp32": np.float32}


class LayerCache:
    """All layers of some texts; a row is the number of a text.

    >>> cache = LayerCache.build(encoder, documents, Path("run/layers"))   # doctest: +SKIP
    >>> cache.batch([3, 8]).shape                                       # doctest: +SKIP
    torch.Size([3, 2, 17, 1024])
    """

    def __init__(self, states: ArrayFile | NDArray[np.floating], offsets: NDArray[np.int64]) -> None:
        self._states, self._offsets = states, offsets

    @classmethod
    def build(
        cls, encoder: Encoder, documents: Sequence[Document], folder: Path, *, precision: CachePrecision = "fp16"
    ) -> Self:
        """Open the cache of these texts under `folder`, and build it first where it is missing."""
        offsets = _offsets(documents)
        shape = (int(offsets[-1]), encoder.layers, encoder.dim)
        if not shape[0]:  # nothing to store
            return cls(np.zeros(shape, dtype=_TYPES[precision]), offsets)
        target = folder / f"{_NAME}{_key(encoder, documents, precision)}"
        if _done(target) < len(documents):
            with lock_target(target) as alone:
                if _done(target) < len(documents):  # no other process has built it meanwhile
                    part = target.with_name(f"{target.name}.part") if alone else temporary_path(target)
                    with wrap_os_errors(target, "write"):
                        _fill(encoder, documents, _opened(part, shape, _TYPES[precision]), offsets, part)
                        _rename(part, target, len(documents))
        return cls(_read(target, shape), offsets)

    @classmethod
    def in_memory(cls, encoder: Encoder, documents: Sequence[Document]) -> Self:
        """Compute the layers of these texts now, in full precision, without a file."""
        offsets = _offsets(documents)
        states = np.zeros((int(offsets[-1]), encoder.layers, encoder.dim), dtype=np.float32)
        for begin, rows in _rows(encoder.embed_documents(documents), 0):
            states[begin : begin + len(rows)] = rows
        return cls(states, offsets)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def batch(self, rows: Sequence[int], spans: Sequence[tuple[int, int]] | None = None) -> Tensor:
        """Return the layers of some texts, zero on padding: (layers, batch, words, dim), in the stored precision.

        `spans`: the first word and the number of words of each; None: all.
        """
        spans = [(0, int(self._offsets[row + 1] - self._offsets[row])) for row in rows] if spans is None else spans
        layers, dim = self._states.shape[1:]
        longest = max((length for _, length in spans), default=0)
        out = np.zeros((layers, len(rows), longest, dim), dtype=self._states.dtype)
        for number, (row, (first, length)) in enumerate(zip(rows, spans, strict=True)):
            begin = self._offsets[row] + first
            out[:, number, :length] = self._read(int(begin), length).transpose(1, 0, 2)
        return torch.from_numpy(out)

    def _read(self, begin: int, count: int) -> NDArray[np.generic]:
        """Return the layers of some words, (words, layers, dim)."""
        states = self._states
        return states.read(begin, count) if isinstance(states, ArrayFile) else states[begin : begin + count]


def cache_size(words: int, encoder: Encoder, precision: CachePrecision = "fp16") -> int:
    """Return the bytes of the layers of so many words."""
    return words * encoder.layers * encoder.dim * np.dtype(_TYPES[precision]).itemsize


def remove_caches(folder: Path) -> None:
    """Remove all caches under a folder, for a run that is finished and shares them with no other."""
    for cache in folder.glob(f"{_NAME}*"):
        shutil.rmtree(cache, ignore_errors=True)


def _offsets(documents: Sequence[Document]) -> NDArray[np.int64]:
    """Return where the words of each text begin, and where the last ones end."""
    lengths = [sum(map(len, document)) for document in documents]
    return np.cumsum([0, *lengths], dtype=np.int64)


def _read(target: Path, shape: tuple[int, ...]) -> ArrayFile:
    with wrap_os_errors(target, "read"):
        try:
            states = ArrayFile(target / STATES)
        except ValueError as error:
            raise FormatError(target, f"is damaged ({error}): remove it to compute it again") from error
    if states.shape != shape:
        raise FormatError(target, f"is damaged (of shape {states.shape}, not {shape}): remove it to compute it again")
    return states


def _opened(part: Path, shape: tuple[int, ...], kind: type) -> ArrayFile:
    """Open the file to fill: that of a build that was stopped, or a new one, with its disk space reserved."""
    part.mkdir(parents=True, exist_ok=True)
    path = part / STATES
    if _done(part) and path.exists():
        try:
            return ArrayFile(path, writable=True)
        except ValueError as error:
            _log.warning("%s is damaged (%s): its layers are computed again", path, error)
    (part / PROGRESS).unlink(missing_ok=True)
    try:
        return ArrayFile.create(path, shape, kind)
    except OSError as error:
        path.unlink(missing_ok=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        what = f"the layers of {shape[0]:,} words, {np.prod(shape) * np.dtype(kind).itemsize / 1e9:,.1f} GB"
        raise PolysemeError(
            f"cannot write {what}, to {part}: {error.strerror}; free some space, or choose another folder"
        ) from error


def _fill(encoder: Encoder, documents: Sequence[Document], states: ArrayFile, offsets: NDArray[np.int64], part: Path) -> None:
    done = _done(part)
    if not visible():
        name = Path(encoder.source or encoder.kind).name
        report(f"computing the layers of {count(len(documents) - done, 'different text')} with {name}")
    limit = float(np.finfo(states.dtype).max)  # type: ignore[type-var]
    first, began = done, time.monotonic()
    last = began
    with progress("computing frozen layers", len(documents) - done, "texts") as advance:
        words = _AT_A_TIME * (_MORE_ON_CUDA if encoder.device.type == "cuda" else 1)
        while done < len(documents):
            end = _end_of_block(offsets, done, words)
            for begin, rows in _rows(encoder.embed_documents(documents[done:end], progress=advance), int(offsets[done])):
                states.write(begin, np.clip(rows, -limit, limit))
            states.flush()
            done = end
            write_text(part / PROGRESS, json.dumps({"sentences": done}))
            if not visible() and (now := time.monotonic()) - last >= _REPORT and done < len(documents):
                last, left = now, (now - began) * int(offsets[-1] - offsets[done]) / max(int(offsets[done] - offsets[first]), 1)
                report(f"layers of {done:,} of {len(documents):,} texts, about {format_duration(left)} left")


def _end_of_block(offsets: NDArray[np.int64], done: int, words: int) -> int:
    """Return where a block of texts ends: before so many words, or for long texts after some texts."""
    short, long = (int(np.searchsorted(offsets, offsets[done] + limit, "right")) - 1 for limit in (words, 4 * words))
    return max(short, min(long, done + _TEXTS), done + 1)


def _rows(arrays: Sequence[Sequence[np.ndarray]], begin: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the layers of sentences, (words, layers, dim), each with the number of its first word, from `begin` on."""
    for array in chain.from_iterable(arrays):
        yield begin, array.transpose(1, 0, 2)
        begin += array.shape[1]


def _rename(part: Path, target: Path, count: int) -> None:
    """Rename a complete folder; one that another process has put there first is as good."""
    try:
        part.replace(target)
    except OSError:
        if _done(target) < count:  # incomplete
            shutil.rmtree(target)
            part.replace(target)
        shutil.rmtree(part, ignore_errors=True)


def _done(target: Path) -> int:
    """Return the number of texts in the file."""
    path = target / PROGRESS
    return int(read_json(path)["sentences"]) if path.exists() else 0


def _key(encoder: Encoder, documents: Sequence[Document], precision: CachePrecision) -> str:
    digest = hashlib.sha256(f"{model_fingerprint(encoder)} {precision}\n".encode())
    for document in documents:
        digest.update(json.dumps(document[0] if len(document) == 1 else document).encode() + b"\n")
    return digest.hexdigest()[:16]
