"""What a run shows while it trains, on stderr: on a terminal one line that changes in place, elsewhere a line an evaluation.

Only the main process shows it. Without a terminal rich is not imported, and the lines are reports (`polyseme.base.progress`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from polyseme.base.progress import report, visible
from polyseme.training.run_status import WIDTH, RunStatus


class Display:
    """Shows nothing."""

    live = False
    """Whether the display changes between evaluations."""

    def stepped(self, status: RunStatus) -> None:
        """Show a step."""

    def evaluated(self, status: RunStatus) -> None:
        """Show an evaluation."""


class Lines(Display):
    """One line an evaluation, and once the expected time and that a score is perfect."""

    def __init__(self) -> None:
        self._told = self._remarked = False

    def stepped(self, status: RunStatus) -> None:
        if not self._told and status.left is not None:
            self._told = True
            if sentence := status.expected():
                report(sentence)

    def evaluated(self, status: RunStatus) -> None:
        self._told = self._told or status.left is not None  # the line says what is left
        report(status.line())
        self._remark(status)

    def _remark(self, status: RunStatus) -> None:
        if not self._remarked and (remark := status.remark()):
            self._remarked = True
            report(remark)


class Bar(Lines):
    """One line that changes in place; the expected time stays above it."""

    live = True

    def evaluated(self, status: RunStatus) -> None:
        """The line that changes shows the score by itself."""
        self._remark(status)


@contextlib.contextmanager
def training_display(status: RunStatus, *, show: bool) -> Iterator[Display]:
    """Show a run during a `with` block; call what it yields after each step and each evaluation."""
    if not show:
        yield Display()
    elif not visible():
        yield Lines()
    else:
        with _live_line(status):
            yield Bar()


def _live_line(status: RunStatus) -> contextlib.AbstractContextManager[Any]:
    """The line of a status, drawn a few times per second by another thread."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)

    def line() -> Text:
        return Text(status.bar(min(console.width, WIDTH)), no_wrap=True, overflow="crop")

    return Live(get_renderable=line, console=console, transient=True, refresh_per_second=4)
