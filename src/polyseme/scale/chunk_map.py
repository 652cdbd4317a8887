"""A corpus on an engine: windows of its files are read and split by workers, and results come back in the order of the text.

It is handed to `Corpus`, so that `corpus check`, `corpus vocab`, encoding to shards and all that is made from shards (n-gram
counts, too) run on the engine without knowing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from polyseme.base.errors import PolysemeError
from polyseme.scale.engines.base import Engine
from polyseme.text.files.reader import Chunk
from polyseme.text.files.sources import Source
from polyseme.text.files.windows import Window, read_window, windows

WINDOW = 1 << 24
"""Bytes of text that a worker reads at a time: its results are in memory together."""


@dataclass(frozen=True)
class EngineChunkMap:
    """Applies a function to all chunks of a source, on an engine."""

    engine: Engine
    size: int = WINDOW

    def __call__(self, function: Callable[[str], Any], source: Source) -> Iterator[tuple[Chunk, Any]]:
        """Yield each chunk, without its text, with the result of the function."""
        work = MapWindows(function, source.field, source.errors == "skip")
        waiting: dict[int, list[tuple[Chunk, Any]]] = {}
        due = 0
        for outcome in self.engine.map(work, windows(source, self.size)):
            if outcome.error is not None or outcome.result is None:
                raise PolysemeError(outcome.error or "a window was lost")
            waiting[outcome.number] = outcome.result
            while due in waiting:
                yield from waiting.pop(due)
                due += 1


@dataclass(frozen=True)
class MapWindows:
    """Work that applies a function to the chunks of a window."""

    function: Callable[[str], Any]
    field: str
    skip_bad: bool

    def start(self) -> Callable[[Window], list[tuple[Chunk, Any]]]:
        return self.run

    def run(self, window: Window) -> list[tuple[Chunk, Any]]:
        chunks = read_window(window, field=self.field, skip_bad=self.skip_bad)
        return [(chunk._replace(text=_sign(chunk.text)), self.function(chunk.text)) for chunk in chunks]


def _sign(text: str) -> str:
    """Return one visible character of a text that has any; the text itself stays with the worker."""
    return next((sign for sign in text if not sign.isspace()), "")
