"""What a person sees while work goes on: lines about its course, and a progress bar on stderr.

The bar shows lines done, lines per second, and the time left if the total is known; of a work whose parts are not counted it
shows the time. If stderr is not a terminal (a log file, a pipe, a test), there is no bar, and rich is not imported.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]
REPORTS = logging.getLogger("polyseme.progress")
"""Gets the lines of `report` as INFO; the command line shows them on stderr."""


def report(text: str) -> None:
    """Report lines about the course of a work. A notebook shows them; other programs see them if they log INFO."""
    REPORTS.info("%s", text)
    if _in_notebook() and not REPORTS.handlers:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def visible() -> bool:
    """Whether stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextlib.contextmanager
def note_if_slow(text: str, after: float = 5.0) -> Iterator[None]:
    """Say on a terminal what a `with` block does if it takes long: PyTorch is imported, say, on a busy machine."""
    if not visible():
        yield
        return
    timer = threading.Timer(after, lambda: sys.stderr.write(f"{text}\n"))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def progress(title: str, total: int | None = None, unit: str | None = "lines") -> Iterator[Advance]:
    """Show a bar during a `with` block; call what it yields with the number of lines just done.

    `unit=None`: nothing is counted.

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

    count = "{task.completed:,.0f}" + ("/{task.total:,.0f} " if total is not None else " ") + str(unit)
    time = TimeElapsedColumn() if total is None else TimeRemainingColumn()
    counted = () if unit is None else (TextColumn(count), Speed())
    columns = (TextColumn("{task.description}"), BarColumn(), *counted, time)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)
