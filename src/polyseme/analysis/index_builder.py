"""Turn sentences into the rows of an index, some at a time, so that only the chosen vectors are in memory."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.search import normalised
from polyseme.base.progress import Advance
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Sentence

EMBEDDED = 8192  # words whose layers are in memory at a time: 100 MB for three layers of 1,024 numbers
_LARGEST = float(np.finfo(np.float16).max)
Keep = Callable[[NDArray[np.float16]], None]


class IndexBuilder:
    """Collects the arrays of an index; contextual and static vectors go to `keep_vectors` and `keep_static` as they come.

    `keep_stack` gets all layers of each sentence (layers, words, dim), not scaled.
    A repeated sentence is counted but not embedded again: its vectors would be the same.
    """

    def __init__(
        self, encoder: Encoder, layers: slice, keep_vectors: Keep, keep_static: Keep, keep_stack: Keep | None = None
    ) -> None:
        self._encoder, self._layers = encoder, layers
        self._keep_vectors, self._keep_static, self._keep_stack = keep_vectors, keep_static, keep_stack
        self._numbers: dict[str, int] = {}
        self._counts = array("q")
        self._words = array("I")
        self._norms = array("f")
        self._offsets = array("q", [0])
        self._seen: set[bytes] = set()
        self._types_kept = 0

    def read(self, sentences: Iterable[Sentence], progress: Advance | None = None) -> None:
        """Embed sentences; `progress` gets the number of sentences done."""
        new: list[list[str]] = []
        waiting = done = 0
        for sentence in sentences:
            words = self._encoder.words(sentence)
            done += 1
            if not self._is_new(words):
                continue
            if new and waiting + len(words) > EMBEDDED:
                self._embed(new)
                new, waiting = [], 0
                if progress is not None:
                    progress(done)
                done = 0
            new.append(words)
            waiting += len(words)
        self._embed(new)
        if progress is not None:
            progress(done)

    @property
    def types(self) -> list[str]:
        """The distinct words, in order of first occurrence."""
        return list(self._numbers)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the small arrays of the index, by name."""
        return {
            "norms": np.array(self._norms, dtype="<f4"),
            "words": np.array(self._words, dtype="<u4"),
            "offsets": np.array(self._offsets, dtype="<i8"),
            "counts": np.array(self._counts, dtype="<i8"),
        }

    def _is_new(self, words: list[str]) -> bool:
        """Count the words; return whether the sentence must be embedded."""
        for word in words:
            number = self._numbers.setdefault(word, len(self._numbers))
            if number == len(self._counts):
                self._counts.append(0)
            self._counts[number] += 1
        name = hashlib.blake2b(json.dumps(words).encode(), digest_size=16).digest()
        if not words or name in self._seen:
            return False
        self._seen.add(name)
        return True

    def _embed(self, sentences: list[list[str]]) -> None:
        if not sentences:
            return
        rows: list[NDArray[np.float32]] = []
        static: list[NDArray[np.float32]] = []
        for words, stack in zip(sentences, self._encoder.embed(sentences), strict=True):
            for position, word in enumerate(words):
                number = self._numbers[word]
                self._words.append(number)
                if number == self._types_kept + len(static):  # its first occurrence: types are numbered as they come
                    static.append(stack[0, position])
            self._offsets.append(len(self._words))
            chosen = stack[self._layers].mean(0)
            self._norms.extend(np.linalg.norm(chosen, axis=1).tolist())
            rows.append(normalised(chosen))
            if self._keep_stack is not None:
                self._keep_stack(np.clip(stack, -_LARGEST, _LARGEST).astype(np.float16))
        self._keep_vectors(np.concatenate(rows).astype(np.float16))
        if static:
            self._keep_static(normalised(np.stack(static)).astype(np.float16))
        self._types_kept += len(static)
