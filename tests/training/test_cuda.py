"""The same loop on a GPU: bf16 with float32 weights, stops that are found late, resume."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from polyseme.base.run import Run
from polyseme.training.base import Loss
from polyseme.training.fit_loop import DivergedError
from polyseme.training.trainer import Trainer, TrainOutput
from tests.training import toy
from tests.training.compare import log, newest

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


class OnDevice(toy.ToyLearner):
    stop_at = 0

    def loss(self, batch: Tensor) -> Loss:
        if self.losses + 1 == self.stop_at:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().loss(batch.to("cuda"))

    def evaluate(self, dev: list[Tensor]) -> dict[str, float]:
        return super().evaluate([batch.to("cuda") for batch in dev])


def fit(out: Path, *, stop_at: int = 0, broken_at: int | None = None, **changes: Any) -> TrainOutput:
    torch.manual_seed(3)
    learner = OnDevice(broken_at=broken_at)
    learner.stop_at = stop_at
    run = Run.from_environment(seed=1)
    assert (run.device.type, run.precision) == ("cuda", "bf16")
    return Trainer(toy.config(**changes), run).fit(learner, toy.ToyBatches(), toy.dev(), out)


@pytest.mark.parametrize("optimizer", ["adamw", "muon", "adagrad", "asgd"])
def test_stopped_and_resumed(tmp_path: Path, optimizer: str) -> None:
    changes = {"optim": toy.OptimConfig.from_dict({"optimizer": optimizer, "learning_rate": 0.01})}
    fit(tmp_path / "whole", **changes)
    assert fit(tmp_path / "cut", stop_at=17, **changes).steps == 17
    fit(tmp_path / "cut", **changes)
    whole, cut = (load_file(newest(tmp_path / name, "safetensors")) for name in ("whole", "cut"))
    for name, value in whole.items():
        assert value.dtype != torch.bfloat16 or name.startswith("rank")
        torch.testing.assert_close(value, cut[name], rtol=1e-3, atol=1e-4)
    assert [line["step"] for line in log(tmp_path / "whole")] == [line["step"] for line in log(tmp_path / "cut")]


def test_nan_is_found_before_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(DivergedError, match=r"of step 14, is kept.*precision=.fp32"):
        fit(tmp_path, broken_at=16, log_every=1000)


def test_minutes(tmp_path: Path) -> None:
    assert fit(tmp_path, minutes=0.05).ended == "budget"
