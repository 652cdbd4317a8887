"""Judges of pairs: what they read, classes and scores, what they refuse, and that they learn."""

from __future__ import annotations

import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.base.run import Run
from polyseme.nn.config import CharactersConfig
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.fit import Splits, TaskBuilder, fit
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.folder import load
from polyseme.tasks.pairs import LabelledPair, Pairs
from polyseme.tasks.pairs_config import PairsConfig
from polyseme.tasks.predictions import LabelPrediction, ScorePrediction
from polyseme.tasks.run_summary import RunSummary
from polyseme.training.optim_config import OptimConfig
from tests.encoders.small import elmo

FEATURES = FeaturesConfig(words=TaskWordConfig(dim=10, characters=CharactersConfig(dim=4, filters=((2, 5),), highway_layers=0)))


def small(**changes: Any) -> PairsConfig:
    return PairsConfig(**({"hidden_size": 8, "features": FEATURES} | changes))


def read(folder: Path, content: str, name: str = "data.tsv", **config: Any) -> list[LabelledPair]:
    (folder / name).write_text(content, encoding="utf-8")
    return Pairs.read(folder / name, small(**config))


def labelled(*labels: str) -> list[LabelledPair]:
    return [LabelledPair("a b", "c", label) for label in labels]


# ---- reading


def test_the_tables_of_the_field(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pair = LabelledPair("It rains.", "It is wet.", "entailment")
    rows = [{"gold_label": "entailment", "sentence1": "It rains.", "sentence2": "It is wet."}]
    rows.append({"gold_label": "-", "sentence1": "a", "sentence2": "b"})
    with caplog.at_level(logging.WARNING):
        assert read(tmp_path, "\n".join(map(json.dumps, rows)), "snli.jsonl") == [pair]
    assert "skipped 1 of 2 rows" in caplog.text
    sick = "pair_ID\tsentence_A\tsentence_B\tentailment_judgment\trelatedness_score\n1\tx\ty\tNEUTRAL\t4.5\n"
    assert read(tmp_path, sick) == [LabelledPair("x", "y", "NEUTRAL")]
    assert read(tmp_path, sick, goal="score", label="relatedness_score") == [LabelledPair("x", "y", "4.5")]
    mrpc = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tx\ty\n"
    assert read(tmp_path, mrpc) == [LabelledPair("x", "y", "1")]
    plain = "m\t2012\t3.800\tx\ty\nm\t2012\t1.0\tx\tz\tmore\n"
    found = read(tmp_path, plain, goal="score", text="3", second="4", label="2", strict=False)
    assert found == [LabelledPair("x", "y", "3.800"), LabelledPair("x", "z", "1.0")]


def test_bad_files_are_told(tmp_path: Path) -> None:
    sick = "sentence_A\tsentence_B\tentailment_judgment\trelatedness_score\nx\ty\tNEUTRAL\t4.5\n"
    with pytest.raises(FormatError, match=r"data.tsv:2: has the label 'NEUTRAL', and goal='score' needs a number"):
        read(tmp_path, sick, goal="score")
    with pytest.raises(FormatError, match=r"has no label in column score"):
        read(tmp_path, "text1\ttext2\tscore\nx\ty\tnan\n", goal="score")
    with pytest.raises(UsageError, match=r"one text per row: name two columns with text and second, or train `class"):
        read(tmp_path, "text\tlabel\nx\t1\n")


# ---- configs and labels


def test_configs_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"hidden_size is 0; allowed: 1 or more"):
        small(hidden_size=0)
    with pytest.raises(ConfigError, match=r"only taggers and generation have 'between'"):
        small(features=FEATURES.replace(positions=("between",)))
    with pytest.raises(ConfigError, match=r"metric='pearson' does not apply to goal='classes'"):
        small(metric="pearson")
    with pytest.raises(ConfigError, match=r"metric='f1' does not apply to goal='score'; positive_label='x'"):
        small(metric="f1", positive_label="x", goal="score")
    with pytest.raises(ConfigError, match=r"min_score and max_score need goal='score'"):
        small(min_score=0.0)
    with pytest.raises(ConfigError, match=r"min_score=5.0 must be below max_score=0.0"):
        small(min_score=5.0, max_score=0.0, goal="score")
    with pytest.raises(ConfigError, match=r"text and second name two columns: give both or neither"):
        small(text="a")
    config = small(goal="score", min_score=1.0, max_score=5.0, metric="spearman", format="csv")
    assert PairsConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (("0", "1"), "1"),
        (("entailment", "not_entailment"), "entailment"),
        (("duplicate", "non-duplicate"), "duplicate"),
        (("no", "yes"), "yes"),
        (("contradiction", "entailment", "neutral"), None),
    ],
)
def test_the_positive_class(labels: tuple[str, ...], positive: str | None) -> None:
    task = Pairs.build(small(), labelled(*labels))
    assert task.config.positive_label == positive and task.labels == sorted(labels) and task.main_metric == "accuracy"


def test_training_data_that_does_not_fit(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigError, match=r"positive_label='c' needs to be one of two labels; the training data has a, b"):
        Pairs.build(small(positive_label="c"), labelled("a", "b"))
    with pytest.raises(ConfigError, match=r"metric='f1' needs two classes; the training data has 3"):
        Pairs.build(small(metric="f1"), labelled("a", "b", "c"))
    with pytest.raises(PolysemeError, match=r"all 2 examples have the label 'a'"):
        Pairs.build(small(), labelled("a", "a"))
    with pytest.raises(PolysemeError, match=r"range from 2.0 to 2.0: they must differ"):
        Pairs.build(small(goal="score"), labelled("2", "2.0"))
    with pytest.raises(UsageError, match=r"the label 'a' is not a number"):
        Pairs.build(small(goal="score"), labelled("1", "a"))
    Pairs.build(small(), labelled("3.5", "2.25"))
    assert "the labels look like scores (2.25, 3.5 ...): for these, give goal='score'" in caplog.text
    task = Pairs.build(small(), labelled("a", "b"))
    with pytest.raises(UsageError, match=r"expected pairs of texts"):
        task.predict([("a", "b", "c")])  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"expected pairs of texts"):
        task.predict(["ab"])  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"a text is a string or a list of words; got None"):
        task.predict([("a", None)])  # type: ignore[list-item]


# ---- scores


def test_scores_of_classes_by_hand() -> None:
    task = Pairs.build(small(positive_label="no"), labelled("no", "yes"))
    gold, found = ["no", "no", "no", "yes", "yes"], ["no", "no", "yes", "no", "yes"]
    scores = task.score(labelled(*gold), [LabelPrediction(label, 1.0, {}) for label in found])
    # no: precision 2/3, recall 2/3; yes: 1/2, 1/2
    assert scores == pytest.approx({"accuracy": 3 / 5, "macro_f1": (2 / 3 + 1 / 2) / 2, "f1": 2 / 3})
    assert task.score(labelled("yes"), [LabelPrediction("yes", 1.0, {})])["f1"] == 0.0


def test_tallies_sum_up_to_the_main_score() -> None:
    gold, found = ["no", "no", "no", "yes", "yes"], ["no", "no", "yes", "no", "yes"]
    answers = [LabelPrediction(label, 1.0, {}) for label in found]
    task = Pairs.build(small(), labelled("no", "yes"))
    assert task.score_counts(labelled(*gold), answers).tolist() == [[1, 1], [1, 1], [0, 1], [0, 1], [1, 1]]
    task = Pairs.build(small(metric="f1"), labelled("no", "yes"))
    assert task.score_counts(labelled(*gold), answers).tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]
    assert Pairs.build(small(goal="score"), labelled("1", "2")).score_counts(labelled("1"), [ScorePrediction(1.0)]) is None
    assert (
        Pairs.build(small(metric="macro_f1"), labelled("1", "2")).score_counts(labelled("1"), [LabelPrediction("1", 1.0, {})])
        is None
    )


def test_correlations_by_hand() -> None:
    task = Pairs.build(small(goal="score"), labelled("0", "5"))
    scores = task.score(labelled("1", "2", "3"), [ScorePrediction(1.0), ScorePrediction(3.0), ScorePrediction(2.5)])
    # deviations -1 0 1 and -7/6 5/6 2/6: 1.5 / sqrt(2 * 78 / 36); ranks 1 2 3 and 1 3 2: 1 - 6 * 2 / 24
    assert scores == pytest.approx({"pearson": 1.5 / (2 * 78 / 36) ** 0.5, "spearman": 0.5})
    assert task.score(labelled("1", "2"), [ScorePrediction(1.0), ScorePrediction(1.0)]) == {"pearson": 0.0, "spearman": 0.0}
    assert task.main_metric == "pearson"
    with pytest.raises(UsageError, match=r"1 pair cannot be scored"):
        task.score(labelled("1"), [ScorePrediction(1.0)])


def test_scores_are_learned_as_shares_of_the_range() -> None:
    examples = labelled("1", "5", "3.5")
    task = Pairs.build(small(goal="score", network="siamese", layers=0, dropout=0.0, wide=False), examples)
    assert (task.config.min_score, task.config.max_score, task.labels) == (1.0, 5.0, ["score"])
    batch = task.prepare(task.data(examples).gather([0, 1, 2]))
    assert batch.targets.values.tolist() == pytest.approx([0.0, 1.0, 0.625])
    with torch.no_grad():
        last = task.network.compare[-1]
        last.weight.zero_()
        last.bias.fill_(0.25)
    # all pairs answered by a quarter of the way: 1 + 4 / 4
    assert [answer.score for answer in task.predict([("x", "y"), ("", "")])] == pytest.approx([2.0, 2.0])
    # and the loss is the mean of squares of 0.25, 0.75 and 0.375
    expected = (0.25**2 + 0.75**2 + 0.375**2) / 3
    assert task.eval().loss(batch).components["task"].item() == pytest.approx(expected)
    task = Pairs.build(small(goal="score", min_score=0.0, max_score=10.0), examples)
    assert task.prepare(task.data(examples).gather([0])).targets.values.tolist() == pytest.approx([0.1])


# ---- networks


@pytest.mark.parametrize("network", ["esim", "siamese"])
def test_the_second_text_counts_and_order_too(network: Any) -> None:
    torch.manual_seed(0)
    task = Pairs.build(small(network=network), labelled("a", "b"))
    first, other, turned = task.predict([("x y", "z"), ("x y", "w"), ("z", "x y")])
    assert abs(first.probabilities["a"] - other.probabilities["a"]) > 1e-5
    assert abs(first.probabilities["a"] - turned.probabilities["a"]) > 1e-5


@pytest.mark.parametrize("network", ["esim", "siamese"])
@pytest.mark.parametrize("positions", [("input",), ("output",), ("input", "output")])
def test_an_encoder_is_heard_at_each_position(network: Any, positions: Any) -> None:
    """Words that the task cannot tell apart (no characters, one unknown vector) differ by what the encoder says."""
    config = small(network=network, features=FeaturesConfig(words=TaskWordConfig(dim=4, characters=None), positions=positions))
    torch.manual_seed(0)
    task = Pairs.build(config, labelled("a", "b"), [elmo()])
    one, two = task.predict([("the bank", "x"), ("the river", "x")])
    assert abs(one.probabilities["a"] - two.probabilities["a"]) > 1e-6
    one, two = Pairs.build(config, labelled("a", "b")).predict([("the bank", "x"), ("the river", "x")])
    assert one.probabilities == pytest.approx(two.probabilities, abs=1e-7)


ANIMALS = ["cat", "dog", "cow", "hen", "fox"]


def same_animal(count: int, seed: int) -> list[LabelledPair]:
    """Whether both texts name the same animal."""
    source, found = random.Random(seed), []
    for number in range(count):
        one = source.choice(ANIMALS)
        two = one if number % 2 else source.choice([animal for animal in ANIMALS if animal != one])
        first, second = f"{source.choice(['a', 'the'])} {one} runs", f"there is {source.choice(['a', 'one'])} {two}"
        found.append(LabelledPair(first, second, "same" if one == two else "other"))
    return found


SIAMESE = {"network": "siamese", "layers": 0, "pooling": "mean"}


@pytest.mark.slow
@pytest.mark.parametrize("config", [{"network": "esim"}, SIAMESE], ids=str)
def test_a_toy_set_is_learned(config: dict[str, Any], tmp_path: Path) -> None:
    fitting = FitConfig(batch_size=40, epochs=16, patience=16, optim=OptimConfig(learning_rate=0.02, weight_decay=0.0))
    outcome = fit(
        TaskBuilder(Pairs, small(hidden_size=24, dropout=0.1, **config)),
        Splits(same_animal(240, 1), same_animal(60, 2), same_animal(60, 3)),
        tmp_path / "out",
        fitting,
        Run(seed=1),
    )
    assert outcome.scores["test"]["accuracy"] > 0.95
    asked = same_animal(60, 3)
    found = outcome.task.predict([(pair.first, pair.second) for pair in asked])
    right = sum(answer.label == pair.label for answer, pair in zip(found, asked, strict=True))
    assert right / len(asked) == pytest.approx(outcome.scores["test"]["accuracy"])


def test_a_toy_score_is_learned(tmp_path: Path) -> None:
    """The score counts the long words of both texts, from 10 on: far from 0..1, and given back so."""

    def counted(count: int, seed: int) -> list[LabelledPair]:
        source, found = random.Random(seed), []
        for _ in range(count):
            texts = [source.choices(["on", "animals"], k=4) for _ in range(2)]
            found.append(LabelledPair(*texts, str(10 + 5 * sum(text.count("animals") for text in texts))))
        return found

    fitting = FitConfig(batch_size=16, epochs=15, optim=OptimConfig(learning_rate=0.01, weight_decay=0.0))
    config = small(network="siamese", goal="score", layers=0, pooling="mean", dropout=0.0, hidden_size=16, wide=False)
    outcome = fit(
        TaskBuilder(Pairs, config),
        Splits(counted(150, 1), counted(40, 2), counted(40, 3)),
        tmp_path / "out",
        fitting,
        Run(seed=1),
    )
    assert outcome.scores["test"]["pearson"] > 0.98
    asked = counted(40, 3)
    found = load(tmp_path / "out").predict([(pair.first, pair.second) for pair in asked])
    errors = [abs(answer.score - float(pair.label or "")) for answer, pair in zip(found, asked, strict=True)]
    assert sum(errors) / len(errors) < 2.0


def test_fractions_are_scores_unless_the_user_says_otherwise(tmp_path, caplog):
    path = tmp_path / "scored.tsv"
    path.write_text("sentence1\tsentence2\tscore\na\tb\t4.5\nc\td\t3.0\n")
    assert Pairs.guessed_options(path, small()) == {"goal": "score"}
    assert "the labels are numbers (4.5, 3.0 ...), so the goal is a score (goal='score')" in caplog.text
    assert Pairs.guessed_options(path, small(), ["goal"]) == {}
    path.write_text("sentence1\tsentence2\tlabel\na\tb\t1.0\nc\td\t0.0\n")
    assert Pairs.guessed_options(path, small()) == {}


def test_whole_numbers_of_a_score_are_classes_and_that_is_said(tmp_path, caplog):
    rows = "".join(f"one text {number}\tother text {number}\t{number % 6}\n" for number in range(24))
    (tmp_path / "a.tsv").write_text("sentence1\tsentence2\tScore\n" + rows)
    assert Pairs.guessed_options(tmp_path / "a.tsv", small()) == {}
    assert "the whole numbers of column 'Score' are 6 classes; goal='score' learns them as numbers" in caplog.text
    caplog.clear()
    assert Pairs.guessed_options(tmp_path / "a.tsv", small(goal="score"), ["goal"]) == {} and not caplog.messages


def test_the_summary_has_the_range_of_scores():
    examples = labelled("1.5", "3.33", "5")
    task = Pairs.build(small(goal="score", features=FeaturesConfig(words=TaskWordConfig(dim=3, word_dropout=0.2))), examples)
    shown = str(RunSummary(task, FitConfig(), {"train": task.data(examples)}, 1))
    assert "word dropout 0.2" in shown
    longer = str(RunSummary(task, FitConfig(epochs=3, min_steps=50), {"train": task.data(examples)}, 2))
    assert "training  about 25 epochs, min steps 50" in longer
    assert shown.splitlines()[0] == "scores    from 1.5 to 5" and "classes" not in shown


@pytest.mark.parametrize(("layers", "shown"), [("mix", "a mix of its layers"), ("top", "top layer"), ("all", "all layers")])
def test_the_summary_says_which_layers_are_read(layers: str, shown: str) -> None:
    examples = labelled("yes", "no")
    task = Pairs.build(small(features=FEATURES.replace(layers=layers)), examples, [elmo()])
    assert f"(frozen, {shown})" in str(RunSummary(task, FitConfig(), {"train": task.data(examples)}, 1))


@pytest.mark.parametrize(("network", "pools"), [("esim", False), ("siamese", True)])
def test_the_summary_leaves_out_what_the_network_does_not_use(network: str, pools: bool) -> None:
    examples = labelled("yes", "no")
    task = Pairs.build(small(network=network), examples, [elmo()])
    shown = str(RunSummary(task, FitConfig(), {"train": task.data(examples)}, 1))
    assert ("pooling both" in shown) == ("network layers 1" in shown.replace("\n          ", " ")) == pools


@pytest.mark.parametrize("header", ["sentence1;sentence2;score", "frase_1;frase_2;similitud"])
def test_scores_with_a_decimal_comma(tmp_path, caplog, header):
    path = tmp_path / "scored.csv"
    rows = [f"a long text {each};another long text {each};{each % 5},{each % 7}5\n" for each in range(30)]
    path.write_text(header + "\n" + "".join(rows))
    options = Pairs.guessed_options(path, small())
    assert options["goal"] == "score" and "the labels are numbers (0,05, 1,15, 2,25 ...)" in caplog.text
    pairs = Pairs.read(path, small(**options))
    assert [each.label for each in pairs[:3]] == ["0.05", "1.15", "2.25"] and len(pairs) == 30
    assert Pairs.split_strata(pairs, small(goal="score"))
    config = Pairs.resolve_defaults(small(goal="score"), pairs)
    assert (config.min_score, config.max_score) == (0.05, 4.55)
