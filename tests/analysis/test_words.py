"""Words by themselves: nearest ones and analogies, in a small space whose answers are known."""

import copy
import math

import numpy as np
import pytest
import torch

import polyseme
from polyseme.analysis.words import WordSpace, isolated_word_vectors
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.config import NgramConfig, NnlmConfig, UlmfitConfig
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.fasttext import FastTextTable
from polyseme.encoders.ngram import NgramModel
from polyseme.encoders.ngram_table import Level, NgramTable
from polyseme.encoders.nnlm import Nnlm
from polyseme.encoders.static_vectors import static_vectors
from polyseme.encoders.ulmfit import Ulmfit
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.word_vectors import WordVectors
from tests.analysis.fake import Fake
from tests.encoders.small import elmo

ROWS = {
    "king": [2, 0, 2, 0],
    "queen": [2, 2, 0, 0],
    "man": [0, 0, 1, 0],
    "woman": [0, 1, 0, 0],
    "Paris": [0, 0, 0, 3],
    "paris": [0, 0, 0.3, 3],
    "zero": [0, 0, 0, 0],
}


def table(rows=ROWS):
    return WordVectorTable.from_vectors(WordVectors(list(rows), np.array(list(rows.values()), dtype=np.float32), len(rows)))


def test_similar():
    space = WordSpace(table())
    found = space.similar("king", 2)
    assert [each.word for each in found] == ["man", "queen"]
    assert found[0].cosine == pytest.approx(math.sqrt(0.5)) and found[1].cosine == pytest.approx(0.5)
    assert len(space.similar("king", 99)) == 6
    assert [each.word for each in space.similar("zero", 1)] == ["king"]  # to which nothing is near
    with pytest.raises(UsageError, match="count is 0"):
        space.similar("king", 0)


def test_analogy():
    space = WordSpace(table())
    assert space.analogy("man", "king", "woman", 1)[0].word == "queen"
    assert not {"man", "king", "woman"} & {each.word for each in space.analogy("man", "king", "woman", 99)}
    with pytest.raises(UsageError, match="B is empty: give three words"):
        space.analogy("man", " ", "woman")
    rows = np.array([[2, 0, 3], [3, 1, 2]])
    assert [space.words[row] for row in space.answers(rows)] == ["queen", "king"]


def test_a_phrase_is_not_one_unknown_word():
    space = WordSpace(table({**ROWS, "new_york": [0, 0, 1, 3], "well-known": [1, 0, 1, 3], "a priori": [1, 1, 1, 1]}))
    with pytest.raises(UsageError, match=r"'king of men' is 3 words: give one of them; .*`encode`"):
        space.similar("king of men")
    with pytest.raises(UsageError, match="'New York' is 2 words: give one of them or 'new_york';"):
        space.analogy("man", "king", "New York")
    with pytest.raises(UsageError, match="or 'well-known'"):
        space.similar("well known")
    with pytest.raises(UsageError, match="empty"):
        space.similar(" ")
    assert space.similar(" king ", 1)[0].word == "man"
    assert space.get("a priori").word == "a priori"  # a table may have it
    spelled = WordSpace(elmo(output=True))  # a model that can spell any word
    with pytest.raises(UsageError, match="2 words"):
        spelled.similar("new york")


def test_capitals():
    space = WordSpace(table())
    assert space.get("paris").word == "paris" and space.get("PARIS").word == "Paris" and space.get("King").word == "king"


def test_unknown_words():
    with pytest.raises(PolysemeError, match=r"does not know the word 'kink' \(did you mean 'king'\?\); it knows 7 words"):
        WordSpace(table()).similar("kink")
    with pytest.raises(PolysemeError, match="does not know the word 'xxxx'; it knows 7 words"):
        WordSpace(table()).analogy("xxxx", "king", "man")
    subwords = np.eye(4, dtype=np.float32)[[3] * 5]
    spelled = FastTextTable.from_parts(WordVectors(list(ROWS), static_vectors(table()).vectors, 7), subwords)
    assert WordSpace(spelled).similar("Parisian", 1)[0].word == "Paris"  # made of subwords


def test_a_word_that_is_only_spelled_gets_a_warning(caplog):
    model = elmo(output=True)  # its vocabulary is small, and it reads characters
    size = len(WordSpace(model).words)
    polyseme.similar("bank", model=model)
    polyseme.similar(" BANK ", model=model)  # in another case
    assert not caplog.messages
    said = f"is not among the {size} words that the model was trained to predict; its vector comes from its characters only"
    polyseme.similar("Bankkkkk", model=model)
    assert caplog.messages == [f"'Bankkkkk' {said}"]
    caplog.clear()
    polyseme.analogy("bank", "Bankkkkk", "rivver", model=model)
    assert caplog.messages == [f"'Bankkkkk' {said}", f"'rivver' {said}"]


def test_layer_0_of_a_vocabulary():
    fake = Fake(lambda words, position: [ROWS.get(words[position], [1, 1, 1, 1]), [0, 0, 0, 1]])
    fake.vocabulary = Vocabulary([f"{word}{number}" for word in ROWS for number in range(20)])
    assert static_vectors(fake).vectors.shape == (140, 4)
    fake.vocabulary = Vocabulary([*ROWS, "king"])  # published lists repeat some
    assert static_vectors(fake).words == list(ROWS)
    fake.vocabulary = Vocabulary(list(ROWS))
    space = WordSpace(fake)
    assert space.words == list(ROWS) and space.similar("king", 1)[0].word == "man"
    assert space.similar("any", 1)[0].cosine > 0  # which it can spell
    del fake.vocabulary
    with pytest.raises(PolysemeError, match="has no vocabulary to search"):
        WordSpace(fake)


def test_the_vectors_of_a_vocabulary_are_computed_once_until_weights_change(monkeypatch) -> None:
    model, calls = elmo(form="both", output=True), []
    embed = type(model).embed
    monkeypatch.setattr(type(model), "embed", lambda *args, **options: calls.append(1) or embed(*args, **options))
    first = static_vectors(model).vectors
    assert static_vectors(model).vectors is first and len(calls) == 1
    with torch.no_grad():
        next(model.parameters()).mul_(2)
    assert not np.allclose(static_vectors(model).vectors, first) and len(calls) == 2


def test_an_elmo_has_no_marks_among_its_words():
    model = elmo(form="both", output=True)
    found = static_vectors(model)
    assert not {model.config.begin, model.config.end, model.config.unknown} & {*found.words}
    np.testing.assert_allclose(found.vectors[:3], [model.embed([[word]])[0][0, 0] for word in found.words[:3]], atol=1e-6)


def test_words_alone():
    found = isolated_word_vectors(table(), ["king", "KING", "none"])
    assert list(found) == ["king", "KING"] and found["king"].shape == (1, 4)
    model = elmo(form="words")
    known = next(word for word in model.vocabulary if word.isalpha())
    assert list(isolated_word_vectors(model, [known, "zebras"])) == [known]
    assert list(isolated_word_vectors(elmo(form="characters"), ["zebras"])) == ["zebras"]


CLOSED = Vocabulary(["<s>", "</s>", "<unk>", "virus", "Paris", "PARIS"], unknown="<unk>", begin="<s>", end="</s>")


def nnlm():
    return Nnlm(NnlmConfig(size=6, order=3, dim=4, hidden_size=5), vocabulary=CLOSED).eval()


def ulmfit():
    return Ulmfit(UlmfitConfig(size=6, dim=4, hidden_size=5, layers=2), vocabulary=CLOSED).eval()


def ngram():
    ones = Level(np.arange(6), np.log(np.arange(1, 7) / 21).astype(np.float32), np.zeros(6, dtype=np.float32))
    return NgramModel(NgramConfig(order=1), vocabulary=CLOSED, table=NgramTable(6, [ones]))


@pytest.mark.parametrize("make", [nnlm, ulmfit, ngram])
def test_a_closed_vocabulary_is_asked_with_other_capitals(make):
    model = make()
    found = isolated_word_vectors(model, ["Virus", "virus", "paris", "PARIS", "zebra", "<UNK>", "<S>"])
    assert list(found) == ["Virus", "virus", "paris", "PARIS"]  # and no mark
    for word, known in (("Virus", "virus"), ("paris", "Paris"), ("PARIS", "PARIS")):
        np.testing.assert_allclose(found[word], model.embed([[known]])[0][:, 0], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("project", [True, False])
def test_a_word_without_a_row_is_compared_by_characters_alone(project):
    """The oracle is a model that gives the unknown word's row to all words."""
    model = elmo(form="both")
    if not project:
        config = model.config.replace(project=False, dim=model.config.inputs)
        model = Elmo(config, vocabulary=model.vocabulary).eval()
    space, levelled = WordSpace(model), copy.deepcopy(model)
    with torch.no_grad():
        rows = levelled.tokens.words.weight
        rows[:] = rows[levelled.vocabulary.ids(["<UNK>"])[0]].clone()
    expected = WordSpace(levelled)
    for word in ("bankk", "rivers"):
        found, of_oracle = space.similar(word, 4), expected.similar(word, 4)
        assert [each.word for each in found] == [each.word for each in of_oracle]
        assert [each.cosine for each in found] == pytest.approx([each.cosine for each in of_oracle], abs=1e-5)
    assert [each.cosine for each in space.similar("bank", 4)] != pytest.approx(
        [each.cosine for each in expected.similar("bank", 4)], abs=1e-3
    )
