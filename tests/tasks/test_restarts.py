"""Restarts of runs that learn nothing: at most two, told, and resumed in the right attempt."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from polyseme.base.run import Run
from polyseme.nn.config import CharactersConfig
from polyseme.tasks.classification import Classification, LabelledText
from polyseme.tasks.classification_config import ClassificationConfig
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.fit import FitResult, Splits, TaskBuilder, fit
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.restarts import Attempts
from polyseme.training.checkpoint import CheckpointManager, stored_settings
from polyseme.training.optim_config import OptimConfig
from polyseme.training.trainer import Trainer

FEATURES = FeaturesConfig(words=TaskWordConfig(dim=4, characters=CharactersConfig(dim=4, filters=((2, 5),), highway_layers=0)))
RATE = 0.01
SAME = [LabelledText("x", label) for label in "aab"]
"""Equal texts: no network can tell their labels apart."""
EASY = [LabelledText(text, label) for text, label in (("good", "a"), ("bad", "b"), ("good", "a"), ("bad", "b"))]


def trained(out: Path, data: list[LabelledText]) -> FitResult:
    fitting = FitConfig(epochs=10, optim=OptimConfig(learning_rate=RATE, weight_decay=0.0))
    builder = TaskBuilder(Classification, ClassificationConfig(hidden_size=4, features=FEATURES, dropout=0.0))
    return fit(builder, Splits(data, data), out, fitting, Run(seed=1))


def result_of(out: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((out / "result.json").read_text(encoding="utf-8"))
    return result


def rate_of(out: Path) -> float:
    return float(stored_settings(out, {})["config"]["optim"]["learning_rate"])


def test_a_run_that_cannot_learn_restarts_twice_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "polyseme.progress"):
        outcome = trained(tmp_path / "out", SAME)
    assert outcome.restarts == 2 and rate_of(tmp_path / "out") == RATE / 16
    result = result_of(tmp_path / "out")
    assert (result["restarts"], result["learned"]) == (2, False)
    assert result["fitting"]["optim"]["learning_rate"] == RATE  # as it was given
    told = [line for line in caplog.messages if "no better than one answer for all examples" in line]
    assert len(told) == 3 and "restarting with learning_rate=0.0025" in told[0] and "learning_rate=0.000625" in told[1]
    assert "has learned nothing" in told[2] and "after 2 restarts" in told[2]
    again = trained(tmp_path / "out", SAME)  # it is finished
    assert again.restarts == 2 and {**result_of(tmp_path / "out"), "seconds": 0} == {**result, "seconds": 0}


def test_a_run_that_learns_has_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "polyseme.progress"):
        outcome = trained(tmp_path / "out", EASY)
    assert outcome.scores["dev"]["accuracy"] == 1.0 and outcome.restarts == 0
    assert (result_of(tmp_path / "out")["restarts"], result_of(tmp_path / "out")["learned"]) == (0, True)
    assert rate_of(tmp_path / "out") == RATE and "restarting" not in caplog.text


@pytest.mark.parametrize("moment", ["before the old checkpoints are removed", "before the new run begins"])
def test_a_kill_between_attempts_resumes_in_the_right_one(moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, calls = tmp_path / "out", list[None]()
    home, name = (CheckpointManager, "remove_all") if "removed" in moment else (Trainer, "fit")
    lasting = getattr(home, name)

    def killed(*arguments: Any, **keywords: Any) -> Any:
        calls.append(None)
        if len(calls) == (1 if home is CheckpointManager else 2):
            raise KeyboardInterrupt
        return lasting(*arguments, **keywords)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(home, name, killed)
        trained(out, SAME)
    attempts = Attempts.read(out / "run")
    assert len(attempts.scores) == 1 and attempts.learning_rate_factor == 0.25
    assert not CheckpointManager(out / "run").steps()
    assert trained(out, SAME).restarts == 2 and rate_of(out) == RATE / 16


def test_runs_of_versions_without_restarts_have_none(tmp_path: Path) -> None:
    trained(tmp_path / "out", SAME)
    (tmp_path / "out" / "run" / "attempts.json").unlink()
    attempts = Attempts.read(tmp_path / "out" / "run")
    assert not attempts.may_restart and attempts.learning_rate_factor == 1
    assert Attempts.read(tmp_path / "new" / "run").may_restart
