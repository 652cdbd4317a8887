"""Restarts of a run that learned nothing, with a smaller learning rate.

A network can collapse: it gives one answer to every example, and its loss is that of the prior. A smaller learning rate often
helps. The attempts of a run are in `run/attempts.json`, so that a resumed run knows which one it is in. Runs of versions
without restarts have no such file, and end as they would have.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from polyseme.base.files import read_json, write_text
from polyseme.training.checkpoint import CheckpointManager

MAX_RESTARTS = 2
MIN_STEPS = 10
"""A shorter run has not collapsed: it has hardly begun to learn."""
FACTOR = 0.25
"""Of the learning rate, for each restart."""
_NAME = "attempts.json"


@dataclass(frozen=True)
class Attempts:
    """The attempts before the present one, in the folder of a run."""

    folder: Path
    scores: tuple[float, ...] = ()
    """The dev score of each."""
    failed: bool = False
    """Whether the present one has learned nothing, too."""
    max_restarts: int = MAX_RESTARTS

    @classmethod
    def read(cls, folder: Path) -> Attempts:
        """Return the attempts of a run, none where it is new."""
        path = folder / _NAME
        if not path.is_file():
            return cls(folder, max_restarts=0 if CheckpointManager(folder).steps() else MAX_RESTARTS)
        values = read_json(path)
        attempts = cls(folder, tuple(values["scores"]))
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

    def _begin(self) -> None:
        """Remove the checkpoints of the attempt before."""
        CheckpointManager(self.folder).remove_all()
        self._write()

    def _write(self, *, restarting: bool = False) -> None:
        values = {"scores": self.scores, **({"restarting": True} if restarting else {})}
        write_text(self.folder / _NAME, json.dumps(values) + "\n")
