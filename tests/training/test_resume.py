from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from polyseme.base.errors import PolysemeError
from polyseme.base.hashing import hash_json
from polyseme.training import fit_loop
from polyseme.training.base import Loss
from polyseme.training.budget import Timing
from polyseme.training.checkpoint import Checkpoint, CheckpointManager
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig
from polyseme.training.resume import ConfigValues, check_resume_settings, differences, plain_settings, translate_settings
from polyseme.training.step_runner import StepRunner
from polyseme.training.trainer import Trainer, TrainOutput
from tests.training import toy
from tests.training.compare import assert_same_run, log, newest


class Stopped(Exception):
    """The power cut."""


class Stopping(toy.ToyLearner):
    """Fails, or asks itself to stop, at one moment."""

    moment, number, signal = "loss", 0, 0

    def _maybe(self, moment: str) -> None:
        if moment == self.moment:
            self.number -= 1
            if self.number == 0:
                if not self.signal:
                    raise Stopped
                os.kill(os.getpid(), self.signal)

    def loss(self, batch: Tensor) -> Loss:
        self._maybe("loss")
        return super().loss(batch)

    def evaluate(self, dev: list[Tensor]) -> dict[str, float]:
        self._maybe("evaluate")
        return super().evaluate(dev)

    def save(self, folder: Path) -> None:
        self._maybe("before save")
        super().save(folder)
        self._maybe("after save")


def fit(out: Path, learner: toy.ToyLearner | None = None, **changes: Any) -> TrainOutput:
    return Trainer(toy.config(**changes), toy.RUN).fit(learner or toy.learner(), toy.ToyBatches(), toy.dev(), out)


def stopping(moment: str, number: int, by: int = 0) -> Stopping:
    torch.manual_seed(3)
    learner = Stopping()
    learner.moment, learner.number, learner.signal = moment, number, by
    return learner


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    result = fit(out)
    assert (result.steps, result.words, result.ended) == (40, 40 * 20, "budget")
    return out


MOMENTS = [("loss", 1), ("loss", 23), *(pytest.param("loss", number, marks=pytest.mark.slow) for number in (2, 8, 40))]
MOMENTS += [pytest.param("evaluate", 1, marks=pytest.mark.slow), ("evaluate", 4), ("before save", 2), ("after save", 1)]


@pytest.mark.parametrize(("moment", "number"), MOMENTS)
def test_a_run_cut_off_goes_on_as_if_nothing_had_happened(tmp_path: Path, whole: Path, moment: str, number: int) -> None:
    with pytest.raises(Stopped):
        fit(tmp_path, stopping(moment, number))
    fit(tmp_path)
    assert_same_run(whole, tmp_path)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_step_and_writes_a_checkpoint(
    tmp_path: Path, whole: Path, by: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    before = signal.getsignal(by)
    result = fit(tmp_path, stopping("loss", 18, by), checkpoint_every=1000)
    assert (result.steps, result.ended, result.stopped_by) == (18, None, by.name)
    assert f"stopped by {by.name} at step 18; the same command resumes the run" in caplog.text
    assert signal.getsignal(by) is before
    assert newest(tmp_path, "json").name == "checkpoint-00000018.json"
    fit(tmp_path)
    assert_same_run(whole, tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="by the C library of a POSIX system")
def test_signals_that_a_library_took_are_taken_back(tmp_path: Path) -> None:
    """LLVM, which compiles GPU kernels within the process, puts its own handlers behind Python's back."""
    library = ctypes.CDLL(None)
    library.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)

    class Deaf(Stopping):
        def loss(self, batch: Tensor) -> Loss:
            if self.number == 18:  # the first step
                library.signal(signal.SIGTERM, 1)  # SIG_IGN
            return super().loss(batch)

    learner = Deaf()
    learner.number, learner.signal = 18, signal.SIGTERM
    assert fit(tmp_path, learner).stopped_by == "SIGTERM"


def test_many_short_sittings(tmp_path: Path, whole: Path) -> None:
    """Also: other random numbers used, and another first model, between the sittings."""
    for sitting in range(1, 30):
        torch.rand(sitting)
        if fit(tmp_path, stopping("loss", 1 + sitting % 3, signal.SIGTERM)).ended:
            break
    assert_same_run(whole, tmp_path)


def test_a_finished_run_is_left_alone(tmp_path: Path) -> None:
    first = fit(tmp_path)
    files = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()}
    again = fit(tmp_path, stopping("loss", 1))
    assert dataclasses.replace(again, seconds=0) == dataclasses.replace(first, seconds=0)
    assert files == {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()}


def test_checkpoints_by_the_clock_change_nothing(tmp_path: Path, whole: Path) -> None:
    fit(tmp_path, checkpoint_every=None, checkpoint_seconds=1e-9)
    assert_same_run(whole, tmp_path)


def test_checkpoints_come_by_themselves(tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what a power cut takes is minutes; and where writing one takes long, they are fewer."""
    steps: list[int] = []
    write = CheckpointManager.write

    def noted(self: CheckpointManager, checkpoint: Checkpoint) -> None:
        steps.append(checkpoint.step)
        write(self, checkpoint)

    monkeypatch.setattr(CheckpointManager, "write", noted)
    monkeypatch.setattr(fit_loop, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(fit_loop, "CHECKPOINT_COST", 0.0)
    fit(tmp_path / "often", checkpoint_every=None)
    often, steps = len(steps), []
    monkeypatch.setattr(fit_loop, "CHECKPOINT_COST", 1e9)
    fit(tmp_path / "seldom", checkpoint_every=None)
    assert len(steps) == 2 < often  # the first and the last
    assert_same_run(whole, tmp_path / "often")


@pytest.mark.parametrize(
    "changes", [{"epochs": 2.5}, {"words": 700, "gradient_accumulation_steps": 2}, {"optim": OptimConfig(optimizer="adagrad")}]
)
def test_other_settings_resume_as_well(tmp_path: Path, changes: dict[str, Any]) -> None:
    fit(tmp_path / "whole", **changes)
    with pytest.raises(Stopped):
        fit(tmp_path / "cut", stopping("loss", 27), **changes)
    fit(tmp_path / "cut", **changes)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


def test_other_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        fit(tmp_path, stopping("loss", 20))
    with pytest.raises(PolysemeError) as told:
        fit(tmp_path, optim=OptimConfig(learning_rate=0.02), log_every=5, patience=3)
    assert "patience: not given in the run, 3 now" in str(told.value)
    assert "(learning_rate: 0.01 in the run, 0.02 now" in str(told.value)
    assert "log_every" not in str(told.value)
    trainer = Trainer(toy.config(), toy.RUN)
    with pytest.raises(PolysemeError, match=r"\(vectors changed\)"):
        trainer.fit(toy.learner(), toy.ToyBatches(), toy.dev(), tmp_path, settings={"vectors": "abc"})
    with pytest.raises(PolysemeError, match=r"the text of this run, or how it is split, changed since it began"):
        trainer.fit(toy.learner(), toy.ToyBatches(), toy.dev(), tmp_path, settings={"corpus": "abc"}, accept_changes=True)
    with pytest.raises(PolysemeError, match=r"a run of another model"):
        fit(tmp_path, toy.learner(dim=9))


def test_changes_can_be_accepted(tmp_path: Path) -> None:
    fit(tmp_path)
    changed = toy.config(steps=60, optim=OptimConfig(optimizer="adagrad"))
    result = Trainer(changed, toy.RUN).fit(toy.learner(), toy.ToyBatches(), toy.dev(), tmp_path, accept_changes=True)
    assert (result.steps, result.ended) == (60, "budget")
    assert [line["step"] for line in log(tmp_path) if line["kind"] == "train"] == list(range(4, 61, 4))


def test_a_larger_budget_in_minutes_is_the_time_that_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_loop, "revise_budget", lambda config, budget, step, timing: budget)

    def train(minutes: float, seconds_per_step: float) -> TrainOutput:
        timing = Timing(step=seconds_per_step, evaluation=0.0, spent=0.0, words=20)
        monkeypatch.setattr(StepRunner, "measure", lambda *_: timing)
        config = toy.config(steps=None, minutes=minutes)
        return Trainer(config, toy.RUN).fit(toy.learner(), toy.ToyBatches(), toy.dev(), tmp_path, accept_changes=True)

    first = train(1, 1.0)
    assert 40 < first.steps < 60 and not first.was_finished
    longer = train(2, 10.0)  # a busy machine: two whole minutes would be fewer steps than were done
    assert first.steps + 5 < longer.steps < first.steps + 12 and longer.first_step == first.steps
    assert train(2, 10.0).was_finished


def test_a_budget_that_is_used_up_is_refused(tmp_path: Path) -> None:
    fit(tmp_path)
    with pytest.raises(PolysemeError, match=r"steps=30 leaves nothing to train: this run has done 40 steps and .*; give more"):
        Trainer(toy.config(steps=30), toy.RUN).fit(toy.learner(), toy.ToyBatches(), toy.dev(), tmp_path, accept_changes=True)


def test_a_run_that_is_over_takes_no_changes_that_would_do_nothing(tmp_path: Path) -> None:
    fit(tmp_path)
    changed = toy.config(optim=OptimConfig(learning_rate=0.02))
    with pytest.raises(PolysemeError, match=r"is finished, so changing optim.learning_rate has no effect"):
        Trainer(changed, toy.RUN).fit(toy.learner(), toy.ToyBatches(), toy.dev(), tmp_path, accept_changes=True)


def test_more_patience_lets_a_run_go_on(tmp_path: Path) -> None:
    still = OptimConfig(learning_rate=1e-12)  # no evaluation is better than the first
    assert fit(tmp_path, optim=still, patience=1).ended == "patience"
    for patience, ended in ((2, "patience"), (None, "budget")):
        changed = toy.config(optim=still, patience=patience)
        result = Trainer(changed, toy.RUN).fit(toy.learner(), toy.ToyBatches(), toy.dev(), tmp_path, accept_changes=True)
        assert result.ended == ended
    assert result.steps == 40


def test_the_later_of_equal_models_is_kept_where_the_learner_says_so(tmp_path: Path) -> None:
    class Equal(toy.ToyLearner):
        prefers_later = True

        def evaluate(self, dev: list[Tensor]) -> dict[str, float]:
            return {"perplexity": float(max(20 - self.losses, 0))}

    class First(Equal):
        prefers_later = False

    for learner, best in ((Equal, 40), (First, 20)):
        out = tmp_path / learner.__name__
        result = Trainer(toy.config(), toy.RUN).fit(learner(), toy.ToyBatches(), toy.dev(), out)
        assert (result.ended, result.steps, result.best_step) == ("budget", 40, best)
        assert [line["best"] for line in log(out) if line["kind"] == "dev"] == [True, True, best == 40, best == 40]


def test_rows_that_stand_for_others_are_never_accepted(tmp_path: Path) -> None:
    trainer = Trainer(toy.config(), toy.RUN)
    trainer.fit(toy.learner(), toy.ToyBatches(), toy.dev(), tmp_path, settings={"vocabulary": "abc"})
    longer = Trainer(toy.config(steps=50), toy.RUN)
    with pytest.raises(PolysemeError, match="the words, labels or subwords of this run changed since it began"):
        longer.fit(toy.learner(), toy.ToyBatches(), toy.dev(), tmp_path, settings={"vocabulary": "acb"}, accept_changes=True)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"settings": {"pretraining": {"size": "tiny"}, "corpus": "abc"}}, "elmo"),
        ({"settings": {"pretraining": {"method": "nnlm"}, "corpus": "abc"}}, "nnlm"),
        ({"settings": {"pretraining": {"masking": {"share": 0.15}}, "vocabulary": "abc"}}, "bert"),
        ({"settings": {"pretraining": {"size": "tiny"}, "vocabulary": "abc"}}, "gpt"),
        ({"settings": {"adaptation": {"new_words": 3}, "corpus": "abc"}}, "adaptation"),
        ({"settings": {"task": {"hidden": 3}, "vocabulary": "abc"}}, "task"),
        ({"word2vec": {"dim": 3}, "corpus": "abc", "seed": 1}, "word2vec"),
    ],
)
def test_a_run_of_another_kind_is_never_accepted(settings: dict[str, Any], kind: str) -> None:
    assert check_resume_settings(settings, settings, accept_changes=False) == {}
    for now in ({"method": "taglm"}, {"method": "ulmfit"}):
        told = f"this folder holds another kind of run \\({kind}, not {now['method']}\\): choose another folder"
        with pytest.raises(PolysemeError, match=told):
            check_resume_settings(settings, {"settings": {"pretraining": now, "corpus": "abc"}}, accept_changes=True)


def test_other_held_out_data_is_a_new_measure(tmp_path: Path) -> None:
    def judged(by: str, steps: int) -> TrainOutput:
        trainer = Trainer(toy.config(steps=steps, optim=OptimConfig(learning_rate=1e-12)), toy.RUN)
        return trainer.fit(toy.learner(), toy.ToyBatches(), toy.dev(), tmp_path, settings={"dev": by}, accept_changes=True)

    assert judged("one", 20).best_step == 10  # nothing gets better, so the first stays the best
    assert judged("one", 30).best_step == 10
    assert judged("another", 40).best_step == 40


def test_batches_of_another_kind_are_told(tmp_path: Path) -> None:
    class Others(toy.ToyBatches):
        def seek(self, position: Any) -> None:
            self._next = position["lane"]

    fit(tmp_path)
    with pytest.raises(PolysemeError, match="has other batches"):
        Trainer(toy.config(), toy.RUN).fit(toy.learner(), Others(), toy.dev(), tmp_path)


def test_what_kills_left_is_removed(tmp_path: Path) -> None:
    out = tmp_path / "model"
    for left in (out / ".task.abc.part", tmp_path / ".model.xyz.part", out / "run" / ".checkpoint.part"):
        left.mkdir(parents=True)
    mine = tmp_path / ".other.xyz.part"
    mine.mkdir()
    fit(out)
    assert sorted(path.name for path in out.iterdir()) == ["model.safetensors", "run"] and mine.exists()
    assert not list((out / "run").glob(".*")) and not (tmp_path / ".model.xyz.part").exists()


def test_a_model_that_cannot_be_saved_is_told_with_its_folder(tmp_path: Path) -> None:
    class Full(toy.ToyLearner):
        def save(self, folder: Path) -> None:
            raise PolysemeError("cannot write part: No space left on device")

    with pytest.raises(
        PolysemeError, match=r"cannot save the model in .* \(cannot write part: No space.*step 7 is kept.*resumes"
    ):
        fit(tmp_path, Full())


def test_settings_of_format_1_are_compared_under_their_new_names() -> None:
    settings = {"vocabulary": "a", "train": ConfigValues(TrainConfig, {})}
    new = {"config": toy.config(), "run": {"world_size": 2}, "settings": settings}
    old = plain_settings(new)
    old["run"] = {"ranks": 2}
    old["settings"] = {"rows": "a", "train": {"accumulate": 3, "rows": 1}}
    old["config"]["accumulate"] = old["config"].pop("gradient_accumulation_steps")
    translated = translate_settings(old, new)
    assert translated["settings"] == {"vocabulary": "a", "train": {"gradient_accumulation_steps": 3, "rows": 1}}
    assert differences(translated["config"], plain_settings(toy.config())) == {} and translated["run"] == {"world_size": 2}


def test_a_run_of_format_1_is_resumed(tmp_path: Path, whole: Path) -> None:
    """A checkpoint under the names of format 1."""
    with pytest.raises(Stopped):
        fit(tmp_path, stopping("loss", 23))
    path = newest(tmp_path, "json")
    head = json.loads(path.read_text())
    head.pop("digest")
    values = head["values"]
    head["polyseme_checkpoint"] = 1
    values |= {"plan": values.pop("budget"), "ranks": values.pop("processes"), "log": values.pop("log_bytes")}
    values["progress"]["waited"] = values["progress"].pop("wait_count")
    settings = values["settings"]
    settings["run"]["ranks"] = settings["run"].pop("world_size")
    settings["config"]["accumulate"] = settings["config"].pop("gradient_accumulation_steps")
    for process in values["ranks"]:
        process["interval"]["in_a_row"] = process["interval"].pop("consecutive_skips")
    path.write_text(json.dumps(head | {"digest": hash_json(head)}))
    fit(tmp_path)
    assert_same_run(whole, tmp_path)
