"""One experiment of a comparison: a task on a labelled set with some encoders and a seed, trained in a process of its own.

    python -m polyseme.studies.experiment experiment.json

A process each, so that several can share a GPU, and one that fails or is killed takes no other with it. The folder of the
experiment is that of the trained task; it is done when `result.json` is there, and goes on where it stopped until then.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from polyseme.base.run import Run
from polyseme.encoders import folder as models
from polyseme.encoders.shipped import shipped_folder
from polyseme.studies.finetuning import default_options
from polyseme.studies.hard_links import link_duplicates
from polyseme.studies.sets import labelled_set
from polyseme.studies.train import Files, Job, task_named
from polyseme.tasks.fit import RESULT
from polyseme.text.words import Splitter, get_splitter

EXPERIMENT_FILE = "cell.json"
"""What the experiment is, in its folder."""


@dataclass(frozen=True)
class Experiment:
    """What is trained, and where it goes."""

    set: str
    """The name of the labelled set."""
    row: str
    """What the comparison calls the encoders."""
    encoders: str
    """The encoders themselves: `none`, or names and paths joined by `+`."""
    seed: int
    out: str
    cache: str
    options: dict[str, Any] = field(default_factory=dict)
    """That differ from the set's own."""
    made: dict[str, str] = field(default_factory=dict)
    """Which models the encoders were when the experiment was trained: paths, and what tells a model from one trained anew."""

    @property
    def share(self) -> float:
        """Of the training data."""
        return float(self.options.get("train_fraction", 1.0))

    @property
    def done(self) -> bool:
        """Whether it is trained to the end."""
        return self.result is not None

    @property
    def result(self) -> dict[str, Any] | None:
        """What `result.json` tells; None: not there yet."""
        path = Path(self.out, RESULT)
        found: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        return found

    def changed(self) -> dict[str, str]:
        """What the experiment is to be and was not when it was trained, by its name."""
        path = Path(self.out, EXPERIMENT_FILE)
        if not path.is_file():
            return {}
        then = json.loads(path.read_text(encoding="utf-8"))
        old, new = _plain(then), _plain(asdict(self))
        found = {
            name: f"{old.get(name, 'not given')} then, {new.get(name, 'not given')} now"
            for name in {**old, **new}
            if old.get(name) != new.get(name)
        }
        others = [name for name, was in then.get("made", {}).items() if self.made.get(name, was) != was]
        return found | dict.fromkeys(others, "a model that was trained anew since")

    def train(self, device: str | None = None) -> None:
        """Train it, or go on with it."""
        labelled = labelled_set(self.set)
        files = labelled.files()
        job = Job(
            task_named(labelled.task),
            Files(str(files["train"]), files["dev"], files["test"]),
            self.out,
            self.encoders,
            cut=_splitter(labelled.splitter, labelled.language),
            cache=self.cache,
            options={**default_options(labelled, self.options, self.encoders), **self.options},
        )
        job.train(Run.from_environment(seed=self.seed, device=device))
        if self.done:  # a study has many experiments, and a done one goes on no more
            for checkpoint in Path(self.out, "run").glob("checkpoint-*"):
                checkpoint.unlink()
            link_duplicates(Path(self.out), Path(self.cache).with_name("cells"))


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """The encoders and options of an experiment as they stand in its file."""
    found: dict[str, Any] = json.loads(json.dumps({"encoders": values["encoders"], **values["options"]}))
    return found


def _splitter(name: str | None, language: str) -> Splitter:
    """The same for all encoders: by name, else that of the language's shipped model."""
    if name is not None or language == "en":
        return get_splitter(name or "english")
    folder = shipped_folder(language)
    assert folder is not None
    return models.load(folder).splitter


def main() -> None:
    """Train the experiment that a file describes."""
    path, *device = sys.argv[1:]
    Experiment(**json.loads(Path(path).read_text(encoding="utf-8"))).train(*device)


def write_experiment(experiment: Experiment, path: Path) -> None:
    """The file that `main` reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(experiment), ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
