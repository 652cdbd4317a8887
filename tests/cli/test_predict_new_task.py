"""A new task is one file: with only the methods that every task must have, it trains, predicts and is evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import polyseme
from polyseme.tasks.base import Task
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.features import Features, TextInputs, TextVectors
from polyseme.tasks.registry import TASKS, TaskEntry
from polyseme.text.words import Splitter


@dataclass(frozen=True)
class Long:
    """Whether a text is long, and how much so."""

    long: bool
    length: float


class Lengths(Task):
    """Predicts lengths: a line of a file has a number and a text; a prediction is the number, as the network has it."""

    kind = "lengths"
    main_metric = "near"
    config_type = TaskConfig

    def __init__(self, config: TaskConfig, features: Features, labels: Sequence[str], splitter: Splitter) -> None:
        super().__init__(config, features, labels, splitter)
        self.network = nn.Linear(features.width("input"), 1)

    @classmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[tuple[float, str]]:
        rows = (line.split("\t") for line in Path(path).read_text(encoding="utf-8").splitlines())
        return [(float(number), text) for number, text in rows]

    @classmethod
    def collect_labels(cls, examples: Sequence[Any], config: TaskConfig) -> list[str]:
        return ["length"]

    @classmethod
    def example_texts(cls, example: tuple[float, Any], splitter: Splitter) -> list[list[str]]:
        return [splitter(example[1]) if isinstance(example[1], str) else example[1]]

    def make_targets(self, examples: Sequence[tuple[float, Any]], inputs: list[TextInputs]) -> Tensor:
        return torch.tensor([number for number, _ in examples])

    def summed_loss(self, texts: list[TextVectors], targets: Tensor) -> tuple[Tensor, int]:
        return (self._lengths(texts) - targets).square().sum(), len(targets)

    def decode(self, texts: list[TextVectors], examples: Sequence[Any]) -> list[float]:
        return [round(number, 3) for number in self._lengths(texts).tolist()]

    def _lengths(self, texts: list[TextVectors]) -> Tensor:
        return (self.network(texts[0].at_input).squeeze(2) * texts[0].mask).sum(1)

    def score(self, examples: Sequence[tuple[float, Any]], outputs: Sequence[float]) -> dict[str, float]:
        return {"near": sum(abs(a[0] - b) < 1 for a, b in zip(examples, outputs, strict=True)) / len(examples)}

    def predict(self, texts: Sequence[Any]) -> list[Any]:
        return self.predict_data(self.data([(0.0, text) for text in texts]))


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(TASKS, "lengths", TaskEntry(f"{__name__}:Lengths", "polyseme.tasks.config:TaskConfig"))
    (tmp_path / "a.tsv").write_text("1\tone\n2\ttwo words\n3\tnow three words\n" * 4)
    polyseme.train("lengths", tmp_path / "a.tsv", out=tmp_path / "run", encoder="none", epochs=1, word_dim=4)
    return tmp_path


def test_it_predicts(run: Any, trained: Path) -> None:
    task, texts = polyseme.load_task(trained / "run"), ["two words.", "one"]
    first, second = task.predict(texts)
    assert run("predict", trained / "run", *texts).out == f"{first}\ttwo words.\n{second}\tone\n"
    assert run("predict", trained / "run", "one", "--json").json == [{"text": "one", "answer": second}]
    (split,) = task.predict([["two", "words."]])
    assert run("predict", trained / "run", texts[0], "--split-on-spaces").out == f"{split}\ttwo words.\n"


def test_predictions_with_fields_have_their_names_in_json(run: Any, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lengths, "predict", lambda task, texts: [Long(False, 1.0)] * len(texts))
    assert run("predict", trained / "run", "one", "--json").json == [{"text": "one", "long": False, "length": 1.0}]


def test_predictions_may_be_blocks_of_lines(run: Any, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lengths, "multi_line", True)
    monkeypatch.setattr(Lengths, "prediction_lines", lambda task, line, prediction: line.split())
    assert run("predict", trained / "run", "a b", "", "c").out == "a\nb\n\n\nc\n"


def test_it_is_evaluated(run: Any, trained: Path) -> None:
    result = run("evaluate", trained / "run", trained / "a.tsv")
    assert result.code == 0 and "12 examples" in result.out
    assert "worst errors" not in result.out
    (report,) = run("evaluate", trained / "run", trained / "a.tsv", "--json").json
    assert (report["main"], report["confusion"], report["errors"], report["unknown_labels"]) == ("near", None, [], [])
