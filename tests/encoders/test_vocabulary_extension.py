"""New words for old models: the probabilities that were there, shared out exactly, and the vectors that were there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import polyseme
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig, WordTableConfig
from polyseme.encoders.vocabulary_extension import (
    add_output_layer,
    extend_vocabulary,
    unknown_log_probs,
    unknown_shares,
)
from polyseme.nn.output.adaptive import AdaptiveSoftmax
from polyseme.nn.output.full import FullSoftmax, TiedSoftmax
from polyseme.text.vocabulary import Vocabulary
from tests.encoders.small import LSTM, elmo, sentences, vocabulary

NEW = ["glucose", "stent", "漢方", "-"]


def tied() -> Elmo:
    torch.manual_seed(1)
    config = ElmoConfig(characters=None, words=WordTableConfig(size=len(vocabulary()), dim=8), dim=8, lstm=LSTM)
    model = Elmo(config, vocabulary=vocabulary())
    torch.nn.init.normal_(model.tie_output().bias)
    return model.eval()


def with_bias(form: str) -> Elmo:
    model = elmo(form=form, output=True)
    assert isinstance(model.output, FullSoftmax)
    torch.nn.init.normal_(model.output.bias)
    return model


MODELS = {
    "characters": lambda: with_bias("characters"),
    "words": lambda: with_bias("words"),
    "both": lambda: with_bias("both"),
    "tied": tied,
}


@pytest.mark.parametrize("kind", MODELS)
def test_the_unknown_word_shares_its_probability(kind: str) -> None:
    model = MODELS[kind]()
    states = torch.randn(50, 8, dtype=torch.float64)
    assert model.output is not None
    old = model.double().output(states).exp()  # type: ignore[misc]
    extend_vocabulary(model, NEW)
    new = model.output(states).exp()
    size, unknown = old.shape[1], 2
    assert model.output.size == new.shape[1] == size + len(NEW) == len(model.vocabulary or [])
    others = [row for row in range(size) if row != unknown]
    torch.testing.assert_close(new[:, others], old[:, others], rtol=1e-12, atol=0)
    shares = new[:, [unknown, *range(size, size + len(NEW))]]
    torch.testing.assert_close(shares.sum(1), old[:, unknown], rtol=1e-12, atol=0)
    torch.testing.assert_close(shares, (old[:, unknown] / (len(NEW) + 1))[:, None].expand_as(shares), rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", MODELS)
def test_shares_of_the_unknown_word(kind: str) -> None:
    model = MODELS[kind]()
    states = torch.randn(50, 8, dtype=torch.float64)
    old = model.double().output(states)  # type: ignore[misc]
    extend_vocabulary(model, NEW, [0.04, 0.03, 0.02, 0.01])
    new = model.output(states)  # type: ignore[misc]
    size, unknown = old.shape[1], 2
    others = [row for row in range(size) if row != unknown]
    torch.testing.assert_close(new[:, others], old[:, others], rtol=1e-12, atol=1e-14)
    shares = (new[:, [unknown, *range(size, size + len(NEW))]] - old[:, unknown, None]).exp()
    torch.testing.assert_close(
        shares, torch.tensor([0.9, 0.04, 0.03, 0.02, 0.01]).double().expand_as(shares), rtol=1e-6, atol=0
    )
    merged = unknown_log_probs(model.output, states, unknown, size, numbers=60)  # type: ignore[arg-type]
    torch.testing.assert_close(merged, old[:, unknown], rtol=1e-12, atol=1e-12)


def test_rare_words_leave_much_to_the_unknown_token() -> None:
    shares = unknown_shares([6, 2], others=10, other_words=10)  # as in Witten and Bell: 18 tokens and 12 types
    assert shares == [0.2, 2 / 30]
    assert sum(unknown_shares([1], others=0, other_words=0)) == 0.5


@pytest.mark.parametrize("kind", MODELS)
def test_vectors_stay_and_the_folder_holds_it(kind: str, tmp_path: Path) -> None:
    model = MODELS[kind]()
    texts = [*sentences(5), ["the", *NEW, "cat"]]
    before = model.embed(texts)
    extend_vocabulary(model, NEW[:2])
    extend_vocabulary(model, NEW[2:])
    assert model.vocabulary is not None and model.vocabulary.words[-4:] == NEW and model.vocabulary.ids(["stent"]) == [22]
    assert all(weight.requires_grad for weight in model.parameters())
    for found in (model, polyseme.load(model.save_pretrained(tmp_path / "m"))):
        for a, b in zip(before, found.embed(texts), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)
    if kind == "tied":
        assert isinstance(model.output, TiedSoftmax) and model.output.weight is model.tokens.words.weight  # type: ignore[union-attr]
    if model.config.words is not None:
        assert model.config.words.size == len(model.vocabulary) == len(model.tokens.words.weight)  # type: ignore[union-attr]


def test_rows_that_no_word_had_are_taken() -> None:
    torch.manual_seed(0)
    config = ElmoConfig(characters=None, words=WordTableConfig(size=30, dim=5), dim=8, lstm=LSTM)
    model = Elmo(config, vocabulary=vocabulary())
    extend_vocabulary(model, NEW)
    table = model.tokens.words.weight  # type: ignore[union-attr]
    assert len(table) == 25 and all(torch.equal(table[row], table[2]) for row in range(21, 25))


def test_a_new_output_layer() -> None:
    model = elmo()
    add_output_layer(model, ["<S>", "</S>", "<UNK>", "a", "b"])
    assert model.vocabulary is not None and len(model.vocabulary) == 5 and model.output is not None
    assert model.perplexity([["a", "c"]]).mean < 50 and "output" in model.layer_groups()
    table = elmo(form="words")
    add_output_layer(table, ["never", "looked", "at"])
    assert table.output is not None and table.output.size == len(vocabulary())
    with pytest.raises(UsageError, match="an output layer already"):
        add_output_layer(table, [])


def test_mistakes() -> None:
    with pytest.raises(UsageError, match="'cat' is in the vocabulary already"):
        extend_vocabulary(elmo(output=True), ["new", "cat"])
    with pytest.raises(UsageError, match="given twice"):
        extend_vocabulary(elmo(output=True), ["new", "new"])
    with pytest.raises(PolysemeError, match="no vocabulary"):
        extend_vocabulary(elmo(), ["new"])
    for wrong in ([0.1], [0.5, 0.5], [0.0, 0.1]):
        with pytest.raises(UsageError, match=r"shares are . numbers for 2 words; give a positive one each, below 1 in sum"):
            extend_vocabulary(elmo(output=True), ["new", "newer"], wrong)
    clusters = elmo(output=True)
    clusters.output = AdaptiveSoftmax(len(vocabulary()), 8)
    with pytest.raises(PolysemeError, match="adaptive output layer cannot be extended: set new_words to 0"):
        extend_vocabulary(clusters, ["new"])
    lost = elmo(output=True)
    lost.vocabulary = Vocabulary([word.replace("<UNK>", "<other>") for word in vocabulary()])
    with pytest.raises(PolysemeError, match="lacks the unknown token '<UNK>'"):
        extend_vocabulary(lost, ["new"])
