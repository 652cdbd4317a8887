"""Work in processes of their own, some side by side: one that fails or is killed takes no other with it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from polyseme.training.signals import StopSignal

Process = subprocess.Popen[bytes]
Piece = TypeVar("Piece")
_WAIT = 0.5  # seconds between two looks at the processes


def side_by_side(
    pieces: Sequence[Piece], start: Callable[[Piece], Process], stop: StopSignal, *, jobs: int = 1
) -> Iterator[Piece]:
    """Pieces of work as their processes end, `jobs` at a time; after a stop those under way are asked to end, and waited
    for."""
    waiting, running = list(pieces), list[tuple[Piece, Process]]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append((waiting[0], start(waiting.pop(0))))
            time.sleep(_WAIT)
            if stop.name is not None:
                break
            ended = [pair for pair in running if pair[1].poll() is not None]
            running = [pair for pair in running if pair not in ended]
            yield from (piece for piece, _ in ended)
    finally:
        for _, process in running:
            process.terminate()
        for _, process in running:
            process.wait()


def start_process(command: Sequence[str], log: Path, *, jobs: int = 1) -> Process:
    """Start a command as one of some jobs, with its share of the cores; what it says goes to the end of the log."""
    threads = {} if jobs == 1 else {"OMP_NUM_THREADS": str(max(1, _cores() // jobs))}  # not all cores for each
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        return subprocess.Popen(
            list(command), stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env={**threads, **os.environ}
        )


def last_line(log: Path) -> str:
    """What a process said last: of one that failed, why."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "without a word")


def _cores() -> int:
    """Cores that this process may use; a shared machine has more."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
