"""Cross-validation: every example is tested once, finished folds are not trained again."""

import json
import logging
import statistics
from pathlib import Path

import pytest

import polyseme
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.studies import folds as module
from polyseme.studies.folds import CrossValidation
from polyseme.studies.train import DataFiles, TaskJob
from polyseme.tasks.data import TaskData
from tests.cli.labelled import TINY
from tests.oracle.make import write_bilm

OPTIONS = {**TINY, "network": "pooled", "network_layers": 0}


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"this is {'good' if number % 2 else 'bad'} number {number}\t{'pos' if number % 2 else 'neg'}" for number in range(24)
    ]
    (tmp_path / "a.tsv").write_text("\n".join(["text\tlabel", *sorted(rows, key=lambda row: row[-3:])]) + "\n")
    return tmp_path / "a.tsv"


def test_every_example_is_tested_once(data, tmp_path):
    result = polyseme.train("classification", data, encoder="none", out="run", folds=3, **OPTIONS)
    assert isinstance(result, CrossValidation) and len(result.folds) == 3 and result.main == "accuracy"
    saved = json.loads((tmp_path / "run" / "result.json").read_text())
    assert saved == result.to_json() and saved["fold_scores"] == result.folds
    folds = [json.loads((tmp_path / "run" / f"fold-{number}" / "result.json").read_text()) for number in (1, 2, 3)]
    assert [fold["examples"] for fold in folds] == [{"train": 14, "dev": 2, "test": 8}] * 3
    scores = [fold["scores"]["test"]["accuracy"] for fold in folds]
    assert result.mean["accuracy"] == pytest.approx(sum(scores) / 3)
    assert result.pooled["accuracy"] == pytest.approx(sum(scores) / 3)  # of equal size
    lines = str(result).splitlines()
    assert lines[0].startswith("run: classification, 3 folds") and [line.split("  ")[0] for line in lines[2:5]] == [
        "mean",
        "standard deviation",
        "all predictions",
    ]
    assert "fold 3" in result._repr_html_()
    spread = statistics.stdev(scores)
    (at,) = (number for number, line in enumerate(lines) if line.startswith("test accuracy "))
    assert lines[at].startswith(f"test accuracy {100 * sum(scores) / 3:.1f} ± {100 * spread:.1f}, n-grams with logistic")
    assert " n-grams with logistic regression" in lines[at + 1]
    assert lines[at + 3] == "confusion matrix, all predictions" and lines[at + 7].split()[:1] + lines[at + 7].split()[-1:] == [
        "all",
        "24",
    ]
    wrong = sum(8 * (1 - score) for score in scores)
    assert len([line for line in lines if line.startswith("a.tsv:")]) == min(4, round(wrong))
    assert lines[-1] == "predictions for all examples: run/predictions.jsonl"


def test_predictions_are_kept_once_in_the_order_of_the_data(data, tmp_path, monkeypatch):
    call = {"encoder": "none", "out": "run", "folds": 3, **OPTIONS}
    result = polyseme.train("classification", data, **call)
    path = tmp_path / "run" / "predictions.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    given = [line.split("\t") for line in data.read_text().splitlines()[1:]]
    assert [(row["text"], row["gold"]) for row in rows] == [(text, label) for text, label in given]
    assert [row["where"] for row in rows] == [f"a.tsv:{number}" for number in range(2, 26)]
    for number, scores in enumerate(result.folds, 1):
        right = [row["label"] == row["gold"] for row in rows if row["fold"] == number]
        assert len(right) == 8 and sum(right) / 8 == pytest.approx(scores["accuracy"])
    for row in (rows[0], rows[-1]):
        (said,) = polyseme.load_task(f"run/fold-{row['fold']}").predict([row["text"]])
        assert row["probabilities"] == pytest.approx(said.probabilities, abs=1e-5)

    monkeypatch.setattr(TaskJob, "train", lambda *_, **__: pytest.fail("a finished fold is trained"))
    before = path.read_bytes(), path.stat().st_mtime_ns
    polyseme.train("classification", data, **call)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    path.unlink()  # as after a kill, or in a folder of an earlier version
    assert polyseme.train("classification", data, **call).predictions == path.relative_to(tmp_path)
    assert path.read_bytes() == before[0]


def test_predictions_of_a_network_that_is_gone_are_not_kept(data, tmp_path, monkeypatch):
    call = {"encoder": "none", "out": "run", "folds": 2, **OPTIONS}
    polyseme.train("classification", data, **call)
    (tmp_path / "run" / "fold-2" / "result.json").unlink()
    monkeypatch.setattr(TaskJob, "train", lambda *_, **__: (_ for _ in ()).throw(PolysemeError("a full disk")))
    with pytest.raises(PolysemeError, match="a full disk"):
        polyseme.train("classification", data, **call)
    assert not (tmp_path / "run" / "predictions.jsonl").exists()


def test_settings_are_shown_once_and_each_fold_in_a_line(data, caplog):
    with caplog.at_level(logging.INFO, "polyseme"):
        polyseme.train("classification", data, encoder="none", out="run", folds=3, **OPTIONS)
    shown = "\n".join(caplog.messages)
    assert shown.count("\nnetwork ") == shown.count("\ntraining ") == 1
    assert [line[:11] for line in caplog.messages if line.startswith("fold ")] == [f"fold {n} of 3" for n in (1, 2, 3)]
    assert not [line for line in caplog.messages if line.startswith("epoch")]
    assert "n-grams (" in shown and "none, no word vectors" in shown


def test_the_same_call_continues(data, tmp_path, monkeypatch):
    trained: list[str] = []
    fit = TaskJob.train

    def train(self, *arguments, **options):
        trained.append(self.out.name)
        if len(trained) == 2:
            raise PolysemeError("a full disk")
        return fit(self, *arguments, **options)

    monkeypatch.setattr(TaskJob, "train", train)
    call = {"encoder": "none", "out": "run", "folds": 2, **OPTIONS}
    with pytest.raises(PolysemeError, match="a full disk"):
        polyseme.train("classification", data, **call)
    result = polyseme.train("classification", data, **call)
    again = polyseme.train("classification", data, **call)
    assert trained == ["fold-1", "fold-2", "fold-2"] and again.folds == result.folds
    with pytest.raises(PolysemeError, match=r"run has a cross-validation with other settings \(options\)"):
        polyseme.train("classification", data, **{**call, "epochs": 2})
    with pytest.raises(PolysemeError, match=r"other settings \(folds, data\)"):
        polyseme.train("classification", data, **{**call, "folds": 3})


def test_layers_are_computed_once_and_scores_without_counts_are_pooled(data, tmp_path, monkeypatch):
    write_bilm(tmp_path / "elmo")
    keys = set()
    build = TaskData.cache

    def cache(self, features, folder, **options):
        build(self, features, folder, **options)
        keys.update(path.name for path in folder.glob("layers-*"))

    monkeypatch.setattr(TaskData, "cache", cache)
    options = {"encoder": "elmo", "out": "run", "folds": 2, "metric": "macro_f1", **OPTIONS}
    result = polyseme.train("classification", data, **options)
    assert len(keys) == 1 and not (tmp_path / "run" / "layers").exists()
    assert set(result.pooled) == {"accuracy", "macro_f1", "matthews"}
    assert result.pooled["accuracy"] == pytest.approx(result.mean["accuracy"])


def test_several_processes_are_refused(data, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in "01":  # each process says so, and none waits for another
        monkeypatch.setenv("RANK", rank)
        with pytest.raises(UsageError, match="folds=3 trains in one process, and there are 2: start it without torchrun, or"):
            polyseme.train("classification", data, encoder="none", out="run", folds=3, **OPTIONS)
    assert not (tmp_path / "run").exists()


def test_what_is_refused(data, tmp_path):
    def call(**options):
        return polyseme.train("classification", data, encoder="none", out="run", **{"folds": 2, **OPTIONS, **options})

    with pytest.raises(UsageError, match="folds=2 divides the data itself: leave out dev, test"):
        call(dev=data, test=data)
    with pytest.raises(UsageError, match="folds=1 is too few"):
        call(folds=1)
    with pytest.raises(UsageError, match="folds=30 needs as many examples with different texts; the data has 24"):
        call(folds=30)
    assert not (tmp_path / "run").exists()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "predictions.jsonl").write_text("mine")
    with pytest.raises(UsageError, match=r"run has predictions\.jsonl, which a cross-validation would overwrite: choose"):
        call()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["predictions.jsonl"]


def test_trees_are_divided_by_sentences(tmp_path):
    trees = [f"({2 + number % 2} (1 w{number}) (4 (2 so) (3 x{number})))" for number in range(20)]
    (tmp_path / "trees").write_text("\n".join(trees))
    job = TaskJob("classification", DataFiles(tmp_path / "trees"), "run", "none")
    _, config, _ = job.configured()
    splits = module._splits(job, config.replace(phrases="all"), 4, 0, print)
    assert sorted(text.where for split in splits for text in split.test) == list(range(1, 21))
    for split in splits:
        held = {text.where for text in [*split.dev, *split.test]}
        assert held.isdisjoint(text.where for text in split.train) and len(split.train) > 4 * (20 - len(held))


def test_the_gain_over_a_baseline_is_that_of_the_folds():
    """Gains of 1, 3 and 5 points: 3 in the mean, with a standard error of 2 / sqrt(3)."""
    own = [{"accuracy": value} for value in (0.61, 0.83, 0.75)]
    close, far = ([{"accuracy": value} for value in values] for values in ((0.6, 0.8, 0.7), (0.3, 0.5, 0.4)))
    common = {"out": Path("run"), "task": "classification", "main": "accuracy", "pooled": {"accuracy": 0.73}, "seconds": 1.0}
    result = CrossValidation(folds=own, baselines={"n-grams": close, "majority": far}, **common)
    assert result.comparison() == "3.0 points above n-grams"
    below = CrossValidation(folds=close, baselines={"n-grams": own}, **common)
    assert below.comparison() == "3.0 points BELOW n-grams"
    uneven = [{"accuracy": value} for value in (0.7, 0.71, 0.72)]
    assert CrossValidation(folds=own, baselines={"x": uneven}, **common).comparison().endswith(" above x; that may be chance")
    odd = CrossValidation(folds=[{"accuracy": 0.9064}] * 2, baselines={"x": [{"accuracy": 0.9154}] * 2}, **common)
    assert odd.verdict() == "test accuracy 90.6 ± 0.0, x 91.5" and odd.comparison() == "0.9 points BELOW x"
    odd = CrossValidation(folds=[{"accuracy": 0.9058}] * 2, baselines={"x": [{"accuracy": 0.9154}] * 2}, **common)
    assert odd.verdict() == "test accuracy 90.6 ± 0.0, x 91.5" and odd.comparison() == "0.9 points BELOW x"  # not 1.0
    assert CrossValidation(folds=own, baselines={}, **common).comparison() == ""
