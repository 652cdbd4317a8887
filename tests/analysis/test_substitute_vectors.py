"""Neighbours by what could stand in the place of a word, against plain NumPy over the whole vocabulary."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from polyseme.analysis import index as indexes
from polyseme.analysis import substitute_vectors as module
from polyseme.analysis.config import NeighboursConfig
from polyseme.analysis.index import Index, SenseQuestion
from polyseme.analysis.neighbours import neighbours
from polyseme.analysis.sample_senses import probe_samples
from polyseme.analysis.samples import parse_samples
from polyseme.analysis.search import normalised
from polyseme.analysis.substitute_vectors import SubstituteVectors, substitute_vectors
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES
from polyseme.nn.output.full import FullSoftmax
from polyseme.text.vocabulary import Vocabulary
from tests.analysis.test_surroundings import QUERY, TEXT, around, cosine

WORDS = ["<S>", "</S>", "<UNK>", *sorted({word for words in [*TEXT, QUERY] for word in words})]


@pytest.fixture
def encoder() -> Elmo:
    torch.manual_seed(0)
    vocabulary = Vocabulary(WORDS, unknown="<UNK>", begin="<S>", end="</S>")
    return Elmo(SIZES["tiny"], vocabulary=vocabulary, output=FullSoftmax(len(WORDS), SIZES["tiny"].output)).eval()


def expected(encoder: Elmo, words: list[str], place: int, count: int) -> np.ndarray:
    """The vector of the substitutes, from log-probabilities of all words in both directions."""
    assert isinstance(encoder.output, FullSoftmax)
    states = encoder.read([words], start=None)[0][-1, 0]
    left, right = encoder.halves(states)
    both = (encoder.output(left[place]) + encoder.output(right[place + 2])).double().detach().numpy()
    both += np.log(np.arange(len(WORDS)) + 10)
    both[:3] = -np.inf
    best = np.argsort(-both)[:count]
    weights = np.exp(both[best] / 2 - both[best].max() / 2)
    rows = encoder.output.weight.detach().double().numpy()
    rows = rows - rows.mean(0)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return weights @ units[best]


@pytest.mark.parametrize("count", [3, 50])
def test_the_best_words_of_both_directions(encoder: Elmo, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COUNT", count)
    monkeypatch.setattr(module, "_AT_ONCE", 4)
    vectors = substitute_vectors(encoder)
    assert vectors is not None
    top = encoder.embed([QUERY], layers="top")[0]
    found = vectors(np.stack([vectors.at(top, place) for place in range(len(QUERY))]))  # the first and the last word, too
    for place, vector in enumerate(found):
        assert cosine(vector, expected(encoder, QUERY, place, count)) == pytest.approx(1, abs=1e-5)
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_a_cosine_is_the_mean_of_three_between_uses_of_a_word(encoder: Elmo) -> None:
    found = neighbours(encoder, QUERY, position=4, corpus=TEXT, config=NeighboursConfig(count=20, window=3))
    assert found.searched.substitutes and "window 3, substitutes; " in str(found)
    asked, mine = encoder.embed([QUERY])[0][-1], expected(encoder, QUERY, 4, 50)
    assert len(found.in_context) == 20 and {each.word for each in found.in_context} > {"bank"}
    for each in found.in_context:
        top = encoder.embed([each.sentence])[0][-1]
        cosines = [cosine(asked[4], top[each.position]), cosine(around(asked, 4, 3), around(top, each.position, 3))]
        if each.word == "bank":
            cosines.append(cosine(mine, expected(encoder, each.sentence, each.position, 50)))
        assert each.cosine == pytest.approx(np.mean(cosines), abs=2e-3)  # the index is in float16
    assert [each.cosine for each in found.in_context] == sorted((each.cosine for each in found.in_context), reverse=True)


def test_only_the_nearest_uses_are_compared(encoder: Elmo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "COMPARED_BY_SUBSTITUTES", 3)
    index, vectors = Index.build(encoder, TEXT), encoder.embed([QUERY])[0][-1]
    banks = np.array([index.types[word] == "bank" for word in index.words])
    near = set(index.search_in_context(vectors, 4, 3, banks).rows.tolist())
    found = index.search_in_context(vectors, 4, 2, banks, senses=question(encoder, banks))
    assert len(found.rows) == 2 and set(found.rows.tolist()) < near


def question(encoder: Elmo, same_word: np.ndarray) -> SenseQuestion:
    substitutes = substitute_vectors(encoder)
    assert substitutes is not None
    return SenseQuestion(substitutes, same_word)


def test_where_they_do_not_apply(encoder: Elmo, tmp_path: Path) -> None:
    """Without a window, for other layers than the top one, for models that predict no words, and for older indexes."""
    Index.build(encoder, TEXT, tmp_path)
    (norms,) = tmp_path.glob("*/norms.npy")
    norms.unlink()
    assert not neighbours(encoder, QUERY, position=4, corpus=TEXT, index=tmp_path).searched.substitutes
    index = Index.build(encoder, TEXT)
    assert not neighbours(encoder, QUERY, position=4, index=index, config=NeighboursConfig(window=0)).searched.substitutes
    assert not neighbours(encoder, QUERY, position=4, corpus=TEXT, config=NeighboursConfig(layer="mean")).searched.substitutes
    nothing = np.zeros(len(index), dtype=bool)
    top = encoder.embed([QUERY])[0][-1]
    assert not len(index.search_in_context(top, 4, 3, nothing, senses=question(encoder, nothing)).rows)
    assert substitute_vectors(Elmo(SIZES["tiny"]).eval()) is None


def test_new_weights_give_new_vectors(encoder: Elmo) -> None:
    before = substitute_vectors(encoder)
    assert substitute_vectors(encoder) is before
    assert isinstance(encoder.output, FullSoftmax)
    with torch.no_grad():
        encoder.output.weight.mul_(2)
    assert substitute_vectors(encoder) is not before


def test_the_probe_has_a_row_for_them(encoder: Elmo, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        f"bank\t{sense}\t{' '.join(words[:2])} [bank] {end}" for sense, end in (("a", "x"), ("b", "y")) for words in TEXT[:2]
    ]
    samples = parse_samples("word\tsense\tsentence\n" + "\n".join([*lines, "bank\tb\t[bank] first"]) + "\n", "test")
    asked = []
    monkeypatch.setattr(SubstituteVectors, "_some", lambda self, states: asked.append(states) or normalised(states))
    assert list(probe_samples(encoder, samples).rows)[-2:] == ["layer 2 with window", "layer 2 with window and substitutes"]
    tops = encoder.embed([encoder.words(each.sentence) for each in samples], layers="top")
    substitutes = substitute_vectors(encoder)
    assert substitutes is not None
    expected = [substitutes.at(top, position) for top, position in zip(tops, [2, 2, 2, 2, 0], strict=True)]
    np.testing.assert_allclose(np.concatenate(asked), expected, atol=1e-6)
