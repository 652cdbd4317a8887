"""The layers of frozen encoders, computed once and kept on the disk.

A frozen encoder gives the same vectors in every epoch and every run, so a task that learns only the mix of its layers need not
compute them again. All sentences lie one after another in one memory-mapped file, each word with all its layers, so that a
sentence is one piece of the disk. The folder's name is a hash of the encoder and the sentences: other weights or other text
never meet an old cache. A build that was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.base.files import read_json, telling, write_text
from polyseme.base.progress import progress
from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import model_fingerprint

STATES, PROGRESS = "states.npy", "progress.json"
_AT_A_TIME = 512  # sentences between two notes of how far the build is

Kept = Literal["fp16", "fp32"]
_TYPES: dict[Kept, type] = {"fp16": np.float16, "fp32": np.float32}


class LayerCache:
    """All layers of some sentences; a row is the place of a sentence among them.

    >>> cache = LayerCache.of(encoder, sentences, Path("run/layers"))   # doctest: +SKIP
    >>> cache.batch([3, 8]).shape                                       # doctest: +SKIP
    torch.Size([3, 2, 17, 1024])
    """

    def __init__(self, states: NDArray[np.floating], offsets: NDArray[np.int64]) -> None:
        self._states, self._offsets = states, offsets

    @classmethod
    def of(cls, encoder: Encoder, sentences: Sequence[Sequence[str]], folder: Path, *, kept: Kept = "fp16") -> Self:
        """The cache of these sentences under `folder`, built where it is not there yet."""
        lengths = np.array([len(words) for words in sentences], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        place = folder / f"layers-{_key(encoder, sentences, kept)}"
        with telling(place, "write"):
            place.mkdir(parents=True, exist_ok=True)
            shape = (int(offsets[-1]), encoder.layers, encoder.dim)
            done = _done(place)
            if done is None or not (place / STATES).exists():
                done = 0
                states = np.lib.format.open_memmap(place / STATES, mode="w+", dtype=_TYPES[kept], shape=shape)
            else:
                states = np.lib.format.open_memmap(place / STATES, mode="r+")
            if done < len(sentences):
                _fill(encoder, sentences, states, offsets, done, place)
        return cls(np.lib.format.open_memmap(place / STATES, mode="r") if shape[0] else states, offsets)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def batch(self, rows: Sequence[int]) -> Tensor:
        """The layers of some sentences, zero on padding: (layers, batch, words, dim), in the kept precision."""
        lengths = [int(self._offsets[row + 1] - self._offsets[row]) for row in rows]
        layers, dim = self._states.shape[1:]
        out = np.zeros((len(rows), max(lengths, default=0), layers, dim), dtype=self._states.dtype)
        for place, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            begin = self._offsets[row]
            out[place, :length] = self._states[begin : begin + length]
        return torch.from_numpy(out).permute(2, 0, 1, 3)


def _fill(
    encoder: Encoder,
    sentences: Sequence[Sequence[str]],
    states: np.memmap,
    offsets: NDArray[np.int64],
    done: int,
    place: Path,
) -> None:
    limit = float(np.finfo(states.dtype).max)
    with progress("computing frozen layers", len(sentences) - done, "sentences") as advance:
        for begin in range(done, len(sentences), _AT_A_TIME):
            some = sentences[begin : begin + _AT_A_TIME]
            for row, array in enumerate(encoder.embed(some, progress=advance), start=begin):
                states[offsets[row] : offsets[row + 1]] = np.clip(array, -limit, limit).transpose(1, 0, 2)
            states.flush()
            write_text(place / PROGRESS, json.dumps({"sentences": begin + len(some)}))


def _done(place: Path) -> int | None:
    """Sentences that are in the file; None where there is no cache yet."""
    note = place / PROGRESS
    return int(read_json(note)["sentences"]) if note.exists() else None


def _key(encoder: Encoder, sentences: Sequence[Sequence[str]], kept: Kept) -> str:
    whole = hashlib.sha256(f"{model_fingerprint(encoder)} {kept}\n".encode())
    for words in sentences:
        whole.update(json.dumps(list(words)).encode() + b"\n")
    return whole.hexdigest()[:16]
