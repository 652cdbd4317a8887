"""Restarts of a run that learned nothing, with a smaller learning rate.

A network can collapse: it gives one answer to every example, and its loss is that of the prior. A smaller learning rate often
helps. The attempts of a run are in `run/attempts.json`, so that a resumed run knows which one it is in.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from polyseme.base.files import read_json, write_text
from polyseme.training.checkpoint import CheckpointManager

MAX_RESTARTS = 2
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

    @classmethod
    def read(cls, folder: Path) -> Attempts:
        """Return the attempts of a run, none where it is new."""
        path = folder / _NAME
        return cls(folder, tuple(read_json(path)["scores"])) if path.is_file() else cls(folder)

    @property
    def learning_rate_factor(self) -> float:
        """Of the present attempt."""
        return float(FACTOR ** len(self.scores))

    @property
    def may_restart(self) -> bool:
        return len(self.scores) < MAX_RESTARTS

    def restart(self, score: float) -> Attempts:
        """Record a failed attempt and remove its checkpoints; return the attempts with it."""
        after = Attempts(self.folder, (*self.scores, score))
        write_text(self.folder / _NAME, json.dumps({"scores": after.scores}) + "\n")
        CheckpointManager(self.folder).remove_all()
        return after
