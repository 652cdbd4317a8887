"""The words around a word: the mean of two cosines, against NumPy, word by word."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polyseme.analysis import index as indexes
from polyseme.analysis.config import NeighboursConfig
from polyseme.analysis.index import Index
from polyseme.analysis.neighbours import neighbours
from polyseme.analysis.sample_senses import probe_samples
from polyseme.analysis.samples import parse_samples
from polyseme.analysis.span_vectors import layer_views, span_vectors
from polyseme.analysis.surroundings import surroundings
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES

TEXT = [
    ["the", "old", "bank", "of", "the", "wide", "river"],
    ["a", "bank", "lends", "money", "to", "the", "people", "of", "this", "town"],
    ["bank"],
    ["they", "went", "to", "the", "bank"],
    [
        "the",
        "river",
        "is",
        "wide",
        "and",
        "the",
        "money",
        "is",
        "gone",
        "for",
        "good",
        "and",
        "all",
        "in",
        "the",
        "bank",
        "of",
        "the",
        "town",
    ],
]
QUERY = ["we", "sat", "on", "the", "bank", "of", "a", "river"]


@pytest.fixture(scope="module")
def encoder() -> Elmo:
    torch.manual_seed(0)
    return Elmo(SIZES["tiny"]).eval()


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b) or 1.0))


def around(sentence: np.ndarray, place: int, window: int) -> np.ndarray:
    """The mean of the unit vectors of the words around a place."""
    units = [each / np.linalg.norm(each) for each in sentence]
    near = [each for at, each in enumerate(units) if at != place and abs(at - place) <= window]
    return np.mean(near, 0) if near else np.zeros(sentence.shape[1])


@pytest.mark.parametrize("window", [1, 3, 10])
def test_a_cosine_is_the_mean_of_two(encoder: Elmo, window: int) -> None:
    found = neighbours(encoder, QUERY, position=4, corpus=TEXT, config=NeighboursConfig(count=50, window=window))
    asked = encoder.embed([QUERY])[0][-1]
    tops = {tuple(words): layers[-1] for words, layers in zip(TEXT, encoder.embed(TEXT), strict=True)}
    expected = {
        (words, at): (cosine(asked[4], top[at]) + cosine(around(asked, 4, window), around(top, at, window))) / 2
        for words, top in tops.items()
        for at in range(len(words))
    }
    assert len(found.in_context) == min(50, len(expected))
    for each in found.in_context:
        assert each.cosine == pytest.approx(expected[tuple(each.sentence), each.position], abs=2e-3)  # the index is in float16
    assert [each.cosine for each in found.in_context] == sorted((each.cosine for each in found.in_context), reverse=True)


def test_without_a_window_or_words_around(encoder: Elmo) -> None:
    """The word's own vector alone: asked for, for other words, and where the sentence has no other word."""
    index = Index.build(encoder, TEXT)
    plain = neighbours(encoder, QUERY, position=4, index=index, config=NeighboursConfig(window=0))
    asked = encoder.embed([QUERY])[0][-1, 4]
    assert [each.cosine for each in plain.in_context] == pytest.approx(index.search(asked, 5).cosines.tolist(), abs=1e-6)
    others = neighbours(encoder, QUERY, position=4, index=index, config=NeighboursConfig(other_words=True))
    assert others.searched.window == 0 and plain.searched.window == 0
    alone = neighbours(encoder, ["bank"], position=0, index=index)
    own = encoder.embed([["bank"]])[0][-1, 0]
    best = index.search(own, 6).cosines.tolist()[1:]  # without itself, which the text has
    assert [each.cosine for each in alone.in_context] == pytest.approx(best, abs=1e-6)


def test_only_the_nearest_are_compared_by_their_surroundings(encoder: Elmo, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.build(encoder, TEXT)
    vectors = encoder.embed([QUERY])[0][-1]
    near = set(index.search(vectors[4], 4).rows.tolist())
    monkeypatch.setattr(indexes, "CANDIDATES", 4)
    assert set(index.search_in_context(vectors, 4, 3).rows.tolist()) < near


def test_the_screen_says_what_was_compared(encoder: Elmo) -> None:
    shown = str(neighbours(encoder, QUERY, position=4, corpus=TEXT))
    assert "in context (layer 2, window 10; " in shown


def test_views_of_spans(encoder: Elmo) -> None:
    """The top layer with its window: two unit vectors side by side; the others are as before."""
    spans = [[range(1, 3)], [range(0, 1), range(9, 10)], [range(0, 1)], [], [range(3, 3)]]
    stack = span_vectors(encoder, TEXT, spans, around=True)
    plain = span_vectors(encoder, TEXT, spans)
    assert stack.shape == (encoder.layers + 1, 5, encoder.dim)
    np.testing.assert_array_equal(stack[:-1], plain)
    views = layer_views(stack, around=True)
    assert list(views) == [*layer_views(plain), "layer 2 with window"]
    window = views["layer 2 with window"].reshape(5, 2, encoder.dim)
    np.testing.assert_allclose(np.linalg.norm(window, axis=2), [[1, 1], [1, 1], [1, 1], [1, 0], [0, 1]], atol=1e-5)
    top = encoder.embed([TEXT[0]])[0][-1]
    units = top / np.linalg.norm(top, axis=1, keepdims=True)
    near = units[[0, 3, 4, 5, 6]].mean(0)
    np.testing.assert_allclose(window[0, 1], near / np.linalg.norm(near), atol=1e-5)


def test_surroundings_stop_at_the_window() -> None:
    vectors = np.eye(5)
    found = surroundings(vectors, [range(2, 3), range(0, 5)], window=1)
    np.testing.assert_allclose(found[0], [0, 0.5**0.5, 0, 0.5**0.5, 0], atol=1e-6)
    assert not found[1].any()


def test_the_probe_of_samples_has_a_row_for_it(encoder: Elmo) -> None:
    lines = [
        "word\tsense\tsentence",
        "bank\triver\tThe [bank] of the river .",
        "bank\triver\tA [bank] of the lake .",
        "bank\tmoney\tMy [bank] is closed .",
    ]
    found = probe_samples(encoder, parse_samples("\n".join(lines), "test"))
    assert list(found.rows) == ["layer 0", "layer 1", "layer 2", "layer 2 with window"]


def test_a_single_word_has_no_surroundings(encoder: Elmo) -> None:
    shown = str(neighbours(encoder, ["bank"], position=0, corpus=TEXT, config=NeighboursConfig(count=3)))
    assert "in context (layer 2; " in shown
