"""A corpus on an engine: windows of its files are read and split by workers, and results come back in the order of the text.

It is handed to `Corpus`, so that `corpus check`, `corpus vocab`, encoding to shards and the counting of n-grams run on the
engine without knowing it.

Memory is bounded: a worker has one window at a time, and the engine gets so many windows at a time that the results which wait
for an earlier one fit in memory. A large file that cannot be cut (compressed, Parquet) is read here, and its chunks are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from polyseme.base.errors import PolysemeError
from polyseme.scale.engines.base import Engine
from polyseme.text.files.reader import Chunk
from polyseme.text.files.sources import Source
from polyseme.text.files.windows import Window, read_window, windows

WINDOW = 1 << 22
"""Bytes of text that a worker reads at a time: its results are in memory together."""
_GROUP = 1 << 10  # windows that the engine gets at a time
_CHUNKS = 16  # sent to a worker at a time, of a quarter of a megabyte each
_SENT = 16  # windows that some sent chunks count for, since they wait in memory themselves


@dataclass(frozen=True)
class EngineChunkMap:
    """Applies a function to all chunks of a source, or to other tasks, on an engine."""

    engine: Engine
    size: int = WINDOW
    group: int = _GROUP

    def __call__(self, function: Callable[[str], Any], source: Source) -> Iterator[tuple[Chunk, Any]]:
        """Yield each chunk, without its text, with the result of the function."""
        work = MapWindows(function, source.field, source.errors == "skip")
        for tasks in _groups(_tasks(source, self.size), self.group):
            for chunks in self._in_order(work, tasks):
                yield from chunks

    def map(self, function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        """Yield the result of a function for each task, in order."""
        return self._in_order(CallFunction(function), tasks)

    def _in_order(self, work: Any, tasks: Iterable[Any]) -> Iterator[Any]:
        waiting: dict[int, Any] = {}
        due = 0
        for outcome in self.engine.map(work, tasks):
            if outcome.error is not None:
                raise PolysemeError(outcome.error)
            waiting[outcome.number] = outcome.result
            while due in waiting:
                yield waiting.pop(due)
                due += 1


Task = Window | list[Chunk]


def _tasks(source: Source, size: int) -> Iterator[Task]:
    """Yield the windows of a source; in place of one that is too large, its chunks."""
    for window in windows(source, size):
        if window.end is not None or window.file.path.stat().st_size <= size:
            yield window
            continue
        chunks: list[Chunk] = []
        for chunk in read_window(window, field=source.field, skip_bad=source.errors == "skip"):
            chunks.append(chunk)
            if len(chunks) == _CHUNKS:
                yield chunks
                chunks = []
        if chunks:
            yield chunks


def _groups(tasks: Iterator[Task], size: int) -> Iterator[Iterator[Task]]:
    """Yield the tasks in groups, each of which is taken from `tasks` as it is used."""
    ended = False

    def group() -> Iterator[Task]:
        nonlocal ended
        weight = 0
        while weight < size:
            task = next(tasks, None)
            if task is None:
                ended = True
                return
            weight += 1 if isinstance(task, Window) else _SENT
            yield task

    while not ended:
        yield group()


@dataclass(frozen=True)
class MapWindows:
    """Work that applies a function to the chunks of a window."""

    function: Callable[[str], Any]
    field: str
    skip_bad: bool

    def start(self) -> Callable[[Task], list[tuple[Chunk, Any]]]:
        return self.run

    def run(self, task: Task) -> list[tuple[Chunk, Any]]:
        chunks = read_window(task, field=self.field, skip_bad=self.skip_bad) if isinstance(task, Window) else task
        return [(chunk._replace(text=_sign(chunk.text)), self.function(chunk.text)) for chunk in chunks]


@dataclass(frozen=True)
class CallFunction:
    """Work that calls a function."""

    function: Callable[[Any], Any]

    def start(self) -> Callable[[Any], Any]:
        return self.function


def _sign(text: str) -> str:
    """Return one visible character of a text that has any; the text itself stays with the worker."""
    return next((sign for sign in text if not sign.isspace()), "")
