"""The layers of frozen encoders, computed once and kept on the disk.

A frozen encoder gives the same vectors in every epoch and every run, so a task that learns only the mix of its layers need not
compute them again. All texts, each a sentence or several that are read as one document, lie one after another in one
memory-mapped file, each word with all its layers, so that a text is one piece of the disk. The folder's name is a hash of the
encoder and the texts: other weights or other text never meet an old cache. It gets that name when it is whole. Of processes
that want the same layers at once, one builds and the others wait; a build that was stopped goes on where it was.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import read_json, wrap_os_errors, write_text
from polyseme.base.progress import progress
from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.text.shards.files import lock_target, temporary_path

STATES, PROGRESS = "states.npy", "progress.json"
_AT_A_TIME = 1 << 14  # words, about, between two notes of how far the build is
_MORE_ON_CUDA = 8  # times as many, of which several large batches are made

Document = Sequence[Sequence[str]]
"""Sentences of words that are read together, mostly one."""
Kept = Literal["fp16", "fp32"]
_TYPES: dict[Kept, type] = {"fp16": np.float16, "fp32": np.float32}


class LayerCache:
    """All layers of some texts; a row is the place of a text among them.

    >>> cache = LayerCache.of(encoder, documents, Path("run/layers"))   # doctest: +SKIP
    >>> cache.batch([3, 8]).shape                                       # doctest: +SKIP
    torch.Size([3, 2, 17, 1024])
    """

    def __init__(self, states: NDArray[np.floating], offsets: NDArray[np.int64]) -> None:
        self._states, self._offsets = states, offsets

    @classmethod
    def of(cls, encoder: Encoder, documents: Sequence[Document], folder: Path, *, kept: Kept = "fp16") -> Self:
        """The cache of these texts under `folder`, built where it is not there yet."""
        offsets = _offsets(documents)
        shape = (int(offsets[-1]), encoder.layers, encoder.dim)
        if not shape[0]:  # there is nothing to keep
            return cls(np.zeros(shape, dtype=_TYPES[kept]), offsets)
        place = folder / f"layers-{_key(encoder, documents, kept)}"
        if _done(place) < len(documents):
            with lock_target(place) as alone:
                if _done(place) < len(documents):  # and no other has built it in the meantime
                    part = place.with_name(f"{place.name}.part") if alone else temporary_path(place)
                    with wrap_os_errors(place, "write"):
                        _fill(encoder, documents, _opened(part, shape, _TYPES[kept]), offsets, part)
                        _named(part, place, len(documents))
        return cls(_read(place, shape), offsets)

    @classmethod
    def in_memory(cls, encoder: Encoder, documents: Sequence[Document]) -> Self:
        """The layers of these texts, computed now and kept nowhere else, in full precision."""
        offsets = _offsets(documents)
        states = np.zeros((int(offsets[-1]), encoder.layers, encoder.dim), dtype=np.float32)
        _write(states, offsets, 0, encoder.embed_documents(documents))
        return cls(states, offsets)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def batch(self, rows: Sequence[int], parts: Sequence[tuple[int, int]] | None = None) -> Tensor:
        """The layers of some texts, zero on padding: (layers, batch, words, dim), in the kept precision.

        `parts`: of each its first word and how many are wanted; None: all.
        """
        parts = [(0, int(self._offsets[row + 1] - self._offsets[row])) for row in rows] if parts is None else parts
        layers, dim = self._states.shape[1:]
        longest = max((length for _, length in parts), default=0)
        out = np.zeros((len(rows), longest, layers, dim), dtype=self._states.dtype)
        for place, (row, (first, length)) in enumerate(zip(rows, parts, strict=True)):
            begin = self._offsets[row] + first
            out[place, :length] = self._states[begin : begin + length]
        return torch.from_numpy(out).permute(2, 0, 1, 3)


def _offsets(documents: Sequence[Document]) -> NDArray[np.int64]:
    """Where the words of each text begin, and where the last ones end."""
    lengths = [sum(map(len, document)) for document in documents]
    return np.cumsum([0, *lengths], dtype=np.int64)


def _read(place: Path, shape: tuple[int, ...]) -> np.ndarray:
    with wrap_os_errors(place, "read"):
        try:
            states = np.lib.format.open_memmap(place / STATES, mode="r")
        except ValueError as error:
            raise FormatError(place, f"is damaged ({error}): remove it, and its layers are computed again") from error
    if states.shape != shape:
        raise FormatError(place, f"is damaged (of shape {states.shape}, not {shape}): remove it, and it is computed again")
    return states


def _opened(part: Path, shape: tuple[int, ...], kind: type) -> np.memmap:
    """The file to fill: that of a build that was stopped, or a new one, for which there is room on the disk."""
    part.mkdir(parents=True, exist_ok=True)
    path = part / STATES
    if _done(part) and path.exists():
        return np.lib.format.open_memmap(path, mode="r+")
    (part / PROGRESS).unlink(missing_ok=True)
    states = np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape)
    if hasattr(os, "posix_fallocate"):  # a disk that gets full under mapped memory would kill the process without a word
        try:
            with path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):  # and not a disk that cannot tell
                path.unlink()
                what = f"the layers of {shape[0]:,} words, {states.nbytes / 1e9:,.1f} GB"
                raise PolysemeError(
                    f"cannot write {what}, to {part}: {error.strerror}; make room, or name another place"
                ) from error
    return states


def _fill(encoder: Encoder, documents: Sequence[Document], states: np.memmap, offsets: NDArray[np.int64], part: Path) -> None:
    done = _done(part)
    with progress("computing frozen layers", len(documents) - done, "texts") as advance:
        words = _AT_A_TIME * (_MORE_ON_CUDA if encoder.device.type == "cuda" else 1)
        while done < len(documents):
            end = max(int(np.searchsorted(offsets, offsets[done] + words, "right")) - 1, done + 1)
            _write(states, offsets, done, encoder.embed_documents(documents[done:end], progress=advance))
            states.flush()
            done = end
            write_text(part / PROGRESS, json.dumps({"sentences": done}))


def _write(states: np.ndarray, offsets: NDArray[np.int64], first: int, found: Sequence[Sequence[np.ndarray]]) -> None:
    """Lay the layers of texts down from that of number `first` on; numbers beyond the kept precision become its largest."""
    limit = float(np.finfo(states.dtype).max)
    for begin, sentences in zip(offsets[first:].tolist(), found, strict=False):
        for array in sentences:
            states[begin : begin + array.shape[1]] = np.clip(array, -limit, limit).transpose(1, 0, 2)
            begin += array.shape[1]


def _named(part: Path, place: Path, count: int) -> None:
    """Give a filled folder its name; what another process has put there first is as good."""
    try:
        part.replace(place)
    except OSError:
        if _done(place) < count:  # half of something
            shutil.rmtree(place)
            part.replace(place)
        shutil.rmtree(part, ignore_errors=True)


def _done(place: Path) -> int:
    """Sentences that are in the file."""
    note = place / PROGRESS
    return int(read_json(note)["sentences"]) if note.exists() else 0


def _key(encoder: Encoder, documents: Sequence[Document], kept: Kept) -> str:
    whole = hashlib.sha256(f"{model_fingerprint(encoder)} {kept}\n".encode())
    for document in documents:
        whole.update(json.dumps(document[0] if len(document) == 1 else document).encode() + b"\n")
    return whole.hexdigest()[:16]
