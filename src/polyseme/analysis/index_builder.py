"""Sentences into the rows of an index: embedded some at a time, so that only their chosen vectors are kept."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.search import unit
from polyseme.base.progress import Advance
from polyseme.encoders.base import Encoder, Sentence

EMBEDDED = 8192  # words whose layers stand in memory at a time: 100 MB for three layers of 1,024 numbers
Keep = Callable[[NDArray[np.float16]], None]


class IndexBuilder:
    """All that an index knows but its vectors, which go to `keep_vectors` and `keep_static` as they come.

    A sentence that comes again is counted, and not embedded again: its words' vectors would be the same.
    """

    def __init__(self, encoder: Encoder, layers: slice, keep_vectors: Keep, keep_static: Keep) -> None:
        self._encoder, self._layers = encoder, layers
        self._keep_vectors, self._keep_static = keep_vectors, keep_static
        self._numbers: dict[str, int] = {}
        self._counts = array("q")
        self._words = array("I")
        self._offsets = array("q", [0])
        self._seen: set[bytes] = set()
        self._types_kept = 0

    def read(self, sentences: Iterable[Sentence], progress: Advance | None = None) -> None:
        """Embed sentences; `progress` is told how many."""
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
        """The distinct words, in the order in which they first came."""
        return list(self._numbers)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The small arrays of the index, by name."""
        return {
            "words": np.array(self._words, dtype="<u4"),
            "offsets": np.array(self._offsets, dtype="<i8"),
            "counts": np.array(self._counts, dtype="<i8"),
        }

    def _is_new(self, words: list[str]) -> bool:
        """Count the words; whether they are to be embedded."""
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
        own: list[NDArray[np.float32]] = []
        for words, stack in zip(sentences, self._encoder.embed(sentences), strict=True):
            for position, word in enumerate(words):
                number = self._numbers[word]
                self._words.append(number)
                if number == self._types_kept + len(own):  # the first time, and types are numbered as they come
                    own.append(stack[0, position])
            self._offsets.append(len(self._words))
            rows.append(unit(stack[self._layers].mean(0)))
        self._keep_vectors(np.concatenate(rows).astype(np.float16))
        if own:
            self._keep_static(unit(np.stack(own)).astype(np.float16))
        self._types_kept += len(own)
