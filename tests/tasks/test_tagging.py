"""Taggers: they learn a toy language, give only legal tags, score as CoNLL does, and say what is wrong with data."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.run import Run
from polyseme.metrics.spans import spans
from polyseme.tasks.features import FeaturesConfig
from polyseme.tasks.fit import FitConfig, _share, fit
from polyseme.tasks.folder import load
from polyseme.tasks.tagging import Tagging, TaggingConfig
from polyseme.tasks.words import WordsConfig
from polyseme.text.labelled.conll import Tagged
from polyseme.training.optim import OptimConfig

NAMES, PLACES = ["Anna", "Omar", "Lena", "Igor"], ["Paris", "Rome", "Oslo", "Lima"]
SMALL = TaggingConfig(hidden=16, layers=1, dropout=0.0, features=FeaturesConfig(words=WordsConfig(dim=12)))
QUICK = FitConfig(batch=8, epochs=12, patience=12, optim=OptimConfig(learning_rate=0.02, weight_decay=0.0, warmup=0.0))


def sentences() -> list[Tagged]:
    made = []
    for name in NAMES:
        for place in PLACES:
            made.append(Tagged([name, "Smith", "saw", place, "."], ["B-PER", "I-PER", "O", "B-LOC", "O"]))
            made.append(Tagged(["In", place, name, "slept"], ["O", "B-LOC", "B-PER", "O"]))
    return made


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Tagging:
    out = tmp_path_factory.mktemp("run")
    outcome = fit(Tagging, sentences(), sentences()[:8], out, SMALL, QUICK, Run(seed=1))
    assert outcome.scores["dev"]["f1"] == 1.0 and (out / "result.json").is_file()
    return outcome.task  # type: ignore[return-value]


def test_it_learns_and_answers(tagger: Tagging) -> None:
    (found,) = tagger.predict(["In Oslo Lena slept"])
    assert found == Tagged(["In", "Oslo", "Lena", "slept"], ["O", "B-LOC", "B-PER", "O"])
    assert tagger.predict([[], ["Rome"]])[0] == Tagged([], [])


def test_tags_are_always_legal(tagger: Tagging) -> None:
    strange = [["Smith"] * 7, ["Rome", "Anna", "saw", "Smith"], ["zzz", "."]]
    for tagged in tagger.predict(strange):
        assert len(tagged.tags) == len(tagged.words)
        for begin, end, kind in spans(tagged.tags):
            assert tagged.tags[begin:end] == [f"B-{kind}"] + [f"I-{kind}"] * (end - begin - 1)


def test_words_of_a_text_are_spans_without_types(tmp_path: Path) -> None:
    data = [Tagged(list("他在北京"), list("SSBE")), Tagged(list("北京人好"), list("BMES"))] * 4
    outcome = fit(Tagging, data, data, tmp_path, SMALL, QUICK, Run(seed=1))
    assert (outcome.task.main, outcome.scores["dev"]["f1"]) == ("f1", 1.0)
    assert load(tmp_path).predict([list("他在北京")]) == [data[0]]


def test_a_share_of_the_data_is_tagged_as_all_of_it(tmp_path: Path) -> None:
    slip = Tagged(["to", "Rome"], ["O", "I-LOC"])
    data = [*(Tagged([place], ["B-LOC"]) for place in PLACES * 30), slip]
    seed = next(seed for seed in range(1000) if slip in _share(data, 0.04, seed))  # one of five, and no slip any more
    outcome = fit(Tagging, data, data, tmp_path, SMALL, QUICK.replace(epochs=1, share=0.04), Run(seed=seed))
    assert isinstance(outcome.task, Tagging) and outcome.task.scheme == "BIO"


def test_plain_tags_without_crf(tmp_path: Path) -> None:
    data = [Tagged(["a", "dog", "runs"], ["DET", "NOUN", "VERB"]), Tagged(["the", "cat"], ["DET", "NOUN"])] * 4
    outcome = fit(Tagging, data, data, tmp_path, SMALL.replace(crf=False), QUICK, Run())
    assert outcome.task.main == "accuracy" and outcome.scores["dev"]["accuracy"] == 1.0
    assert load(tmp_path).answer(outcome.task.data(data)) == [each.tags for each in data]


def test_without_crf_there_are_no_impossible_tags() -> None:
    data = [Tagged(["Ann", "Smith", "ran"], ["B-PER", "I-PER", "O"]), Tagged(["Oslo"], ["B-LOC"])]
    for seed in range(5):
        torch.manual_seed(seed)
        task = Tagging.build(SMALL.replace(crf=False), data).eval()
        assert not any(weight.requires_grad for weight in task.crf.parameters())
        (tagged,) = task.predict([["Ann", "Smith", "ran", "to", "Oslo", "and", "Ann"]])
        for before, tag in itertools.pairwise(["O", *tagged.tags]):
            assert not tag.startswith("I-") or before[2:] == tag[2:]


def test_files_in_iob1_come_back_in_iob1(tmp_path: Path) -> None:
    file = tmp_path / "train.txt"
    file.write_text("-DOCSTART- -X- O O\n\nAnna NNP I-NP I-PER\nsaw VBD I-VP O\nRome NNP I-NP I-LOC\n\nOslo NNP I-NP I-LOC\n")
    data = Tagging.read(file, SMALL)
    made = Tagging.build(SMALL, data)
    assert isinstance(made, Tagging) and made.scheme == "IOB1"
    assert all(tag == "O" or tag[0] in "IB" for tagged in made.predict(["Anna saw Rome"]) for tag in tagged.tags)


@pytest.mark.parametrize(("text", "where"), [
    ("Anna B-PER\nSmith M-PER\n\nRome I-LOC\n", ":4.*'I-LOC'"),
    ("Anna B-PER\nSmith\n", ":2.*one column"),
    ("Anna B-PER\nSmith NNP I-PER\n", ":2.*3 columns"),
    ("", "no sentences"),
])  # fmt: skip
def test_bad_data_is_told_by_its_line(tmp_path: Path, text: str, where: str) -> None:
    file = tmp_path / "bad.txt"
    file.write_text(text)
    with pytest.raises(FormatError, match=where):
        Tagging.read(file, SMALL)


@pytest.mark.parametrize(
    ("tag", "told"), [("_", "'_'; _ stands for an empty column; a tagger needs two"), ("O", "'O'; a tagger")]
)
def test_one_tag_is_nothing_to_learn(tmp_path: Path, tag: str, told: str) -> None:
    data = [Tagged(["In", "Rome"], [tag, tag]), Tagged(["Anna"], [tag])]
    with pytest.raises(PolysemeError, match=rf"all 3 words have the tag {told}.*--column"):
        fit(Tagging, data, data, tmp_path, SMALL, QUICK, Run())


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="hidden"):
        TaggingConfig(hidden=0)
    with pytest.raises(ConfigError, match="between"):
        TaggingConfig(layers=1, features=FeaturesConfig(positions=("between",)))
