"""Restarts of a run that learned nothing, with a smaller learning rate.

A network can collapse: it gives one answer to every example, and its loss is that of the prior. Or it diverges: its loss is no
finite number any more. A smaller learning rate often helps. If no attempt learns anything, the best network of all is kept;
after a stop, the best of those since. The attempts of a run are in `run/attempts.json`, so that a resumed run knows which one
it is in. Runs of versions without restarts have no such file, and end as they would have.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from polyseme.base.display import count
from polyseme.base.errors import arg
from polyseme.base.files import read_json, write_text
from polyseme.training.checkpoint import CheckpointManager
from polyseme.training.trainer import TrainOutput

MAX_RESTARTS = 2
MIN_STEPS = 50
"""A shorter run has not collapsed: it has hardly begun to learn."""
FACTOR = 0.25
"""Of the learning rate, for each restart."""
LEARNABLE_CLASS_EXAMPLES = 5
"""Classes with fewer examples are a likely cause of failure."""
_NAME = "attempts.json"


@dataclass(frozen=True)
class Attempts:
    """The attempts before the present one, in the folder of a run."""

    folder: Path
    scores: tuple[float, ...] = ()
    """The dev score of each; 0: it diverged."""
    kept_step: int | None = None
    """The step of the best network, if all attempts failed and it is from an earlier one."""
    max_restarts: int = MAX_RESTARTS

    @classmethod
    def read(cls, folder: Path) -> Attempts:
        """Return the attempts of a run, none where it is new."""
        path = folder / _NAME
        if not path.is_file():
            return cls(folder, max_restarts=0 if CheckpointManager(folder).steps() else MAX_RESTARTS)
        values = read_json(path)
        attempts = cls(folder, tuple(values["scores"]), values.get("kept_step"))
        if values.get("restarting"):  # a kill came between two attempts
            attempts._begin()
        return attempts

    @property
    def learning_rate_factor(self) -> float:
        """Of the present attempt."""
        return float(FACTOR ** len(self.scores))

    @property
    def may_restart(self) -> bool:
        return len(self.scores) < self.max_restarts

    def start(self) -> None:
        """Note in the folder of a new run that it may restart."""
        if not (self.folder / _NAME).is_file() and not CheckpointManager(self.folder).steps():
            self._write()

    def restart(self, score: float) -> Attempts:
        """Record a failed attempt and remove its checkpoints; return the attempts with it."""
        after = dataclasses.replace(self, scores=(*self.scores, score))
        after._write(restarting=True)
        after._begin()
        return after

    def keep(self, result: TrainOutput) -> Attempts:
        """Record that the network of an earlier attempt is kept."""
        after = dataclasses.replace(self, kept_step=result.best_step)
        after._write()
        return after

    def _begin(self) -> None:
        """Remove the checkpoints of the attempt before."""
        CheckpointManager(self.folder).remove_all()
        self._write()

    def _write(self, *, restarting: bool = False) -> None:
        values = {"scores": self.scores, **({"restarting": True} if restarting else {})}
        values |= {} if self.kept_step is None else {"kept_step": self.kept_step}
        write_text(self.folder / _NAME, json.dumps(values) + "\n")


def no_restart(steps: int, world_size: int) -> str:
    """Return why a run that failed does not restart; empty: it may."""
    if world_size > 1:
        return "runs of several processes do not restart"
    few = f"{count(steps, 'step')} {'is' if steps == 1 else 'are'} too few to learn from, or to restart"
    return few if steps < MIN_STEPS else ""


def no_better(metric: str, score: float, examples: int) -> str:
    """Return that a dev score shows no learning."""
    return f"{metric} {100 * score:.1f} on {count(examples, 'dev example')} is no better than one answer for all"


def restart_message(problem: str, learning_rate: float) -> str:
    """Return that a run restarts, after one with this learning rate."""
    return f"{problem}: restarting with {arg('learning_rate', float(f'{learning_rate * FACTOR:.3g}'))}"


def failure_message(problem: str, restarts: int, reason: str, cause: str = "") -> str:
    """Return that a run has learned nothing, and what to do; `reason`: why it did not restart; `cause`: of the data.

    >>> failure_message("f1 0.0 on 2 dev examples is no better than one answer for all", 0, "4 steps are too few").split(";")[0]
    'the network has learned nothing: f1 0.0 on 2 dev examples is no better than one answer for all (4 steps are too few)'
    """
    tried = f", also after {count(restarts, 'restart')} with a smaller learning rate" if restarts else ""
    tried += f" ({reason})" if reason else ""
    advice = f"give more examples, train longer ({arg('epochs')}), or check that labels and texts belong together"
    if cause:
        advice = f"{cause}; or train longer ({arg('epochs')})" if reason else cause
    return f"the network has learned nothing: {problem}{tried}; {advice}"


def one_class_message(label: str) -> str:
    """Return that accuracy does not show what a network has learned, as nearly all examples have one label."""
    what = f"accuracy is no better than predicting {label!r} for every example, but the probabilities are better than chance"
    return f"{what}: use these, or give {arg('metric', 'macro_f1')}, which counts all classes alike"


def rare_classes(labels: Iterable[object], classes: Iterable[str], metric: str) -> str:
    """Return that classes have too few training examples to be learned, and what to do; empty: they have enough.

    >>> rare_classes(["a"] * 90 + ["b"] * 2, ["a", "b"], "accuracy").split(":")[0]
    "the likely cause is that the class 'b' has 2 training examples"
    """
    known = set(classes)
    counts = Counter(label for label in labels if isinstance(label, str) and label in known)
    rare = [label for label, number in counts.items() if number < LEARNABLE_CLASS_EXAMPLES]
    if not rare:
        return ""
    least = min(rare, key=lambda label: counts[label])
    others = f", and {count(len(rare) - 1, 'other')} fewer than {LEARNABLE_CLASS_EXAMPLES}" if len(rare) > 1 else ""
    advice = f"give more, or join {'it' if len(rare) == 1 else 'them'} with other classes"
    advice += f"; {arg('metric', 'macro_f1')} counts all classes alike" if metric == "accuracy" else ""
    return f"the likely cause is that the class {least!r} has {count(counts[least], 'training example')}{others}: {advice}"
