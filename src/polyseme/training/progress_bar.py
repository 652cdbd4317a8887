"""The progress bar of training, on stderr: loss, perplexity, words per second, epoch, time left.

Only the main process shows it, and only on a terminal; elsewhere rich is not imported.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from polyseme.base.progress import visible


class UpdateBar(Protocol):
    """Takes the steps or words done, the total, and a new line of the log if there is one."""

    def __call__(self, done: int, total: int, line: Mapping[str, Any] | None = None) -> None: ...


def no_bar(done: int, total: int, line: Mapping[str, Any] | None = None) -> None:
    """Show nothing."""


@contextlib.contextmanager
def training_progress_bar(total: int, done: int, *, show: bool) -> Iterator[UpdateBar]:
    """Show a bar during a `with` block; call what it yields after each step."""
    if not show or not visible():
        yield no_bar
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    numbers = (TaskProgressColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(TextColumn("training"), BarColumn(), *numbers, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, completed=done)

        def update(done: int, total: int, line: Mapping[str, Any] | None = None) -> None:
            bar.update(task, completed=done, total=total, description=None if line is None else describe(line))

        yield update


def describe(line: Mapping[str, Any]) -> str:
    """Summarize a line of the log; a sampled loss has no perplexity.

    >>> describe({"loss": 2.0, "words_per_second": 1234.5, "epoch": 0.5})
    'loss 2.0000 · perplexity 7.39 · 1,234 words/s · epoch 0.50'
    """
    if "sampled_loss" in line:
        loss = f"sampled loss {line['sampled_loss']:.4f}"
    else:
        loss = f"loss {line['loss']:.4f} · perplexity {math.exp(min(line['loss'], 700.0)):.2f}"
    return f"{loss} · {line['words_per_second']:,.0f} words/s · epoch {line['epoch']:.2f}"
