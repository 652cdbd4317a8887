"""Methods that are no objective of the one loop, and go by whole epochs: gensim's own loop, GloVe's.

After each epoch the state is a checkpoint like any other (`training/checkpoint`), so a kill loses at most an epoch, and the
same call goes on to the same numbers. The model itself is written at the end, whole or not at all.
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.formatting import format_duration
from polyseme.base.progress import progress
from polyseme.base.run import Run
from polyseme.encoders.base import Encoder
from polyseme.encoders.folder import save
from polyseme.pretraining.card import format_card, machine
from polyseme.pretraining.cost import Cost, write_cost
from polyseme.pretraining.elmo_training import text_facts
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.training.checkpoint import Checkpoint, CheckpointManager, has_checkpoint
from polyseme.training.resume import differences


@dataclass(frozen=True)
class Fitted:
    """What a method gives."""

    model: Encoder
    out: Path
    epochs: int
    words: int
    """Words of the vocabulary."""
    text_words: int
    """Words of the text, which each epoch reads."""
    seconds: float
    loss: float | None = None
    """Of the last epoch, where the method has one."""


def encode_text(corpus: Corpus, run: Run, out: Path) -> Shards:
    """The text as numbers, in the run's folder or where the corpus keeps it; shown as it goes."""
    if run.world_size > 1:
        raise UsageError(f"this method trains in one process, and here are {run.world_size}: start it without torchrun")
    began = has_checkpoint(out)
    with progress("encoding text", unit="words") as advance:
        return Shards.build(corpus, out / "run", advance, only_known=began)


class EpochCheckpoints:
    """The checkpoints of a run, one an epoch, and how long it took so far."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self._checkpoints = CheckpointManager(folder)
        self._settings: dict[str, Any] = json.loads(json.dumps(settings))
        self._before, self._began = 0.0, time.perf_counter()

    @property
    def seconds(self) -> float:
        """Of training, those of the calls before counted."""
        return self._before + time.perf_counter() - self._began

    def newest(self) -> Checkpoint | None:
        """The state to go on from; a run with other settings is an error that names them."""
        self._checkpoints.clean()
        found = self._checkpoints.latest()
        self._began = time.perf_counter()
        if found is None:
            return None
        changed = differences(found.values["settings"], self._settings)
        if changed:
            listed = "; ".join(f"{name}: {how}" for name, how in changed.items())
            raise PolysemeError(
                f"this folder holds a run with other settings ({listed}); give the old ones to go on, or choose another folder"
            )
        self._before = float(found.values["seconds"])
        return found

    def keep(self, epoch: int, tensors: dict[str, Tensor], values: Mapping[str, Any]) -> None:
        """The state after so many epochs."""
        head = {"settings": self._settings, "seconds": self.seconds}
        self._checkpoints.write(Checkpoint(epoch, tensors, {**head, **values}))


def write_model(fitted: Fitted, corpus: Corpus, shards: Shards, run: Run, options: Mapping[str, Any]) -> Fitted:
    """Write the model folder with its card."""
    facts = {
        **fitted.model.info(),
        **text_facts(corpus, shards),
        "options": {**options, "seed": run.seed},
        "loss": None if fitted.loss is None else f"{fitted.loss:.4f}",
        "training_time": format_duration(fitted.seconds),
        "machine": machine(run),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    save(fitted.model, fitted.out, card=format_card(fitted.out.resolve().name, facts))
    cost = Cost(
        method=str(options["method"]),
        seconds=round(fitted.seconds, 3),
        words=fitted.text_words * fitted.epochs,
        text_words=fitted.text_words,
        parameters=int(facts["parameters"]),
        scores={},  # nothing is held out
        device=run.device.type,
    )
    write_cost(fitted.out, cost)
    return fitted
