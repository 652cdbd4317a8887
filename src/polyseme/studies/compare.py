"""Tasks times encoders times seeds: every cell trained once, side by side, and the table of what each encoder buys.

Cells lie in folders by their names. Stopped and started again, done cells stay done and others go on where they were; a cell
that fails is told at the end with its log, and stops no other.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.studies.cell import CELL, Cell, write_cell
from polyseme.studies.sets import labelled_set
from polyseme.training.signals import StopSignal

Tell = Callable[[str], None]
_WAIT = 0.5  # seconds between two looks at the processes


@dataclass(frozen=True)
class Study:
    """What is compared."""

    out: Path
    sets: tuple[str, ...]
    rows: tuple[str, ...]
    """Encoders joined by `+`; `word2vec` and `elmo` stand for those of the set's language."""
    seeds: tuple[int, ...] = (1, 2, 3)
    vectors: dict[str, str] = field(default_factory=dict)
    """The file or folder of word vectors of each language, for `word2vec`."""
    options: dict[str, Any] = field(default_factory=dict)
    """That differ from the sets' own, for every cell."""
    shares: tuple[float, ...] = (1.0,)
    """Of the training data: several make a curve."""

    def cells(self) -> list[Cell]:
        """All cells, by set, seed and row: the first seed of all rows comes first, so that a first table comes soon."""
        found = []
        for name in self.sets:
            language = labelled_set(name).language
            for seed, share, row in itertools.product(self.seeds, self.shares, self.rows):
                part = [] if share == 1 else [f"share-{share:g}"]
                out = self.out.joinpath("cells", name, row.replace("/", "_"), *part, str(seed))
                options = {**self.options, "share": share}
                found.append(Cell(name, row, self._encoders(row, language), seed, str(out), str(self.out / "layers"), options))
        return found

    def _encoders(self, row: str, language: str) -> str:
        names = []
        for name in row.split("+"):
            if name == "word2vec":
                if language not in self.vectors:
                    raise UsageError(f"word2vec needs vectors for {language!r}: give --vectors {language}=FILE")
                name = str(Path(self.vectors[language]).resolve())
            names.append(language if name == "elmo" else name)
        return "+".join(names)

    def run(self, *, jobs: int = 1, device: str | None = None, tell: Tell = print) -> list[Cell]:
        """Train all cells that are not done, `jobs` at a time; gives them all, or an error that names those that failed.

        Ctrl-C or SIGTERM stops it: the cells under way write a checkpoint, and the same call goes on with them.
        """
        cells = self.cells()
        for name in self.sets:
            labelled_set(name).files()  # what is missing is told before anything is trained
        for cell in cells:
            if cell.done and (changed := cell.changed()):
                told = "; ".join(f"{name}: {how}" for name, how in changed.items())
                tell(f"{_title(cell)}: kept as it was trained ({told}); remove {cell.out} to train it again")
        left = [cell for cell in cells if not cell.done]
        failed: list[Cell] = []
        with StopSignal(patient=False) as stop:
            for number, cell in enumerate(_trained(left, jobs, device, stop), len(cells) - len(left) + 1):
                failed += [] if cell.done else [cell]
                end = _score(cell) if cell.done else f"failed: {_last_line(cell)} (see {Path(cell.out) / 'cell.log'})"
                tell(f"{number} of {len(cells)}: {_title(cell)}  {end}")
        if stop.name is not None:
            raise KeyboardInterrupt
        if failed:
            raise PolysemeError(
                f"{len(failed)} of {len(cells)} cells failed: {', '.join(_title(cell) for cell in failed)}; "
                f"the first log is {Path(failed[0].out) / 'cell.log'}. The same command tries them again"
            )
        return cells


def _trained(cells: Sequence[Cell], jobs: int, device: str | None, stop: StopSignal) -> Iterator[Cell]:
    """Cells as their processes end, `jobs` at a time; after a stop, those under way are asked to end, and waited for."""
    waiting, running = list(cells), list[tuple[Cell, subprocess.Popen[bytes]]]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append((waiting[0], _start(waiting.pop(0), device, jobs)))
            time.sleep(_WAIT)
            if stop.name is not None:
                break
            ended = [pair for pair in running if pair[1].poll() is not None]
            running = [pair for pair in running if pair not in ended]
            yield from (cell for cell, _ in ended)
    finally:
        for _, process in running:
            process.terminate()
        for _, process in running:
            process.wait()


def _start(cell: Cell, device: str | None, jobs: int) -> subprocess.Popen[bytes]:
    """A process that trains a cell, as one of some jobs; what it says goes into the cell's log."""
    folder = Path(cell.out)
    write_cell(cell, folder / CELL)
    command = [sys.executable, "-m", "polyseme.studies.cell", str(folder / CELL), *([device] if device else [])]
    threads = {} if jobs == 1 else {"OMP_NUM_THREADS": str(max(1, _cores() // jobs))}  # not all cores for each
    with (folder / "cell.log").open("ab") as log:
        return subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env={**threads, **os.environ}
        )


def _cores() -> int:
    """Cores that this process may use; a shared machine has more."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _last_line(cell: Cell) -> str:
    """What a cell said last: of one that failed, why."""
    lines = Path(cell.out, "cell.log").read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "without a word")


def _title(cell: Cell) -> str:
    share = "" if cell.share == 1 else f" {cell.share:.0%} of the data"
    return f"{cell.set} {cell.row}{share} seed {cell.seed}"


def _score(cell: Cell) -> str:
    result = cell.result or {}
    scores = {name: values[result["main"]] for name, values in result.get("scores", {}).items()}
    return ", ".join(f"{name} {value:.4f}" for name, value in scores.items()) + f"  ({result.get('seconds', 0):,.0f} s)"


def by_row(cells: Sequence[Cell]) -> dict[tuple[str, float, str], list[Cell]]:
    """Done cells by set, share of the training data, and row."""
    found: dict[tuple[str, float, str], list[Cell]] = {}
    for cell in cells:
        if cell.done:
            found.setdefault((cell.set, cell.share, cell.row), []).append(cell)
    return found
