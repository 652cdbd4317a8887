"""Held-out parts and folds: random, stratified, and without a group on both sides."""

from collections import Counter

import pytest

from polyseme.base.errors import UsageError
from polyseme.tasks.registry import task_class, task_config_class
from polyseme.tasks.splits import SplitPlan, quantiles, split_plan
from polyseme.text.labelled.conll import TaggedSentence
from tests.analysis.real import real


def plan(labels, groups=None) -> SplitPlan:
    return SplitPlan([groups or list(range(len(labels)))], list(labels))


def test_a_file_sorted_by_label():
    labels = "a" * 600 + "b" * 300 + "c" * 100
    train, dev = plan(labels).hold_out(seed=3)
    assert sorted(train + dev) == list(range(1000)) and train == sorted(train) and dev == sorted(dev)
    assert Counter(labels[number] for number in dev) == {"a": 60, "b": 30, "c": 10}


def test_the_seed_decides():
    parts = [plan("ab" * 50).hold_out(seed=seed)[1] for seed in (0, 0, 1, 2)]
    assert parts[0] == parts[1] and len({tuple(part) for part in parts}) == 3


def test_every_class_with_two_texts_is_on_both_sides():
    labels = ["common"] * 50 + [f"rare{number}" for number in range(9)] * 2 + ["once"]
    train, dev = plan(labels).hold_out(seed=1)
    sides = [{labels[number] for number in side} for side in (train, dev)]
    assert sides[0] - {"once"} == sides[1] - {"once"} and "once" in sides[0] | sides[1]


def test_equal_texts_stay_together():
    groups = [number // 3 for number in range(300)]
    train, dev = plan(["x", "y"] * 150, groups).hold_out(seed=5)
    assert len(dev) in (30, 33) and not {groups[number] for number in train} & {groups[number] for number in dev}
    for fold in plan(["x", "y"] * 150, groups).folds(7, seed=5):
        inside = {groups[number] for number in fold}
        assert 40 <= len(fold) <= 45 and all(number in fold for number in range(300) if groups[number] in inside)


def test_a_text_that_is_half_of_the_data_is_divided():
    train, dev = plan(["x"] * 100, [0] * 50 + [number // 2 for number in range(2, 52)]).hold_out(seed=0)
    assert len(dev) == 10 and min(train) < 50


@pytest.mark.parametrize(("count", "fewest", "held"), [(2, 1, 1), (3, 2, 2), (5, 1, 1), (20, 2, 2), (4, 3, 3)])
def test_few_examples(count, fewest, held):
    train, dev = plan(["x"] * count).hold_out(seed=0, fewest=fewest)
    assert (len(train), len(dev)) == (count - held, held)


def test_folds_have_equal_shares():
    labels = "a" * 63 + "b" * 40
    folds = plan(labels).folds(10, seed=0)
    assert sorted(number for fold in folds for number in fold) == list(range(103))
    assert {len(fold) for fold in folds} == {10, 11}
    assert all(sum(labels[number] == "b" for number in fold) == 4 for fold in folds)
    with pytest.raises(UsageError, match="folds=5 needs as many examples with different texts; the data has 3"):
        plan("aab", [0, 1, 2]).folds(5, seed=0)


def test_documents_stay_together_if_there_are_enough():
    def sentences(documents: int) -> list[TaggedSentence]:
        return [TaggedSentence([f"w{number}"], ["O"], document=number * documents // 60 + 1) for number in range(60)]

    kind, config = task_class("tagging"), task_config_class("tagging")()
    many = sentences(12)
    train, dev = split_plan(kind, many, config).hold_out(seed=0)
    assert len(dev) == 5 and len({many[number].document for number in dev}) == 1
    assert many[dev[0]].document not in {many[number].document for number in train}
    assert len(split_plan(kind, sentences(2), config).hold_out(seed=0)[1]) == 6


def test_scores_are_stratified_by_quantiles():
    numbers = [number / 40 for number in range(200)]
    dev = SplitPlan([], quantiles(numbers)).hold_out(seed=0)[1]
    assert len(dev) == 20 and Counter(int(numbers[number] * 2) for number in dev) == dict.fromkeys(range(10), 2)
    assert len(SplitPlan([], quantiles(numbers[:20])).hold_out(seed=0)[1]) == 2


@pytest.mark.parametrize(
    ("task", "file"),
    [
        pytest.param("classification", "sentence_classification_en/rt-polarity.all", marks=pytest.mark.slow),
        pytest.param("roles", "srl_propbank_ewt_en/ewt.dev.jsonl.gz", marks=pytest.mark.slow),
        pytest.param("reading", "rc_squad1.1_subset_en/squad_subset.dev.json.gz", marks=pytest.mark.slow),
        pytest.param("coreference", "coref_litbank_en/litbank.train.jsonlines.gz", marks=pytest.mark.slow),
        pytest.param("pairs", "nli_snli_subset_en/snli_subset.test.tsv", marks=pytest.mark.slow),
        ("tagging", "ner_conll2003_en/eng.testb"),
    ],
)
def test_real(task, file):
    kind, config = task_class(task), task_config_class(task)()
    examples = kind.read(real(file.split("/")[0]) / file.split("/")[1], config)
    plan = split_plan(kind, examples, config)
    train, dev = plan.hold_out(seed=1)
    assert 0.08 < len(dev) / len(examples) < 0.12
    groups = plan.groups[0]
    assert not {groups[number] for number in train} & {groups[number] for number in dev}
