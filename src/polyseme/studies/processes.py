"""Work in separate processes, several in parallel: one that fails or is killed stops no other."""

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
from polyseme.text.files.parallel_map import cpu_count

Process = subprocess.Popen[bytes]
Job = TypeVar("Job")
_BEGUN = "# begun "
"""Begins the line of a log for a new process."""
_POLL_SECONDS = 0.5


def run_parallel(
    queue: Sequence[Job], start: Callable[[Job], Process], stop: GracefulStop, *, jobs: int = 1
) -> Iterator[tuple[Job, int]]:
    """Run jobs, `jobs` at a time, and yield each with its exit code as it ends; after a stop, end the running ones and wait."""
    waiting, running = list(queue), list[tuple[Job, Process]]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append((waiting[0], start(waiting.pop(0))))
            time.sleep(_POLL_SECONDS)
            if stop.name is not None:
                break
            codes = [process.poll() for _, process in running]
            ended = [(job, code) for (job, _), code in zip(running, codes, strict=True) if code is not None]
            running = [pair for pair, code in zip(running, codes, strict=True) if code is None]
            yield from ended
    finally:
        for _, process in running:
            process.terminate()
        for _, process in running:
            process.wait()


def start_process(command: Sequence[str], log: Path, *, jobs: int = 1) -> Process:
    """Start a command as one of some parallel jobs, with its part of the cores; append its output to the log."""
    threads = {} if jobs == 1 else {"OMP_NUM_THREADS": str(max(1, cpu_count() // jobs))}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        file.write(f"{_BEGUN}{time.strftime('%Y-%m-%d %H:%M:%S')}: {shlex.join(command)}\n".encode())
        file.flush()
        return subprocess.Popen(
            list(command), stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env={**threads, **os.environ}
        )


def last_line(log: Path) -> str:
    """Return the last line that the last process of a log wrote; empty if it wrote nothing."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
    line = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return "" if line.startswith(_BEGUN) else line


def failure_reason(log: Path, code: int) -> str:
    """Return why a process failed: its last line, and the signal that killed it."""
    last = last_line(log) or "no output"
    if code >= 0:
        return last
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    hint = ", perhaps because memory ran out" if name == "SIGKILL" else ""
    return f"killed by {name}{hint}; last line: {last}"
