"""What `polyseme train` shows before and after training: within 80 columns, whatever the labels are."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.cells import cell_len

from polyseme.api.tasks import TrainedTask
from polyseme.metrics.classes import Confusion
from polyseme.tasks.error_analysis import ErrorReport, ExampleError, confusion_text, span_confusion
from polyseme.tasks.predictions import LayerWeights
from polyseme.tasks.run_summary import class_list, label_counts
from polyseme.tasks.training_report import TrainingReport
from polyseme.text.labelled.conll import TaggedSentence
from polyseme.training.trainer import TrainOutput

SCORES = {"dev": {"accuracy": 0.9, "macro_f1": 0.8}, "test": {"accuracy": 0.875, "macro_f1": 0.75}}
BASELINE = {
    "name": "n-grams with logistic regression",
    "dev": {"accuracy": 0.8, "macro_f1": 0.7},
    "test": {"accuracy": 0.85, "macro_f1": 0.7},
    "majority": {"dev": {"accuracy": 0.5}, "test": {"accuracy": 0.5}},
}


def widest(text: str) -> int:
    return max(map(cell_len, text.splitlines()))


def report(labels: int = 2, **more: object) -> TrainingReport:
    names = tuple(f"情感分类标签{number}" for number in range(labels))
    counts = np.arange(labels * labels, dtype=np.int64).reshape(labels, labels)
    errors = [ExampleError.single(f"f.tsv:{line}", "银行" * 90, names[0], names[1], 0.9, probability=0.9) for line in range(9)]
    return TrainingReport(
        "accuracy",
        SCORES,
        errors=ErrorReport("f.tsv", SCORES["test"], "accuracy", 9, Confusion(names, counts), errors, [], wrong=9),
        layer_weights=LayerWeights({"input, elmo 1": {"layer 0": 0.25, "layer 1": 0.75}}),
        examples={"dev": 25, "test": 25},
        **more,
    )


def test_scores_stand_beside_the_baselines():
    shown = report(baseline=BASELINE)
    lines = str(shown).splitlines()
    assert lines[0].split() == ["accuracy", "macro_f1"]
    assert lines[4] == "test  this model                          0.8750    0.7500"
    assert lines[5].split()[-2:] == ["0.8500", "0.7000"] and lines[6].split() == ["majority", "0.5000"]
    assert lines[7] == "test accuracy 87.5: 2.5 points above n-grams with logistic regression"
    assert "worst errors, test data (4 of 9)" in str(shown)
    assert "n-grams" in shown._repr_html_() and "n-grams" not in str(report()) + report()._repr_html_()


def test_equal_errors_are_counted_and_named():
    shown = report()
    errors = [dataclasses.replace(each, equal=("f.tsv:11", "f.tsv:12")) for each in shown.errors.worst[:3]]
    shown = dataclasses.replace(shown, errors=dataclasses.replace(shown.errors, worst=errors, wrong=12))
    assert "worst errors, test data (9 of 12)" in str(shown) and widest(str(shown)) <= 80
    assert str(shown).count("\n  and 2 equal ones: lines 11, 12\n") == 3
    assert "f.tsv:0 and 2 equal ones: lines 11, 12" in shown._repr_html_()


def test_a_model_below_the_baseline_says_so():
    better = {"name": "n-grams", "test": {"accuracy": 0.925}}
    assert report(baseline=better).verdict() == "test accuracy 87.5: 5.0 points BELOW n-grams"


def test_what_helps_where_a_baseline_is_as_good():
    told = "no better than a baseline: more labelled data helps more than other options"
    for score, warning, expected in ((0.925, "", told), (0.875, "", told), (0.87, "", ""), (0.925, "nothing was learned", "")):
        shown = report(baseline={"name": "n-grams", "test": {"accuracy": score}}, warning=warning)
        assert (told in str(shown).splitlines()) == (told in shown._repr_html_()) == bool(expected)
    short = report(
        baseline={"name": "n-grams", "test": {"accuracy": 0.925}}, longer="train longer (epochs=40), or label more data"
    )
    assert short.advice() == "no better than a baseline: train longer (epochs=40), or label more data"
    best = TrainingReport("f1", {"dev": {"f1": 1.0}}, {"name": "x", "dev": {"f1": 1.0}})
    assert best.advice() == ""


def test_a_tagger_that_misses_nothing_has_no_row_for_it():
    pairs = [("LOC", "LOC"), ("PER", "LOC")]
    for more, has_none in (([], False), ([("none", "PER")], True)):
        table = span_confusion([*pairs, *more])
        errors = ErrorReport("f", {"f1": 0.5}, "f1", 2, table, [], [])
        shown = str(TrainingReport("f1", {"dev": {"f1": 0.5}}, errors=errors))
        assert ("none" in shown) == ("(none: no span there)" in shown) == ("none" in confusion_text(table)) == has_none
        assert table.labels == ("LOC", "PER", "none")  # of JSON


def test_the_epoch_of_the_best_network():
    for best, expected in (
        (9, "180 steps, best: epoch 1 of 20, 26 s"),
        (180, "180 steps, 26 s"),
        (3, "best: epoch 0.333 of 20"),
    ):
        output = TrainOutput(Path("run"), 180, 1, 12.0, 0.1, best, {}, "budget", epochs=20.0)
        fitted = SimpleNamespace(result=output, report=None, task=SimpleNamespace(kind="classification"))
        assert expected in str(TrainedTask(fitted, Path("run"), waited=26.0))
    assert str(TrainedTask(fitted, Path("run"), waited=1.0)).endswith(" 12 s")  # shown again


def test_few_examples_call_for_caution():
    """Half of the 95 % interval of 87.5 % of 25 examples is 1.96 * sqrt(0.875 * 0.125 / 25), 13 points."""
    told = "only 25 test examples: chance alone moves the score about 13 points up or down"
    assert told in str(report(baseline=BASELINE)).splitlines() and told in report()._repr_html_()
    for examples, main, expected in (
        (100, "accuracy", ""),
        (25, "macro_f1", "by many points"),
        (10, "accuracy", "only 10 test examples: chance alone"),
        (9, "accuracy", "only 9 test examples: too few for a score to mean anything"),
        (1, "macro_f1", "only 1 test example: too few for a score to mean anything"),
    ):
        few = dataclasses.replace(report(), main=main, examples={"test": examples})
        assert expected in few.caution() and bool(few.caution()) == bool(expected)
    assert TrainingReport("accuracy", SCORES).caution() == ""
    held_out = TrainingReport("accuracy", {"dev": SCORES["dev"]}, examples={"dev": 9})
    assert held_out.caution().startswith("only 9 dev examples:") and held_out.caution().endswith(
        "; folds=10 scores all examples"
    )


@pytest.mark.parametrize("labels", [2, 5, 40])
def test_eighty_columns_are_enough(labels):
    shown = report(labels, baseline=BASELINE)
    assert widest(str(shown)) <= 80 and widest(str(shown.errors)) <= 80
    assert ("(others)" in str(shown)) == (labels > 2) and str(shown).count("f.tsv:") == 4


def test_many_metrics_stand_below_each_other():
    scores = {f"metric_{number}": number / 20 for number in range(12)}
    lines = str(TrainingReport("metric_0", {"dev": scores, "test": scores})).splitlines()
    assert lines[0].split() == ["dev", "test"] and lines[3].split() == ["metric_2", "0.1000", "0.1000"]


def test_the_rest_of_a_matrix_is_one_class():
    counts = np.array([[5, 1, 0], [2, 9, 0], [0, 3, 1]])
    part = Confusion(("a", "b", "c"), counts).largest(1)
    assert part.labels == ("b", "(others)") and part.counts.tolist() == [[9, 2], [4, 6]]
    assert part.counts.sum() == counts.sum()


def test_classes_that_fit_on_a_line():
    counts = {f"标签{number}": 1000 - number for number in range(300)}
    assert class_list(counts, 70).startswith("300: 标签0 (1,000), 标签1 (999), ") and cell_len(class_list(counts, 70)) <= 70
    assert class_list({}, 70) == ""


def test_classes_of_taggers():
    spans = [TaggedSentence(["a", "b", "c"], ["B-PER", "I-PER", "O"]), TaggedSentence(["d"], ["B-LOC"])]
    assert label_counts(spans) == {"PER": 1, "LOC": 1}
    assert label_counts([TaggedSentence(["a", "b"], ["NOUN", "NOUN"])]) == {"NOUN": 2}
