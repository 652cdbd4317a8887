"""One experiment of a comparison: a task on a labelled data set with some encoders and a seed, trained in its own process.

    python -m polyseme.studies.experiment cell.json

Each has its own process, so that several can share a GPU and one that fails or is killed stops no other. Its folder is that of
the trained task; the experiment is done when `result.json` is there, and until then the same call resumes it.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from polyseme.base import format1
from polyseme.base.errors import PolysemeError, options_in_messages
from polyseme.base.hashing import hash_bytes
from polyseme.base.run import Run
from polyseme.encoders.folder import COST, shipped_splitter
from polyseme.studies.finetuning import default_options
from polyseme.studies.hard_links import link_duplicates
from polyseme.studies.sets import labelled_set
from polyseme.studies.train import DataFiles, TaskJob
from polyseme.tasks.fit import RESULT
from polyseme.tasks.registry import task_class, task_options
from polyseme.text.words import Splitter, get_splitter

EXPERIMENT_FILE, LOG_FILE = "cell.json", "cell.log"
"""The experiment and its log, in its folder."""
EXPERIMENTS_FOLDER = "cells"
FORMAT = 2
_SMALL_FILES = ("config.json", COST)
_LARGE_FILE = "model.safetensors"
_PREFIX = 1 << 20  # bytes of a file of vectors that are hashed


@dataclass(frozen=True)
class Experiment:
    """What is trained, and where it is written."""

    set: str
    row: str
    """Name of the encoders in the comparison."""
    encoders: str
    """The encoders: `none`, or names and paths joined by `+`."""
    seed: int
    out: str
    cache: str
    options: dict[str, Any] = field(default_factory=dict)
    """Options that differ from those of the data set."""
    made: dict[str, str] = field(default_factory=dict)
    """Fingerprints of the encoders by path, which show whether a model was trained again later."""

    @property
    def train_fraction(self) -> float:
        return float(self.options.get("train_fraction", 1.0))

    @property
    def done(self) -> bool:
        return self.result is not None

    @property
    def result(self) -> dict[str, Any] | None:
        """The content of `result.json`; None if it is not there yet."""
        path = Path(self.out, RESULT)
        result: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        return result

    @property
    def log(self) -> Path:
        return Path(self.out, LOG_FILE)

    @property
    def title(self) -> str:
        fraction = "" if self.train_fraction == 1 else f" {100 * self.train_fraction:g}% of the data"
        return f"{self.set} {self.row}{fraction} seed {self.seed}"

    @property
    def summary(self) -> str:
        """The scores, and the seconds that it took."""
        result = self.result or {}
        scores = {name: values[result["main"]] for name, values in result.get("scores", {}).items()}
        labelled = labelled_set(self.set)
        if labelled.test == labelled.dev:  # there is no other data to test on
            scores.pop("test", None)
        return ", ".join(f"{name} {value:.4f}" for name, value in scores.items()) + f"  ({result.get('seconds', 0):,.0f} s)"

    def changes(self) -> str:
        """Return in words what differs from when it was trained; empty if nothing does, or if it was not."""
        path = Path(self.out, EXPERIMENT_FILE)
        if not path.is_file():
            return ""
        then = json.loads(path.read_text(encoding="utf-8"))
        options = then["options"] if then.get("format") == FORMAT else self._translated(then["options"])
        old, new = (
            {"encoders": then["encoders"], **options},
            {"encoders": self.encoders, **json.loads(json.dumps(self.options))},
        )
        changes = [
            f"{name}: {old.get(name, 'not given')} then, {new.get(name, 'not given')} now"
            for name in {**old, **new}
            if old.get(name) != new.get(name)
        ]
        again = [name for name, was in then.get("made", {}).items() if self.made.get(name, was) != was]
        return "; ".join([*changes, *(f"{name}: trained again since" for name in again)])

    def _translated(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options of format 1 under their names of format 2."""
        kind = task_class(labelled_set(self.set).task)
        for config in (kind.config_type.__name__, "FeaturesConfig", "FitConfig", "ExperimentOptions"):
            options = format1.translate(config, options)
        return options

    def job(self) -> TaskJob:
        """Return what is trained."""
        labelled = labelled_set(self.set)
        files = labelled.files()
        return TaskJob(
            labelled.task,
            DataFiles(str(files["train"]), files["dev"], files["test"]),
            self.out,
            self.encoders,
            splitter=_splitter(labelled.splitter, labelled.language),
            cache=self.cache,
            options={**default_options(labelled, self.options, self.encoders), **self.options},
            refuses=False,
        )

    def check_data(self) -> list[str]:
        """Raise an error for data that cannot be read or trained on, which names options as a comparison takes them.

        Return what is said of scored texts that are in the training data too.
        """
        options = task_options(labelled_set(self.set).task)
        switches = [name for name, option in options.items() if option.hint in (bool, bool | None)]
        with options_in_messages(options, switches):
            job = self.job()
            data = job.read(self.seed)
            return job.leaks(data.train, data.dev, data.test)

    def train(self, device: str | None = None) -> None:
        self.job().train(Run.from_environment(seed=self.seed, device=device))
        if self.done:  # a study has many experiments, and a finished one needs no checkpoint
            for checkpoint in Path(self.out, "run").glob("checkpoint-*"):
                checkpoint.unlink()
            link_duplicates(Path(self.out), Path(self.cache).with_name(EXPERIMENTS_FOLDER))

    def write(self) -> Path:
        """Write the file that `main` reads."""
        path = Path(self.out, EXPERIMENT_FILE)
        path.parent.mkdir(parents=True, exist_ok=True)
        values = {**asdict(self), "format": FORMAT}
        path.write_text(json.dumps(values, ensure_ascii=False, indent=1), encoding="utf-8")
        return path


def _splitter(name: str | None, language: str) -> Splitter:
    """The same splitter for all encoders: by name, else that of the language's shipped model."""
    if name is not None or language == "en":
        return get_splitter(name or "english")
    return shipped_splitter(language)


def quick_fingerprint(path: str | Path) -> str | None:
    """Hash a model folder or a file of vectors, by small files or the beginning and by size.

    None: there is nothing at the path, as with the names of shipped models.
    """
    path = Path(path).expanduser()
    if path.is_file():  # other vectors can have the same size
        with path.open("rb") as file:
            return hash_bytes(file.read(_PREFIX), str(path.stat().st_size).encode())[:12]
    if not path.is_dir():
        return None
    small = [(path / name).read_bytes() if (path / name).is_file() else b"-" for name in _SMALL_FILES]
    large = path / _LARGE_FILE
    return hash_bytes(*small, str(large.stat().st_size if large.is_file() else None).encode())[:12]


def main() -> None:
    """Train the experiment that a file describes."""
    path, *device = sys.argv[1:]
    values = json.loads(Path(path).read_text(encoding="utf-8"))
    values.pop("format", None)
    try:
        Experiment(**values).train(*device)
    except PolysemeError as error:  # the comparison shows the last line of the log
        if os.environ.get("POLYSEME_DEBUG"):
            raise
        sys.exit(" ".join(str(error).split()))


if __name__ == "__main__":
    main()
