"""Classifiers: what they read from tables and trees, what they score, what they refuse, and that they learn."""

from __future__ import annotations

import gzip
import logging
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.base.run import Run
from polyseme.nn.config import CharactersConfig
from polyseme.tasks.classification import Classification, LabelledText
from polyseme.tasks.classification_config import ClassificationConfig
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.features import TextVectors
from polyseme.tasks.fit import Splits, TaskBuilder, fit
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.labels import TextPooler
from polyseme.tasks.predictions import LabelPrediction
from polyseme.text.labelled.text_in_context import document_of
from polyseme.text.words import get_splitter
from polyseme.training.optim_config import OptimConfig
from tests.encoders.small import elmo

FEATURES = FeaturesConfig(words=TaskWordConfig(dim=10, characters=CharactersConfig(dim=4, filters=((2, 5),), highway_layers=0)))
SENTENCES = [["It", "'s", "fun"], ["So", "so"], ["A", "film"], ["So", "fun"]]
TREES = "(3 (2 It) (4 (2 's) (4 fun)))\n\n(1 (2 So) (2 so))\n(2 (2 A) (2 film))\n"


def small(**changes: Any) -> ClassificationConfig:
    return ClassificationConfig(**({"hidden_size": 8, "features": FEATURES} | changes))


def read(folder: Path, content: str, name: str = "data.txt", training: bool = False, **config: Any) -> list[LabelledText]:
    (folder / name).write_text(content, encoding="utf-8")
    return Classification.read(folder / name, small(**config), training=training)


# ---- reading


def test_tables_by_well_known_names_and_by_number(tmp_path: Path) -> None:
    expected = [LabelledText("So good.", "1"), LabelledText("Bad, bad.", "0")]
    assert read(tmp_path, "sentence\tlabel\nSo good.\t1\nBad, bad.\t0\n", "a.tsv") == expected
    assert read(tmp_path, 'label,review\n1,So good.\n0,"Bad, bad."\n', "a.csv") == expected
    assert read(tmp_path, "x\t1\t*\tSo good.\nx\t0\t*\tBad, bad.\n", "cola.tsv", text="3", label="1") == expected
    assert read(tmp_path, "1 So good.\n0 Bad, bad.\n", "mr.txt") == expected
    assert [example.where for example in read(tmp_path, "sentence\tlabel\na\t1\nb\t0\n", "b.tsv")] == [2, 3]


def test_scored_files_are_read_with_the_labels_of_the_training_data(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\nso, so, neg\nfine,Pos\n", encoding="utf-8")
    found, merged = Classification.read_scored(tmp_path / "a.csv", small(strict=False), ["neg", "pos"])
    assert found == [LabelledText("so, so", "neg"), LabelledText("fine", "pos")] and merged == {"Pos": "pos"}
    assert len(Classification.read(tmp_path / "a.csv", small(strict=False))) == 1


def test_rows_set_aside_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = read(tmp_path, "text\tlabel\na b\t1\n\t0\nc\t0\n", "a.tsv", strict=False)
    assert [example.label for example in found] == ["1", "0"]
    assert "skipped 1 of 3 rows" in caplog.text
    with pytest.raises(FormatError, match=r"no usable row"):
        read(tmp_path, "text\tlabel\n\t1\n", "b.tsv", strict=False)


def test_pairs_are_refused(tmp_path: Path) -> None:
    content = "sentence1\tsentence2\tlabel\na\tb\t1\n"
    with pytest.raises(UsageError, match=r"holds pairs of texts: train `pairs`"):
        read(tmp_path, content, "a.tsv")
    assert read(tmp_path, content, "a.tsv", text="sentence2") == [LabelledText("b", "1")]


def test_trees_are_known_by_their_brackets(tmp_path: Path) -> None:
    sentences = [(["It", "'s", "fun"], "3"), (["So", "so"], "1"), (["A", "film"], "2")]
    assert [(each.text, each.label) for each in read(tmp_path, TREES)] == sentences
    (tmp_path / "trees.gz").write_bytes(gzip.compress(("\n" + TREES).encode()))
    assert len(Classification.read(tmp_path / "trees.gz", small())) == 3
    assert [each.label for each in read(tmp_path, TREES, classes=2)] == ["positive", "negative"]
    with pytest.raises(FormatError, match=r"neutral sentences only"):
        read(tmp_path, "(2 (2 A) (3 film))\n", classes=2)
    # a table whose first text begins with a bracket says what it is
    for text, options in (("(2 well", {"format": "tsv"}), ("(2 well", {}), ("(c) well", {})):
        table = read(tmp_path, f"{text}\t1\nso\t0\n", text="0", label="1", **options)
        assert [example.text for example in table] == [text, "so"]


def test_phrases_are_for_training_only(tmp_path: Path) -> None:
    def phrases(**options: Any) -> list[tuple[str, str | None]]:
        return [(" ".join(each.text), each.label) for each in read(tmp_path, TREES, **options)]

    every = [("It 's fun", "3"), ("It", "2"), ("'s fun", "4"), ("'s", "2"), ("fun", "4"), ("So so", "1"), ("So", "2")]
    every += [("so", "2"), ("A film", "2"), ("A", "2"), ("film", "2")]
    assert phrases(phrases="all", training=True) == every
    assert phrases(phrases="all") == [every[0], every[5], every[8]]
    double = TREES + "(3 (3 So) (2 so))\n"
    assert [each.label for each in read(tmp_path, double, phrases="distinct", training=True) if each.text == ["So"]] == [
        "2",
        "3",
    ]
    two = phrases(phrases="distinct", classes=2, training=True)
    assert two == [("It 's fun", "positive"), ("'s fun", "positive"), ("fun", "positive"), ("So so", "negative")]


@pytest.mark.parametrize("cached", [False, True])
def test_phrases_are_read_in_their_sentence(tmp_path: Path, cached: bool) -> None:
    more = TREES + "(3 (3 So) (3 fun))\n"  # the label of fun differs: another phrase, in another sentence
    options: dict[str, Any] = {"phrases": "distinct", "phrase_context": True}
    examples = read(tmp_path, more, training=True, **options)
    assert [(each.text, each.label) for each in examples] == [
        (each.text, each.label) for each in read(tmp_path, more, training=True, phrases="distinct")
    ]
    encoder = elmo()
    task = Classification.build(small(**options), examples, [encoder])
    data = task.data(examples)
    if cached:
        data.cache(task.features, tmp_path, precision="fp32")
    inputs = task.prepare(data.gather(range(len(data)))).inputs[0].frozen[0]
    sentences = {" ".join(words): array for words, array in zip(SENTENCES, encoder.embed(SENTENCES), strict=True)}
    places = {("fun", "4"): ("It 's fun", 2), ("fun", "3"): ("So fun", 1), ("'s fun", "4"): ("It 's fun", 1)}
    for row, example in enumerate(examples):
        sentence, begin = places.get((" ".join(example.text), str(example.label)), (" ".join(example.text), 0))
        if sentence in sentences:
            wanted = sentences[sentence][:, begin : begin + len(example.text)]
            torch.testing.assert_close(inputs[:, row, : len(example.text)], torch.from_numpy(wanted), atol=1e-6, rtol=0)
    alone = torch.from_numpy(encoder.embed([["fun"]])[0])
    row = next(row for row, example in enumerate(examples) if example.text == ["fun"])
    assert not torch.allclose(inputs[:, row, :1], alone, atol=1e-3)


def test_whole_sentences_need_no_context(tmp_path: Path) -> None:
    for training in (False, True):
        first, second = (
            read(tmp_path, TREES, training=training, phrases="none", phrase_context=context) for context in (False, True)
        )
        assert first == second and [document_of(each.text) for each in second] == [(tuple(each.text),) for each in first]


# ---- configs and labels


def test_configs_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"hidden_size is 0; allowed: 1 or more"):
        small(hidden_size=0)
    with pytest.raises(ConfigError, match=r"network_layers is -1"):
        small(layers=-1)
    with pytest.raises(ConfigError, match=r"only taggers and generation have 'between'; allowed here: input, output"):
        small(features=FEATURES.replace(positions=("input", "between")))
    for wrong in ({"features": FEATURES.replace(mode="finetune")}, {"network": "linear", "features": FeaturesConfig()}):
        with pytest.raises(ConfigError, match=r"phrase_context=True needs frozen encoders"):
            small(phrase_context=True, **wrong)
    with pytest.raises(ConfigError, match=r"network is 'bnc'; allowed: bcn, pooled"):
        ClassificationConfig.from_dict({"network": "bnc"})
    config = small(format="tsv", classes=2, header=False, text="3")
    assert ClassificationConfig.from_dict(config.to_dict()) == config


def test_labels_must_be_there() -> None:
    with pytest.raises(PolysemeError, match=r"all 2 examples have the label 'a'; a classifier needs two"):
        Classification.build(small(), [LabelledText("x", "a"), LabelledText("y", "a")])
    with pytest.raises(UsageError, match=r"1 of 2 examples have no label"):
        Classification.build(small(), [LabelledText("x", "a"), LabelledText("y")])
    task = Classification.build(small(), [LabelledText("x", "b"), LabelledText("y", "a")])
    assert task.labels == ["a", "b"]
    with pytest.raises(UsageError, match=r"no label 'c'; it predicts a, b"):
        task.prepare(task.data([LabelledText("x", "c")]).gather([0]))
    with pytest.raises(UsageError, match=r"put it into a list"):
        task.predict("x y")


def test_the_splitter_cuts_strings_and_leaves_words() -> None:
    examples = [LabelledText("It's fun.", "a"), LabelledText(["It's", "fun."], "b")]
    task = Classification.build(small(), examples)
    assert task.data(examples).texts == [[["It", "'s", "fun", "."]], [["It's", "fun."]]]
    task = Classification.build(small(), examples, splitter=get_splitter("whitespace"))
    assert task.data(examples).texts == [[["It's", "fun."]], [["It's", "fun."]]]


# ---- scores


def test_scores_by_hand() -> None:
    gold, found = ["a", "a", "a", "b", "b", "new"], ["a", "a", "b", "b", "a", "a"]
    task = Classification.build(small(metric="matthews"), [LabelledText("x", "a"), LabelledText("y", "b")])
    answers = [LabelPrediction(label, 1.0, {label: 1.0}) for label in found]
    scores = task.score([LabelledText("x", label) for label in gold], answers)
    # a: precision 2/4, recall 2/3, F1 4/7; b: 1/2, 1/2, 1/2; a label that training never saw: 0
    assert scores["accuracy"] == pytest.approx(3 / 6)
    assert scores["macro_f1"] == pytest.approx((4 / 7 + 1 / 2 + 0) / 3)
    # (3 * 6 - (3 * 4 + 2 * 2 + 1 * 0)) / sqrt((36 - 14) * (36 - 20))
    assert scores["matthews"] == pytest.approx(2 / (22 * 16) ** 0.5)
    assert task.main_metric == "matthews" and task.score_counts([LabelledText("x", "a")], answers[:1]) is None


def test_tallies_sum_up_to_the_accuracy() -> None:
    task = Classification.build(small(), [LabelledText("x", "a"), LabelledText("y", "b")])
    answers = [LabelPrediction(label, 1.0, {label: 1.0}) for label in "aab"]
    found = task.score_counts([LabelledText("x", label) for label in ("a", "b", "new")], answers)
    assert found is not None and found.tolist() == [[1, 1], [0, 1], [0, 1]]


def test_probabilities_belong_to_the_label() -> None:
    task = Classification.build(small(), [LabelledText("x", label) for label in "abc"])
    choice = task.predict(["x y"])[0]
    assert choice.probability == choice.probabilities[choice.label] == max(choice.probabilities.values())
    assert list(choice.probabilities) == ["a", "b", "c"] and sum(choice.probabilities.values()) == pytest.approx(1)


# ---- networks


def test_pooling_by_hand() -> None:
    vectors = torch.tensor([[[1.0, -2.0], [3.0, -4.0], [9.0, 9.0]], [[9.0, 9.0]] * 3])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    text = TextVectors(vectors, None, vectors[..., :1], mask, torch.tensor([2, 0]))

    def pooler(pooling: Any, output: int) -> TextPooler:
        features: Any = SimpleNamespace(width={"input": 2, "output": output}.__getitem__)
        return TextPooler(small(pooling=pooling, layers=0, hidden_size=4), features).eval()

    body = pooler("both", 1)
    assert body.dim == 6
    assert body(text).tolist() == [[2.0, -3.0, 2.0, 3.0, -2.0, 3.0], [0.0] * 6]
    text = TextVectors(vectors, None, None, mask, torch.tensor([2, 0]))
    assert pooler("max", 0)(text).tolist() == [[3.0, -2.0], [0.0, 0.0]]


@pytest.mark.parametrize("network", ["bcn", "pooled"])
@pytest.mark.parametrize("positions", [("input",), ("output",), ("input", "output")])
def test_an_encoder_is_heard_at_each_position(network: Any, positions: Any) -> None:
    """Words that the task cannot tell apart (no characters, one unknown vector) differ by what the encoder says."""
    words = TaskWordConfig(dim=4, characters=None)
    config = small(network=network, features=FeaturesConfig(words=words, positions=positions))
    torch.manual_seed(0)
    task = Classification.build(config, [LabelledText("x", "a"), LabelledText("y", "b")], [elmo()])
    one, two = task.predict(["the bank", "the river"])
    assert abs(one.probabilities["a"] - two.probabilities["a"]) > 1e-6
    alone = Classification.build(config, [LabelledText("x", "a"), LabelledText("y", "b")])
    one, two = alone.predict(["the bank", "the river"])
    assert one.probabilities == pytest.approx(two.probabilities, abs=1e-7)


def test_batch_norm_can_be_left_out() -> None:
    examples = [LabelledText("x", "a"), LabelledText("y", "b")]
    for wanted in (True, False):
        names = Classification.build(small(network="bcn", batch_norm=wanted), examples).state_dict()
        assert any(name.endswith("running_mean") for name in names) is wanted
    assert not ClassificationConfig().batch_norm


def sentiments(count: int, seed: int) -> list[LabelledText]:
    """A text is good, bad or neither by one of its words; which one it is, is for the network to find."""
    source, found = random.Random(seed), []
    signs = {"good": ["great", "fun", "fine"], "bad": ["awful", "dull", "poor"], "plain": ["long", "new", "french"]}
    for number in range(count):
        label = list(signs)[number % 3]
        words = source.choices(["the", "a", "film", "is", "it", "and", "was", "plot"], k=source.randint(2, 7))
        words.insert(source.randint(0, len(words)), source.choice(signs[label]))
        found.append(LabelledText(" ".join(words), label))
    return found


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"network": "bcn"}, marks=pytest.mark.slow),
        pytest.param({"network": "pooled"}, marks=pytest.mark.slow),
        {"network": "pooled", "layers": 0},
    ],
    ids=str,
)
def test_a_toy_set_is_learned(config: dict[str, Any], tmp_path: Path) -> None:
    fitting = FitConfig(batch_size=40, epochs=16, patience=16, optim=OptimConfig(learning_rate=0.02, weight_decay=0.0))
    outcome = fit(
        TaskBuilder(Classification, small(hidden_size=16, dropout=0.1, **config)),
        Splits(sentiments(240, 1), sentiments(60, 2), sentiments(90, 3)),
        tmp_path / "out",
        fitting,
        Run(seed=1),
    )
    assert outcome.scores["test"]["accuracy"] > 0.95
    asked = sentiments(90, 3)
    found = outcome.task.predict([example.text for example in asked])
    right = sum(choice.label == example.label for choice, example in zip(found, asked, strict=True))
    assert right / len(asked) == pytest.approx(outcome.scores["test"]["accuracy"])
