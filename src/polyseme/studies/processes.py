"""Work in processes of their own, some side by side: one that fails or is killed takes no other with it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from polyseme.base.signals import GracefulStop

Process = subprocess.Popen[bytes]
Job = TypeVar("Job")
_BEGUN = "# begun "
"""Begins the line of a log that tells of a new process."""
_WAIT = 0.5  # seconds between two looks at the processes


def run_parallel(
    pieces: Sequence[Job], start: Callable[[Job], Process], stop: GracefulStop, *, jobs: int = 1
) -> Iterator[tuple[Job, int]]:
    """Pieces of work as their processes end, with their exit codes, `jobs` at a time; after a stop those under way are asked
    to end, and waited for."""
    waiting, running = list(pieces), list[tuple[Job, Process]]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append((waiting[0], start(waiting.pop(0))))
            time.sleep(_WAIT)
            if stop.name is not None:
                break
            codes = [process.poll() for _, process in running]
            ended = [(piece, code) for (piece, _), code in zip(running, codes, strict=True) if code is not None]
            running = [pair for pair, code in zip(running, codes, strict=True) if code is None]
            yield from ended
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
        file.write(f"{_BEGUN}{time.strftime('%Y-%m-%d %H:%M:%S')}: {shlex.join(command)}\n".encode())
        file.flush()
        return subprocess.Popen(
            list(command), stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env={**threads, **os.environ}
        )


def last_line(log: Path) -> str:
    """What the last process of a log said last; nothing, where it said nothing."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
    found = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return "" if found.startswith(_BEGUN) else found


def failure_reason(log: Path, code: int) -> str:
    """Why a process failed: what it said last, and by which signal it was killed."""
    said = last_line(log) or "without a word"
    if code >= 0:
        return said
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    hint = ", as where memory is short" if name == "SIGKILL" else ""
    return f"killed by {name}{hint}; it said last: {said}"


def _cores() -> int:
    """Cores that this process may use; a shared machine has more."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
