"""Vectors of spans, with vectors that say which word and sentence they are of."""

import numpy as np
import pytest

from polyseme.analysis import span_vectors as module
from polyseme.analysis.span_vectors import cosines, layer_views, span_vector_blocks, span_vectors, token_vectors
from polyseme.base.errors import UsageError
from tests.analysis.fake import Fake

SENTENCES = [["1", "2", "3"], ["4"], [], ["5", "6"]]


def by_number(words, position):
    """Layer 0: the number that the word spells; layer 1: its negative and the length of the sentence."""
    number = float(words[position]) if words[position].isdecimal() else float(len(words[position]))
    return [[number, 0.0], [-number, float(len(words))]]


def test_tokens_in_order():
    found = token_vectors(Fake(by_number), SENTENCES)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found[0, :, 0], [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(found[1], [[-1, 3], [-2, 3], [-3, 3], [-4, 1], [-5, 2], [-6, 2]])


def test_means_of_several_words():
    encoder = Fake(by_number)
    found = span_vectors(encoder, SENTENCES, [[range(0, 3), range(2, 3)], [], [], [range(0, 2)]])
    np.testing.assert_array_equal(found[0, :, 0], [2, 3, 5.5])
    assert sorted(encoder.read) == [["1", "2", "3"], ["5", "6"]]  # nothing was asked of the others


@pytest.mark.parametrize("size", [1, 3, 4, 100])
def test_blocks_change_nothing(monkeypatch, size):
    whole = token_vectors(Fake(by_number), SENTENCES)
    monkeypatch.setattr(module, "EMBEDDED", size)
    encoder = Fake(by_number)
    wanted = [[range(i, i + 1) for i in range(len(words))] for words in SENTENCES]
    blocks = list(span_vector_blocks(encoder, SENTENCES, wanted))
    assert len(blocks) == {1: 3, 3: 2, 4: 2, 100: 1}[size]
    np.testing.assert_array_equal(np.concatenate(blocks, axis=1), whole)


def test_large_results_are_halved(monkeypatch):
    monkeypatch.setattr(module, "LARGE", 4 * 2 * 2 * 2)
    assert token_vectors(Fake(by_number), [["1", "2"]]).dtype == np.float32
    found = token_vectors(Fake(by_number), [["1", "2", "99999999"]])
    assert found.dtype == np.float16 and np.isfinite(found).all()
    np.testing.assert_array_equal(found[0, :2, 0], [1, 2])


def test_resplit():
    encoder = Fake(lambda words, position: [[float(len(words[position]))]], words="english")
    found = token_vectors(encoder, [["don't", "go", "."], ["can", "not."]], resplit=True)
    assert sorted(encoder.read) == [["can", "not", "."], ["do", "n't", "go", "."]]
    np.testing.assert_allclose(found[0, :, 0], [(2 + 3) / 2, 2, 1, 3, (3 + 1) / 2])


def test_resplit_of_characters():
    encoder = Fake(lambda words, position: [[float(len(words[position]))]], words="characters")
    found = token_vectors(encoder, [["在", "1", "9", "9", "8", "\u3000", "年"]], resplit=True)
    assert encoder.read == [["在", "1998", "年"]]
    np.testing.assert_array_equal(found[0, :, 0], [1, 4, 4, 4, 4, 0, 1])


def test_called_wrongly():
    with pytest.raises(UsageError, match="choose another splitter"):
        token_vectors(Fake(by_number), SENTENCES, resplit=True)
    with pytest.raises(UsageError, match="words 1 to 1 were asked for; the sentence has 1 words"):
        span_vectors(Fake(by_number), [["1"]], [[range(1, 2)]])


def test_views():
    stack = np.arange(12, dtype=np.float16).reshape(2, 3, 2)
    found = layer_views(stack)
    assert list(found) == ["layer 0", "layer 1", "mean", "concatenation"]
    np.testing.assert_array_equal(found["mean"][0], [3, 4])
    np.testing.assert_array_equal(found["concatenation"][0], [0, 1, 6, 7])
    assert list(layer_views(stack[:1])) == ["layer 0"]


def test_cosines():
    first = np.array([[3, 4], [1, 0], [0, 0], [1, 1e-5]], dtype=np.float32)
    second = np.array([[4, 3], [-2, 0], [1, 1], [1, 0]], dtype=np.float32)
    np.testing.assert_array_equal(cosines(first, second), [0.96, -1, 0, 1])
