"""Experiments that run in this process, which has PyTorch loaded, in place of processes of their own."""

from __future__ import annotations

import pytest

from polyseme.base.errors import PolysemeError
from polyseme.studies.experiment import Experiment


class InProcess:
    """In place of a process: trains the experiment at once."""

    def __init__(self, experiment: Experiment, device: str | None, jobs: int) -> None:
        self.code = 0
        experiment.write()
        try:
            experiment.train(device or "cpu")
        except PolysemeError as error:
            experiment.log.write_text(f"{error}\n")
            self.code = 1

    def poll(self) -> int:
        return self.code


def train_in_process(patch: pytest.MonkeyPatch) -> None:
    """Until the patch is undone, a comparison starts no process."""
    patch.setattr("polyseme.studies.compare._start", InProcess)
    patch.setattr("polyseme.studies.processes._POLL_SECONDS", 0.0)
