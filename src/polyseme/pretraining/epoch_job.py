"""Methods that have a loop of their own and go by epochs: gensim's, and that of GloVe.

After each epoch the state is written as a checkpoint like any other (`training/checkpoint`), so a kill loses at most an
epoch, and the same call resumes to the same numbers. The model itself is written at the end, whole or not at all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.base import Encoder
from polyseme.encoders.sentence_vectors import SentenceStatistics
from polyseme.pretraining.card import format_card, run_facts
from polyseme.pretraining.cost import Cost, write_cost
from polyseme.pretraining.job import Job, text_facts
from polyseme.pretraining.result import WordVectorResult
from polyseme.pretraining.sentence_statistics import sample_text
from polyseme.text.shards.shards import Shards
from polyseme.training.checkpoint import Checkpoint, CheckpointManager
from polyseme.training.resume import differences, plain_settings, translate_settings
from polyseme.training.setting_names import listed_changes, option_names


class EpochCheckpoints:
    """The checkpoints of a run, one for each epoch, and its training time."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self._checkpoints = CheckpointManager(folder)
        self._settings = settings
        self._before, self._began = 0.0, time.perf_counter()

    @property
    def seconds(self) -> float:
        """Training time, that of earlier calls included."""
        return self._before + time.perf_counter() - self._began

    def newest(self) -> Checkpoint | None:
        """Return the state to resume from; a run with other settings is an error that names them."""
        self._checkpoints.clean()
        checkpoint = self._checkpoints.latest()
        self._began = time.perf_counter()
        if checkpoint is None:
            return None
        before = checkpoint.values["settings"]
        if checkpoint.format == 1:
            before = translate_settings(before, self._settings)
        if changed := differences(before, plain_settings(self._settings)):
            listed = listed_changes(changed, option_names(self._settings))
            raise PolysemeError(
                f"this folder holds a run with other settings ({listed}): give the old ones to resume it, or choose another "
                "folder"
            )
        self._before = float(checkpoint.values["seconds"])
        return checkpoint

    def write(self, epoch: int, tensors: dict[str, Tensor], values: Mapping[str, Any]) -> None:
        """Write the state after so many epochs."""
        head = {"settings": plain_settings(self._settings), "seconds": self.seconds}
        self._checkpoints.write(Checkpoint(epoch, tensors, {**head, **values}))


class EpochJob(Job):
    """What word2vec, fastText and GloVe share."""

    def encode_text(self) -> Shards:
        if self.run.world_size > 1:
            raise UsageError(
                f"{self.method.name} trains in one process, and this run has {self.run.world_size}: start it without torchrun"
            )
        return super().encode_text()

    def checkpoints(self, shards: Shards) -> EpochCheckpoints:
        """Open the checkpoints of the run."""
        settings = {self.method.name: self.method, "corpus": shards.fingerprint, "seed": self.run.seed}
        return EpochCheckpoints(self.out / "run", settings)

    def write(
        self, model: Encoder, shards: Shards, seconds: float, loss: float | None = None, **facts: Any
    ) -> WordVectorResult:
        """Write the model folder with its card, and return the result; `facts` are for the card."""
        info, method = model.info(), self.method
        result = WordVectorResult(
            out=self.out,
            method=method.name,
            words=shards.total * method.epochs,
            text_words=shards.total,
            seconds=seconds,
            vocabulary_size=int(info["vocabulary"]),
            epochs=method.epochs,
            loss=loss,
        )
        card = {
            **info,
            **text_facts(self.corpus, shards),
            "options": {"method": method.name, **facts, **method.to_dict(), "seed": self.run.seed},
            "loss": None if loss is None else f"{loss:.4f}",
            **run_facts(self.run, seconds),
        }
        model.sentence_statistics = SentenceStatistics.fit(model, sample_text(self.corpus, shards))
        model.save_pretrained(self.out, card=format_card(self.out.resolve().name, card))
        write_cost(self.out, Cost.of(result, parameters=int(info["parameters"]), device=self.run.device.type))
        return result
