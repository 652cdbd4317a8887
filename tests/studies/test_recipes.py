"""Rates of the papers, where an encoder has nothing but a head and nobody says otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import polyseme
from polyseme.studies.recipes import (
    LINEAR_TAGGER,
    PAIR_LAYERS_SIZE,
    RECIPES,
    layer_options,
    network_options,
    recipe_options,
    word_options,
)
from polyseme.tasks.registry import configure_task, task_name, task_options
from tests.encoders.small import elmo
from tests.encoders.small_subwords import bert, gpt
from tests.encoders.test_sequence import ulmfit
from tests.encoders.test_word2vec import table


@pytest.mark.parametrize("make", [bert, gpt, ulmfit])
@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("classification", {"network": "linear"}),
        ("pairs", {"network": "linear"}),
        ("choices", {}),
        ("reading", {"network": "linear"}),
        ("ner", {"network": "linear"}),
        ("ner", {"network_layers": 0, "task_embeddings": False}),
    ],
)
def test_what_was_not_said_is_as_published(make, task: str, options: dict[str, Any]) -> None:
    kind, encoder = task_name(task), make()
    given = {**options, "mode": "finetune"}
    usual = recipe_options(configure_task(kind, given)[0], given, [encoder])
    assert usual == RECIPES[encoder.kind] and set(usual) <= set(task_options(kind))
    said = {**given, "learning_rate": 1e-3}
    assert "learning_rate" not in recipe_options(configure_task(kind, said)[0], said, [encoder])
    for other in (options, {"mode": "finetune"} if options else {}):  # frozen, or with a network of the task's own
        assert recipe_options(configure_task(kind, other)[0], other, [encoder]) == {}
    assert recipe_options(configure_task(kind, given)[0], given, [elmo()]) == {}
    assert recipe_options(configure_task(kind, given)[0], given, [encoder, encoder]) == {}


@pytest.mark.parametrize(
    ("task", "options", "encoders", "expected"),
    [
        ("classification", {}, [elmo()], {"task_embeddings": False}),
        ("classification", {"word_dim": 5}, [elmo()], {}),
        ("classification", {"network": "linear"}, [elmo()], {}),
        ("classification", {"positions": ("output",)}, [elmo()], {}),
        ("classification", {}, [elmo(), elmo()], {}),
        ("tagging", {}, [elmo()], {"word_dropout": 0.4}),
        ("tagging", {"word_dim": 5}, [elmo()], {"word_dropout": 0.4}),
        ("tagging", {"word_dropout": 0.1}, [elmo()], {}),
        ("tagging", {"mode": "finetune"}, [elmo()], {}),
        ("tagging", {"task_embeddings": False}, [elmo()], {}),
        ("tagging", {"network": "linear"}, [elmo()], {}),
        ("tagging", {}, [], {}),
        ("tagging", {}, [table(), elmo()], {}),
        ("pairs", {}, [elmo()], {}),
    ],
)
def test_a_tasks_own_words_beside_encoders(task, options, encoders, expected) -> None:
    assert word_options(task, configure_task(task, options)[0], options, encoders) == expected


@pytest.mark.parametrize(
    ("task", "options", "encoders", "expected"),
    [
        ("pairs", {}, [elmo()], {"layers": "all"}),
        ("pairs", {}, [table(), bert()], {"layers": "all"}),
        ("pairs", {"layers": "mix"}, [elmo()], {}),
        ("pairs", {"mode": "finetune"}, [elmo()], {}),
        ("pairs", {"network": "siamese"}, [elmo()], {}),
        ("pairs", {"network": "linear"}, [bert()], {}),
        ("pairs", {}, [], {}),
        ("pairs", {}, [table()], {}),
        ("classification", {}, [elmo()], {}),
    ],
)
def test_the_layers_that_a_network_for_pairs_reads(task, options, encoders, expected) -> None:
    assert layer_options(task, configure_task(task, options)[0], options, encoders) == expected


def test_many_layers_are_mixed_for_pairs() -> None:
    small = elmo()
    few = PAIR_LAYERS_SIZE // (small.layers * small.dim)
    config = configure_task("pairs", {})[0]
    assert layer_options("pairs", config, {}, [small] * few) and not layer_options("pairs", config, {}, [small] * (few + 1))


@pytest.mark.parametrize("mode", ["frozen", "finetune"])
def test_a_linear_tagger_is_a_layer_over_an_encoder(mode: str, tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("Ann B-PER\nleft O\n\nBob B-PER\nsaw O\n\n" * 5)
    polyseme.train("ner", tmp_path / "a.conll", encoder=bert(), out=tmp_path / "out", network="linear", mode=mode, epochs=1)
    task = polyseme.load_task(tmp_path / "out")
    assert task.recurrent is None and task.crf is not None and not task.crf.transitions.requires_grad
    trained = {name for name, weight in task.named_parameters() if weight.requires_grad and not name.startswith("features.")}
    assert trained == {"scores.weight", "scores.bias"}


def test_what_is_given_beside_a_linear_tagger_stays() -> None:
    options: dict[str, Any] = {"network": "linear", "crf": True}
    config = configure_task("tagging", options)[0]
    assert set(network_options("tagging", config, options, [bert()])) == set(LINEAR_TAGGER) - {"crf"}
    for encoders in ([], [table()], [bert(), elmo()]):
        with pytest.raises(polyseme.PolysemeError, match="one contextual encoder"):
            network_options("tagging", config, options, encoders)
    with pytest.raises(polyseme.PolysemeError, match="no LSTM layers"):
        network_options("tagging", config, {**options, "network_layers": 1}, [bert()])


def test_in_a_run(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("text\tlabel\n" + "the bank\tgood\na river\tbad\n" * 3)
    options: dict[str, Any] = {"network": "linear", "mode": "finetune", "epochs": 1}
    polyseme.train("classification", tmp_path / "a.tsv", encoder=ulmfit(), out=tmp_path / "out", **options)
    told = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    assert told["fitting"]["optim"]["decay"] == "slanted" and told["config"]["features"]["unfreeze"] == "gradual"


def test_pairs_of_a_run_read_all_layers(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("first\tsecond\tlabel\n" + "the bank\ta bank\tsame\na river\tthe bank\tother\n" * 4)
    task = polyseme.train(
        "pairs", tmp_path / "a.tsv", encoder=elmo(), out=tmp_path / "out", epochs=1, text="first", second="second"
    )
    assert task.config.features.layers == "all"
    assert len(polyseme.load_task(tmp_path / "out").predict([("the bank", "a river")])) == 1


def test_a_tagger_of_a_run_has_the_word_dropout_that_follows_from_its_encoder(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("the O\nbank B-X\n\na O\nriver B-X\n\n" * 3)
    for encoder, expected in ((elmo(), 0.4), ("none", 0.05)):
        out = tmp_path / str(expected)
        task = polyseme.train("tagging", tmp_path / "a.conll", dev=tmp_path / "a.conll", encoder=encoder, out=out, epochs=1)
        assert task.config.features.words.word_dropout == expected
