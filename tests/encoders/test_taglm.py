"""TagLM: the top layer of the language models of an ELMo, and its place between the layers of a tagger."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import polyseme
from polyseme.analysis.index import Index
from polyseme.analysis.neighbours import nearest_words
from polyseme.analysis.words import WordSpace
from polyseme.base.errors import PolysemeError
from polyseme.encoders.taglm import TagLm
from polyseme.studies.train import with_default_position
from polyseme.tasks.registry import TASKS, configure_task
from tests.cli.labelled import TINY, write_all
from tests.encoders.small import TRANSFORMER, elmo, sentences

TEXTS = [*sentences(4, seed=2), ["a"], []]


@pytest.mark.parametrize("options", [{}, {"start": "learned"}, {"transformer": TRANSFORMER}, {"form": "both"}])
def test_its_vectors_are_the_top_layer_of_the_elmo_with_the_same_weights(options: dict[str, object]) -> None:
    whole, top = elmo(**options), elmo(**options, kind=TagLm)  # type: ignore[arg-type]
    assert top.layers == 1 and top.dim == whole.dim
    for one, other in zip(whole.embed(TEXTS, layers="top"), top.embed(TEXTS, layers="top"), strict=True):
        np.testing.assert_array_equal(one, other)
    for mine, its in zip(top.embed(TEXTS, layers="mean"), top.embed(TEXTS, layers=0), strict=True):
        np.testing.assert_array_equal(mine, its)
    expected, found = whole(whole.prepare(TEXTS)), top(top.prepare(TEXTS))
    torch.testing.assert_close(found.states, expected.states[-1:])
    torch.testing.assert_close(found.ends, expected.ends[-1:])
    assert [*top.layer_groups()] == [*whole.layer_groups()]


def test_it_is_a_language_model_from_both_sides() -> None:
    whole, top = elmo(output=True), elmo(output=True, kind=TagLm)
    np.testing.assert_array_equal(whole.score(TEXTS[:3]), top.score(TEXTS[:3]))
    carried = [each.embed(TEXTS[:3], layers="top", start="carry", batch_size=1) for each in (whole, top)]
    for one, other in zip(*carried, strict=True):
        np.testing.assert_array_equal(one, other)


def test_words_have_no_vectors_of_their_own() -> None:
    with pytest.raises(PolysemeError, match="models of kind taglm have no static vectors"):
        WordSpace(elmo(output=True, kind=TagLm))


def test_its_neighbours_know_the_sentence() -> None:
    model = elmo(output=True, kind=TagLm)
    index = Index.build(model, [["the", "bank"], ["a", "river", "bank"]])
    found = nearest_words(model, index, ["the", "bank"], 1)
    assert found.static == [] and ["a", "river", "bank"] in [each.sentence for each in found.in_context]


@pytest.mark.parametrize("name", TASKS)
def test_where_its_vectors_stand(name: str) -> None:
    said: list[str] = []
    config = configure_task(name, {"network_layers": 2} if name == "generation" else {})[0]
    position = with_default_position(config, [elmo(kind=TagLm)], said.append).features.positions
    if name in ("tagging", "generation"):
        assert position == ("between",) and not said
    else:
        assert position == config.features.positions and "its vectors enter at input" in said[0]
    for others in ([elmo()], [elmo(kind=TagLm), elmo()], []):
        assert with_default_position(config, others, said.append) is config
    assert len(said) <= 1


def test_a_tagger_around_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write_all(tmp_path))
    elmo(output=True, kind=TagLm).save_pretrained("my-taglm")
    task = polyseme.train("ner", "train.conll", dev="dev.conll", encoder="my-taglm", out="run", **TINY)
    assert task.config.features.positions == ("between",) and task.features.width("input") == task.features.words.dim
    assert polyseme.load_task("run").predict(["Ann in Oslo"]) == task.predict(["Ann in Oslo"])
    options = {**TINY, "positions": ["input"]}
    other = polyseme.train("ner", "train.conll", dev="dev.conll", encoder="my-taglm", out="other", **options)
    assert other.config.features.positions == ("input",)
