"""Restarts of runs that learn nothing: at most two, told, and resumed in the right attempt."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from polyseme.base.run import Run
from polyseme.nn.config import CharactersConfig
from polyseme.tasks import restarts
from polyseme.tasks.classification import Classification, LabelledText
from polyseme.tasks.classification_config import ClassificationConfig
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.fit import FitResult, Splits, TaskBuilder, fit
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.folder import load
from polyseme.tasks.predictions import LabelPrediction
from polyseme.tasks.restarts import Attempts, failure_message, rare_classes
from polyseme.training.checkpoint import CheckpointManager, stored_settings
from polyseme.training.distributed import SingleProcess
from polyseme.training.fit_loop import DivergedError
from polyseme.training.interval_metrics import IntervalMetrics
from polyseme.training.optim_config import OptimConfig
from polyseme.training.trainer import Trainer

FEATURES = FeaturesConfig(words=TaskWordConfig(dim=4, characters=CharactersConfig(dim=4, filters=((2, 5),), highway_layers=0)))
RATE = 0.01
SAME = [LabelledText("x", label) for label in "aab"]
"""Equal texts: no network can tell their labels apart."""
EASY = [LabelledText(text, label) for text, label in (("good", "a"), ("bad", "b"), ("good", "a"), ("bad", "b"))]


def trained(out: Path, data: list[LabelledText], epochs: int = 50, *, accept_changes: bool = False) -> FitResult:
    fitting = FitConfig(epochs=epochs, optim=OptimConfig(learning_rate=RATE, weight_decay=0.0))
    builder = TaskBuilder(Classification, ClassificationConfig(hidden_size=4, features=FEATURES, dropout=0.0))
    return fit(builder, Splits(data, data), out, fitting, Run(seed=1), accept_changes=accept_changes)


@pytest.fixture
def after_twelve_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter attempts: runs of twelve steps restart, too."""
    monkeypatch.setattr(restarts, "MIN_STEPS", 12)


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
    told = [line for line in caplog.messages if "accuracy 66.7 on 3 dev examples is no better than one answer for all" in line]
    assert len(told) == 3 and all(record.levelname == "WARNING" for record in caplog.records if record.message in told)
    assert outcome.report is not None and outcome.report.warning == told[2]
    assert "restarting with learning_rate=0.0025" in told[0] and "learning_rate=0.000625" in told[1]
    assert "has learned nothing" in told[2] and "after 2 restarts" in told[2]
    assert "the likely cause is that the class 'b' has 1 training example, and 1 other fewer than 5: give more" in told[2]
    assert "metric='macro_f1' counts all classes alike" in told[2]
    again = trained(tmp_path / "out", SAME)  # it is finished
    assert again.report is not None and again.report.warning == told[2] and "is trained; nothing to do" in caplog.text
    assert again.restarts == 2 and {**result_of(tmp_path / "out"), "seconds": 0} == {**result, "seconds": 0}


def test_a_run_that_learns_has_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "polyseme.progress"):
        outcome = trained(tmp_path / "out", EASY)
    assert outcome.scores["dev"]["accuracy"] == 1.0 and outcome.restarts == 0
    assert (result_of(tmp_path / "out")["restarts"], result_of(tmp_path / "out")["learned"]) == (0, True)
    assert rate_of(tmp_path / "out") == RATE and "restarting" not in caplog.text


def test_a_kill_before_scoring_leaves_no_result_of_the_run_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained(tmp_path / "out", EASY, epochs=1)
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr("polyseme.tasks.fit._Session.finish", lambda *_: sys.exit("killed"))
        trained(tmp_path / "out", EASY, epochs=2, accept_changes=True)
    assert result_of(tmp_path / "out")["fitting"]["epochs"] == 1  # as it was
    trained(tmp_path / "out", EASY, epochs=2)
    assert result_of(tmp_path / "out")["fitting"]["epochs"] == 2


def test_a_run_that_diverges_restarts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    steps, finite = list[None](), IntervalMetrics.finite

    def diverging_once(metrics: IntervalMetrics, processes: SingleProcess) -> bool:
        steps.append(None)
        return finite(metrics, processes) and len(steps) != 4

    monkeypatch.setattr(IntervalMetrics, "finite", diverging_once)
    outcome = trained(tmp_path / "out", EASY)
    assert outcome.scores["dev"]["accuracy"] == 1.0 and outcome.restarts == 1 and rate_of(tmp_path / "out") == RATE / 4
    assert (result_of(tmp_path / "out")["restarts"], result_of(tmp_path / "out")["learned"]) == (1, True)
    expected = "the loss or its gradient is not finite at step 4: restarting with learning_rate=0.0025"
    assert expected in caplog.text


def test_a_run_that_always_diverges_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IntervalMetrics, "finite", lambda metrics, processes: False)
    with pytest.raises(DivergedError, match=r"not finite at step 1; .*give a learning_rate below 0\.000625"):
        trained(tmp_path / "out", EASY)


@pytest.mark.usefixtures("after_twelve_steps")
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
        trained(out, SAME, epochs=12)
    attempts = Attempts.read(out / "run")
    assert len(attempts.scores) == 1 and attempts.learning_rate_factor == 0.25
    assert not CheckpointManager(out / "run").steps()
    assert trained(out, SAME, epochs=12).restarts == 2 and rate_of(out) == RATE / 16


def test_runs_of_versions_without_restarts_have_none(tmp_path: Path) -> None:
    trained(tmp_path / "out", SAME, epochs=1)
    (tmp_path / "out" / "run" / "attempts.json").unlink()
    attempts = Attempts.read(tmp_path / "out" / "run")
    assert not attempts.may_restart and attempts.learning_rate_factor == 1
    assert Attempts.read(tmp_path / "new" / "run").may_restart


def test_a_short_run_says_why_it_did_not_restart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    outcome = trained(tmp_path / "out", SAME, epochs=4)
    assert outcome.restarts == 0 and result_of(tmp_path / "out")["learned"] is False
    assert "has learned nothing" in caplog.text and "(4 steps are too few to learn from, or to restart)" in caplog.text


@pytest.mark.usefixtures("after_twelve_steps")
def test_if_all_attempts_fail_the_best_of_them_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(self: Classification, examples: Any, outputs: Any) -> float:  # of the networks of an attempt
        return (0.5, 0.7, 0.6)[len(Attempts.read(tmp_path / "out" / "run").scores)]

    monkeypatch.setattr(Classification, "dev_loss", loss)
    saved = list[int]()
    save = Classification.save
    monkeypatch.setattr(Classification, "save", lambda self, folder: (saved.append(1), save(self, folder))[1])
    outcome = trained(tmp_path / "out", SAME, epochs=12)
    assert outcome.restarts == 2 and len(saved) == 4  # each attempt, and the first again
    assert Attempts.read(tmp_path / "out" / "run").kept_step == outcome.result.best_step
    again = trained(tmp_path / "out", SAME, epochs=12)
    assert again.scores == outcome.scores and again.result.best_step == outcome.result.best_step


def test_if_the_last_attempt_diverges_the_best_before_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    out, attempt = tmp_path / "out", lambda: len(Attempts.read(tmp_path / "out" / "run").scores)
    losses, steps, finite = [0.7, 0.5, 0.1], list[None](), IntervalMetrics.finite
    kept = dict[str, torch.Tensor]()

    def loss(self: Classification, examples: Any, outputs: Any) -> float:
        return losses[attempt()]

    def save(self: Classification, folder: Path) -> None:
        if attempt() == 1:
            kept.update({name: value.clone() for name, value in self.state_dict().items()})
        write(self, folder)

    def diverging(metrics: IntervalMetrics, processes: SingleProcess) -> bool:
        steps.extend([None] * (attempt() == 2))
        return finite(metrics, processes) and len(steps) < 4  # after three evaluations, whose networks were saved

    write = Classification.save
    monkeypatch.setattr(Classification, "dev_loss", loss)
    monkeypatch.setattr(Classification, "save", save)
    monkeypatch.setattr(IntervalMetrics, "finite", diverging)
    outcome = trained(out, SAME)
    assert "not finite at step 4: the best network of the attempts before is kept" in caplog.text
    result = result_of(out)
    assert (outcome.restarts, result["restarts"], result["learned"], result["steps"]) == (2, 2, False, 50)
    assert "also after 2 restarts with a smaller learning rate; " in result["warning"]
    found = load(out).state_dict()
    assert kept and all(torch.equal(found[name], value) for name, value in kept.items())
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    again = trained(out, SAME)  # it is finished
    assert again.scores == outcome.scores and again.result.best_step == outcome.result.best_step
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_between_equal_scores_the_loss_decides() -> None:
    task = Classification.build(ClassificationConfig(hidden_size=4, features=FEATURES), EASY)
    sure, unsure = (
        [LabelPrediction(each.label, p, dict.fromkeys("ab", 1 - p) | {each.label: p}) for each in EASY] for p in (0.9, 0.6)
    )
    errors = [task.selection_error(EASY, outputs, task.score(EASY, outputs)) for outputs in (sure, unsure)]
    assert 0 < errors[0] < errors[1] < 1e-6
    wrong = [LabelPrediction("a", 1.0, {"a": 1.0, "b": 0.0}) for _ in EASY]
    assert task.selection_error(EASY, wrong, task.score(EASY, wrong)) > 0.5
    assert all(map(task.is_perfect, errors)) and not task.is_perfect(1 / 10_000) and not task.prefers_later


def test_rare_classes_are_a_cause_of_failure() -> None:
    labels = ["a"] * 90 + ["b"] * 4
    assert "the class 'b' has 4 training examples: give more, or join it" in rare_classes(labels, ["a", "b"], "accuracy")
    assert "macro_f1" not in rare_classes(labels, ["a", "b"], "macro_f1")
    assert rare_classes([*labels, "b", 3, None], ["a", "b"], "accuracy") == ""
    assert "check that labels and texts belong together" in failure_message("f1 0.0", 2, "")


def test_a_run_whose_probabilities_tell_a_rare_class_does_not_restart(tmp_path: Path) -> None:
    data = [LabelledText("x", "a")] * 80 + [LabelledText("y", label) for label in "ab" * 4] + [LabelledText("x", "a")]
    outcome = trained(tmp_path / "out", data)  # of y, half are b
    result = result_of(tmp_path / "out")
    assert (outcome.restarts, result["learned"]) == (0, True)
    assert result["scores"]["dev"]["accuracy"] == 85 / 89
    assert result["warning"].startswith("accuracy is no better than predicting 'a' for every example")
    assert outcome.task.predict(["y"])[0].probabilities["b"] > 5 * outcome.task.predict(["x"])[0].probabilities["b"]
