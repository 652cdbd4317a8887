"""Rows of a data file that cannot be used: an error that names all of them, or one message with their number.

Real files have a few: a review without a label, a line with a comma too many. They are skipped and counted, unless the user
asks for `strict`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

from polyseme.base.display import count
from polyseme.base.errors import FormatError

_log = logging.getLogger(__name__)
_LINES_SHOWN = 3
_told: ContextVar[set[str] | None] = ContextVar("told", default=None)
T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def each_file_told_once() -> Iterator[None]:
    """Inside, what is skipped in a file is reported once, however often it is read."""
    before = _told.set(set())
    try:
        yield
    finally:
        _told.reset(before)


class BadRows:
    """The bad rows of one file.

    >>> bad = BadRows("a.tsv", strict=True)
    >>> bad.add(3, "without a label", "has no label; fill it")
    >>> bad.add(9, "without a label", "has no label; fill it")
    >>> bad.finish(100)
    Traceback (most recent call last):
    polyseme.base.errors.FormatError: a.tsv:3: has no label; fill it (and 1 more bad row: line 9)
    """

    def __init__(self, path: str | Path, *, strict: bool, unit: str = "row") -> None:
        self.path, self.strict, self.unit = path, strict, unit
        self.errors: list[tuple[int, str]] = []
        """Lines, and what is wrong with each."""
        self.kinds: dict[str, list[int]] = {}
        """Lines of all rows that are skipped, by what they have in common."""

        self.repaired = 0
        """Number of tags that were repaired."""
        self.joined: dict[str, list[int]] = {}
        """Lines of rows whose text was joined, by what it has without quotes that separates columns."""

    def __len__(self) -> int:
        return sum(map(len, self.kinds.values()))

    def add(self, line: int, kind: str, what: str) -> None:
        """Note a bad row: `kind` says what rows of its kind have in common, `what` is the text of an error."""
        self.errors.append((line, what))
        self.skip(line, kind)

    def skip(self, line: int, kind: str) -> None:
        """Note a row that is skipped and no error."""
        self.kinds.setdefault(kind, []).append(line)

    def catch(self, line: int, error: FormatError) -> None:
        """Note a row by the error that it raised, which may name another line of it."""
        named = str(error.path).removeprefix(f"{self.path}:")
        line = int(named) if named.isdecimal() else line
        self.add(line, "that cannot be read", str(error).removeprefix(f"{error.path}: "))

    def read_each(self, items: Iterable[tuple[int, T]], read: Callable[[int, T], R]) -> Iterator[R]:
        """Yield what `read` makes of each item, which begins on the given line; items with a `FormatError` are bad rows."""
        for line, item in items:
            try:
                yield read(line, item)
            except FormatError as error:
                self.catch(line, error)

    def finish(self, kept: int, skipped: int | None = None) -> None:
        """Raise an error if there are errors and `strict`, or if no row is kept; otherwise report what is skipped.

        `skipped`: number of units, such as sentences of several bad rows.
        """
        self.refuse()
        if self.repaired:
            _log.warning("%s: repaired %d tags as the CoNLL scorer reads them: I begins a span", self.path, self.repaired)
        for separator, lines in self.joined.items():
            rows = f"{count(len(lines), self.unit)} ({_lines(lines)})"
            _log.warning("%s: joined the text of %s, which has %r without quotes", self.path, rows, separator)
        if not len(self):
            return
        if not kept:
            left = f"no usable {self.unit} is left"
            raise self._error(f"; {left}") if self.errors else FormatError(self.path, f"{left}: {self._summary()}")
        skipped = len(self) if skipped is None else skipped
        total = f"{skipped:,} of {kept + skipped:,} {self.unit}s"
        first = f"; the first {self.errors[0][1]}" if "that cannot be read" in self.kinds else ""
        message, told = f"{self.path}: skipped {total}: {self._summary()}{first}", _told.get()
        if told is None or message not in told:
            _log.warning("%s", message)
        if told is not None:
            told.add(message)

    def refuse(self) -> None:
        """Raise an error for all bad rows if `strict`."""
        if self.strict and self.errors:
            raise self._error()

    def _error(self, end: str = "") -> FormatError:
        (line, what), *others = sorted(self.errors)
        if others:
            many = f"{len(others):,} more bad {self.unit}{'s' if len(others) > 1 else ''}"
            what += f" (and {many}: {_lines([number for number, _ in others])})"
        return FormatError(f"{self.path}:{line}", what + end)

    def _summary(self) -> str:
        shown = {kind: f" ({_lines(lines)})" if any(lines) else "" for kind, lines in self.kinds.items()}
        return ", ".join(f"{len(lines):,} {kind}{shown[kind]}" for kind, lines in self.kinds.items())


def _lines(numbers: list[int]) -> str:
    shown = ", ".join(map(str, sorted(numbers)[:_LINES_SHOWN]))
    return f"{'line' if len(numbers) == 1 else 'lines'} {shown}{' ...' if len(numbers) > _LINES_SHOWN else ''}"
