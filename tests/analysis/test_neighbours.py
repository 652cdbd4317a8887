"""Neighbours where the right answer is known: a bank by the water, and a bank with money."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from polyseme.analysis.index import Index
from polyseme.analysis.neighbours import nearest_words
from polyseme.base.errors import UsageError
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.text.word_vectors import WordVectors
from tests.analysis.known import Known
from tests.encoders.small import elmo

OWN = {
    "bank": [1.0, 0, 0, 0],
    "Bank": [0.99, 0.1, 0, 0],
    "tank": [0.9, 0, 0.1, 0.1],
    "shore": [0.4, 0.9, 0, 0],
    "loan": [0.3, 0, 0.9, 0],
    "river": [0.0, 4, 0, 0],
    "money": [0.0, 0, 4, 0],
    "oil": [0.0, 0, 0, 4],
}
QUERY = ["bank", "river"]
TEXT = [["river", "bank"], ["money", "bank"], ["shore", "river"], ["loan", "money"], ["Bank", "river"], ["tank", "oil"]]


def oracle(encoder: Known, text: list[list[str]], same_word: bool | None) -> list[tuple[list[str], int, float]]:
    """All occurrences in other sentences than the question, nearest first, at the top layer."""
    query = encoder.stack(QUERY)[2, 0].astype(np.float64)
    found = []
    for words in text:
        for position, vector in enumerate(encoder.stack(words)[2].astype(np.float64)):
            same = words[position].casefold() == "bank"
            if words != QUERY and same_word in (None, same):
                cosine = query @ vector / np.linalg.norm(query) / np.linalg.norm(vector)
                found.append((words, position, cosine))
    return sorted(found, key=lambda each: -each[2])


@pytest.mark.parametrize("same_word", [None, True, False])
@pytest.mark.parametrize("count", [2, 50])
def test_in_context(same_word, count):
    encoder = Known(OWN)
    found = nearest_words(encoder, Index.build(encoder, TEXT), QUERY, 0, count, same_word=same_word)
    expected = oracle(encoder, TEXT, same_word)[:count]
    assert [(each.sentence, each.position) for each in found.in_context] == [
        (words, position) for words, position, _ in expected
    ]
    assert [each.word for each in found.in_context] == [words[position] for words, position, _ in expected]
    np.testing.assert_allclose([each.cosine for each in found.in_context], [cosine for *_, cosine in expected], atol=1e-3)


def test_senses():
    """The nearest of the same word has the same sense; the word's own vector cannot tell."""
    encoder = Known(OWN)
    found = nearest_words(encoder, Index.build(encoder, TEXT), ["bank", "money"], 0, same_word=True)
    assert found.in_context[0].sentence == ["money", "bank"]
    found = nearest_words(encoder, Index.build(encoder, TEXT), QUERY, 0, same_word=True)
    assert {tuple(each.sentence) for each in found.in_context[:2]} == {("river", "bank"), ("Bank", "river")}
    assert [each.word for each in found.static] == ["tank", "shore", "loan", "river", "money"]


def test_by_itself():
    encoder = Known(OWN)
    found = nearest_words(encoder, Index.build(encoder, [*TEXT, ["tank", "oil"]]), QUERY, 0, 2)
    assert [(each.word, each.count) for each in found.static] == [("tank", 2), ("shore", 1)]
    for each in found.static:
        assert each.cosine == pytest.approx(OWN[each.word][0] / np.linalg.norm(OWN[each.word]), abs=1e-3)


@pytest.mark.parametrize("same_word", [None, True, False])
def test_the_question_is_not_its_own_answer(same_word):
    encoder = Known(OWN)
    text = [["bank"], QUERY, *TEXT, QUERY, ["river", "bank", "river"], ["bank", "oil"]]
    found = nearest_words(encoder, Index.build(encoder, text), QUERY, 0, 50, same_word=same_word)
    expected = oracle(encoder, text, same_word)
    assert [(each.sentence, each.position) for each in found.in_context] == [
        (words, position) for words, position, _ in expected
    ]
    assert len(nearest_words(encoder, Index.build(encoder, text), QUERY, 0, 3, same_word=same_word).in_context) == 3


def test_a_sentence_that_is_repeated_is_one_answer():
    encoder = Known(OWN)
    found = nearest_words(encoder, Index.build(encoder, TEXT * 3), QUERY, 0, 50)
    assert len(found.in_context) == 2 * len(TEXT)
    assert f" in {len(TEXT)} different sentences" in str(found)
    assert "different" not in str(nearest_words(encoder, Index.build(encoder, TEXT), QUERY, 0, 50))


def test_the_layer_is_that_of_the_index():
    encoder = Known(OWN)
    index = Index.build(encoder, TEXT, layer=0)
    found = nearest_words(encoder, index, QUERY, 0, 3)
    assert [each.word for each in found.in_context] == ["bank", "bank", "Bank"] and found.in_context[0].cosine > 0.999


def test_strings_and_what_was_asked():
    encoder = Known(OWN)
    found = nearest_words(encoder, Index.build(encoder, TEXT), "bank river", 1, 1)
    assert (found.words, found.position, len(found.in_context)) == (QUERY, 1, 1)


def test_called_wrongly():
    encoder = Known(OWN)
    index = Index.build(encoder, TEXT)
    for position in (-1, 2):
        with pytest.raises(UsageError, match=f"position is {position}; the sentence has 2 words"):
            nearest_words(encoder, index, QUERY, position)
    with pytest.raises(UsageError, match="another model"):
        nearest_words(Known(OWN, weight=2.0), index, QUERY, 0)
    with pytest.raises(UsageError, match="count is 0"):
        nearest_words(encoder, index, QUERY, 0, 0)


def test_words_that_a_table_does_not_know():
    """They all have the same vector: neither do they have neighbours, nor are they some."""
    rows = np.array([[1, 0], [0.9, 0.1], [0, 1]], dtype=np.float32)
    encoder = WordVectorTable.from_vectors(WordVectors(["bank", "shore", "loan"], rows, total=3))
    index = Index.build(encoder, [["bank", "castle"], ["shore", "tower"], ["loan", "castle"]])
    asked = nearest_words(encoder, index, ["the", "palace"], 1)
    assert not asked.known and asked.static == []
    assert [each.word for each in nearest_words(encoder, index, ["bank"], 0).static] == ["shore", "loan"]


def test_static_neighbours_of_a_word_without_a_row():
    """The oracle is a model that gives the unknown word's row to all words."""
    model = elmo(form="both")
    levelled = copy.deepcopy(model)
    with torch.no_grad():
        rows = levelled.tokens.words.weight
        rows[:] = rows[levelled.vocabulary.ids(["<UNK>"])[0]].clone()
    text = [["a", "river", "bank"], ["the", "rivers", "and", "the", "money"]]
    found, expected = (
        nearest_words(each, Index.build(each, text), ["the", "riverr"], 1, 4).static for each in (model, levelled)
    )
    assert [each.word for each in found] == [each.word for each in expected]
    assert [each.cosine for each in found] == pytest.approx([each.cosine for each in expected], abs=2e-3)
