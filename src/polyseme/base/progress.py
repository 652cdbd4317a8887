"""A progress bar on stderr: lines done, lines per second, and the time left if the total is known.

If stderr is not a terminal (a log file, a pipe, a test), nothing is shown and rich is not imported.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]


def visible() -> bool:
    """Whether stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextlib.contextmanager
def progress(title: str, total: int | None = None, unit: str = "lines") -> Iterator[Advance]:
    """Show a bar during a `with` block; call what it yields with the number of lines just done.

    >>> with progress("embedding", total=2) as advance: advance(2)
    """
    if not visible():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    class Speed(ProgressColumn):
        def render(self, task: Task) -> str:
            return f"{task.speed:,.0f} {unit}/s" if task.speed else ""

    count = "{task.completed:,.0f}" + ("/{task.total:,.0f} " if total is not None else " ") + unit
    time = TimeElapsedColumn() if total is None else TimeRemainingColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn(count), Speed(), time)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)
