"""Tasks times encoders times seeds: every cell trained once, side by side, and the table of what each encoder buys.

Cells lie in folders by their names. Stopped and started again, done cells stay done and others go on where they were; a cell
that fails is told at the end with its log, and stops no other.
"""

from __future__ import annotations

import dataclasses
import itertools
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.shipped import resolve_path
from polyseme.studies.cell import CELL, Cell, write_cell
from polyseme.studies.identity import identity
from polyseme.studies.options import Use, check_words, holding, mistakes
from polyseme.studies.processes import Process, side_by_side, start_process, why
from polyseme.studies.sets import GROUPS, labelled_set, members
from polyseme.studies.train import listed, named_in, task_named
from polyseme.studies.tuned import FROZEN, TUNED, own_options
from polyseme.tasks.base import Task
from polyseme.training.signals import StopSignal

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Study:
    """What is compared."""

    out: Path
    tasks: tuple[str, ...]
    """Labelled sets and groups of them."""
    rows: tuple[str, ...]
    """Encoders joined by `+`, with `:finetune` behind them where they are not frozen; `word2vec` and `elmo` stand for those
    of the set's language."""
    seeds: tuple[int, ...] = (1, 2, 3)
    vectors: dict[str, str] = field(default_factory=dict)
    """The file or folder of word vectors of each language, for `word2vec`."""
    options: dict[str, Any] = field(default_factory=dict)
    """That differ from the sets' own, for every cell or for some (`polyseme.studies.options`)."""
    shares: tuple[float, ...] = (1.0,)
    """Of the training data: several make a curve."""
    models: dict[str, str] = field(default_factory=dict)
    """Short names of models, for rows."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", Path(self.out).expanduser())  # where the cells' own processes look for it, too

    @property
    def sets(self) -> tuple[str, ...]:
        """The labelled sets, those of groups among them, each once."""
        return tuple(dict.fromkeys(name for task in self.tasks for name in members(task)))

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups whose means are wanted."""
        return tuple(task for task in self.tasks if task in GROUPS)

    def cells(self) -> list[Cell]:
        """All cells, by set, seed and row: the first seed of all rows comes first, so that a first table comes soon."""
        found = []
        for name in self.sets:
            kind, language = _task(name), labelled_set(name).language
            for seed, share, row in itertools.product(self.seeds, self.shares, self.rows):
                part = [] if share == 1 else [f"share-{share:g}"]
                out = self.out.joinpath("cells", name, row.replace("/", "_").replace(":", "-"), *part, str(seed))
                options = {"share": share, **listed(kind, self._options(name, row))}
                encoders = self._encoders(row, language)
                made = {each: known for each in encoders.split("+") if (known := identity(each)) is not None}
                found.append(Cell(name, row, encoders, seed, str(out), str(self.out / "layers"), options, made))
        return found

    def _encoders(self, row: str, language: str) -> str:
        names = []
        for name in row.removesuffix(f":{TUNED}").split("+"):
            if name in self.models:
                name = str(Path(self.models[name]).resolve())
            elif name == "word2vec":
                if language not in self.vectors:
                    raise UsageError(f"word2vec needs vectors for {language!r}: give --vectors {language}=FILE")
                name = str(Path(self.vectors[language]).resolve())
            names.append(language if name == "elmo" else name)
        return "+".join(names)

    def _options(self, name: str, row: str) -> dict[str, Any]:
        """Those of the cells of a set and a row, without the set's own."""
        found = holding(self.options, self._words(name, row))
        return {"mode": TUNED, **found} if row.endswith(f":{TUNED}") else found

    def _words(self, name: str, row: str) -> set[str]:
        """What the cells of a set and a row go by, in options."""
        plain = row.removesuffix(f":{TUNED}")
        return {name, plain, *(each for each in self.groups if name in members(each)), FROZEN if plain == row else TUNED}

    def _held(self) -> set[str]:
        """The options that hold for some cell."""
        cells = [self._words(name, row) for name, row in itertools.product(self.sets, self.rows)]
        return {scoped for scoped in self.options if any(set(scoped.split(":")[:-1]) <= words for words in cells)}

    def without(self, models: Collection[str]) -> Study:
        """The same without the rows that need some models, and the options that hold for those rows alone."""
        needs = {row: set(row.removesuffix(f":{TUNED}").split("+")) for row in self.rows}
        fewer = dataclasses.replace(self, rows=tuple(row for row in self.rows if not needs[row] & set(models)))
        held = fewer._held()
        return dataclasses.replace(fewer, options={name: value for name, value in self.options.items() if name in held})

    def check(self) -> None:
        """Complain about what no cell could be trained with, before any is: names of sets, options and their values."""
        plain = [row.removesuffix(f":{TUNED}") for row in self.rows]
        check_words(self.options, {*self.sets, *self.groups, *plain, TUNED, FROZEN})
        for scoped in self.options:
            if scoped not in self._held():
                raise UsageError(
                    f"--option {scoped} holds for no cell: no set and row go by all the words before the name; take it away, "
                    f"or compare what it is for (the rows are {', '.join(self.rows)})"
                )
            if scoped.rpartition(":")[2] == "share" and self.shares != (1.0,):
                raise UsageError(f"--option {scoped} stands against --shares; give one of them")
        uses = []
        for name, row in itertools.product(self.sets, self.rows):
            labelled, given = labelled_set(name), self._options(name, row)
            own = own_options(labelled, given, self._encoders(row, labelled.language))
            uses.append(Use(name, _task(name), own, given))
        if found := mistakes(uses):
            raise UsageError("; ".join(found))
        places = Counter(cell.out for cell in self.cells())
        if twice := [place for place, count in places.items() if count > 1]:
            raise UsageError(f"two cells would lie in {twice[0]}: give each seed and share once, and rows clearly other names")

    def check_files(self) -> None:
        """Complain about data that is missing, before anything is trained."""
        for name in self.sets:
            labelled_set(name).files()

    def check_models(self) -> None:
        """Complain about models that cells to be trained need and that are missing; those of the hub are fetched."""
        for name in sorted({each for cell in self.cells() if not cell.done for each in named_in(cell.encoders)}):
            resolve_path(name)

    def run(self, *, jobs: int = 1, device: str | None = None, tell: Tell = print) -> list[Cell]:
        """Train all cells that are not done, `jobs` at a time; gives them all, or an error that names those that failed.

        Ctrl-C or SIGTERM stops it: the cells under way write a checkpoint, and the same call goes on with them.
        """
        self.check()
        cells = self.cells()
        self.check_files()
        self.check_models()
        for cell in cells:
            if cell.done and (changed := cell.changed()):
                told = "; ".join(f"{name}: {how}" for name, how in changed.items())
                tell(f"{_title(cell)}: kept as it was trained ({told}); remove {cell.out} to train it again")
        left = [cell for cell in cells if not cell.done]
        for cell in left:
            if changed := cell.changed():  # it could not go on under other options
                told = "; ".join(f"{name}: {how}" for name, how in changed.items())
                tell(f"{_title(cell)}: begun anew ({told})")
                shutil.rmtree(cell.out)
        failed: list[Cell] = []
        with StopSignal(patient=False) as stop:
            ended = side_by_side(left, lambda cell: _start(cell, device, jobs), stop, jobs=jobs)
            for number, (cell, code) in enumerate(ended, len(cells) - len(left) + 1):
                failed += [] if cell.done else [cell]
                end = _score(cell) if cell.done else f"failed: {why(_log(cell), code)} (see {_log(cell)})"
                tell(f"{number} of {len(cells)}: {_title(cell)}  {end}")
        if stop.name is not None:
            raise KeyboardInterrupt
        if failed:
            raise PolysemeError(
                f"{len(failed)} of {len(cells)} cells failed: {', '.join(_title(cell) for cell in failed)}; "
                f"the first log is {_log(failed[0])}. The same command tries them again"
            )
        return cells


def _task(name: str) -> type[Task]:
    return task_named(labelled_set(name).task)


def _start(cell: Cell, device: str | None, jobs: int) -> Process:
    """A process that trains a cell, as one of some jobs; what it says goes into the cell's log."""
    path = Path(cell.out, CELL)
    write_cell(cell, path)
    command = [sys.executable, "-m", "polyseme.studies.cell", str(path), *([device] if device else [])]
    return start_process(command, _log(cell), jobs=jobs)


def _log(cell: Cell) -> Path:
    return Path(cell.out, "cell.log")


def _title(cell: Cell) -> str:
    share = "" if cell.share == 1 else f" {100 * cell.share:g}% of the data"
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
