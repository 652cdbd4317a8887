"""A task's own words: what a word gets that training has, that only the loaded vectors have, and that nobody has."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polyseme.base.config import ConfigError
from polyseme.base.errors import PolysemeError
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.tasks.config import TaskWordConfig
from polyseme.tasks.word_embeddings import UNKNOWN, WordEmbeddings
from polyseme.text.word_vectors import WordVectors

TABLE = {"bank": [1.0, 2.0], "river": [3.0, 4.0], "tree": [-1.0, 0.5]}
SENTENCES = [["bank", "bank", "odd"], ["river"]]


@pytest.fixture
def loaded() -> WordVectorTable:
    vectors = np.array(list(TABLE.values()), dtype=np.float32)
    return WordVectorTable.from_vectors(WordVectors(list(TABLE), vectors, total=3))


def vectors(words: WordEmbeddings, names: list[str]) -> np.ndarray:
    return words.eval()(words.prepare(names)).detach().numpy()


def test_training_words_start_from_loaded_vectors(loaded: WordVectorTable) -> None:
    words = WordEmbeddings.of(TaskWordConfig(characters=None), SENTENCES, loaded)
    assert words.words == ["bank", "odd", "river"] and words.dim == 2
    np.testing.assert_allclose(vectors(words, ["bank", "river"]), [TABLE["bank"], TABLE["river"]])


def test_other_words_come_from_the_loaded_table(loaded: WordVectorTable) -> None:
    words = WordEmbeddings.of(TaskWordConfig(characters=None), SENTENCES, loaded)
    np.testing.assert_allclose(vectors(words, ["tree", "bank"]), [TABLE["tree"], TABLE["bank"]])
    mean = np.mean(list(TABLE.values()), axis=0)
    np.testing.assert_allclose(vectors(words, ["nobody"])[0], mean, rtol=1e-6)


def test_unknown_words_by_one_vector_or_by_their_own(loaded: WordVectorTable) -> None:
    one = WordEmbeddings.of(TaskWordConfig(dim=4, characters=None), SENTENCES)
    a, b = vectors(one, ["nobody", "none"])
    assert np.array_equal(a, b) and np.array_equal(a, one.table.weight[UNKNOWN].detach().numpy())
    own = WordEmbeddings.of(TaskWordConfig(dim=4, characters=None, unknown_words="random"), SENTENCES)
    a, b = vectors(own, ["nobody", "none"])
    assert not np.array_equal(a, b)
    again = WordEmbeddings.of(TaskWordConfig(dim=4, characters=None, unknown_words="random"), SENTENCES)
    assert np.array_equal(vectors(again, ["nobody"])[0], a)
    both = WordEmbeddings.of(TaskWordConfig(characters=None, unknown_words="random"), SENTENCES, loaded)
    np.testing.assert_allclose(vectors(both, ["tree"])[0], TABLE["tree"])


def test_fixed_vectors_do_not_learn(loaded: WordVectorTable) -> None:
    fixed = WordEmbeddings.of(TaskWordConfig(), SENTENCES, loaded)
    tuned = WordEmbeddings.of(TaskWordConfig(freeze_word_vectors=False), SENTENCES, loaded)
    assert not fixed.table.weight.requires_grad and tuned.table.weight.requires_grad
    assert not any("loaded" in name for name in tuned.state_dict())


def test_characters_tell_unknown_words_apart() -> None:
    words = WordEmbeddings.of(TaskWordConfig(dim=0), SENTENCES)
    a, b = vectors(words, ["nobody", "none"])
    assert words.table is None and a.shape == (128,) and not np.array_equal(a, b)


def test_known_words_are_hidden_now_and_then() -> None:
    torch.manual_seed(0)
    words = WordEmbeddings.of(
        TaskWordConfig(dim=3, characters=None, word_dropout=0.5), [[f"w{i}" for i in range(1000)]]
    ).train()
    found = words(words.prepare([f"w{i}" for i in range(1000)]))
    hidden = (found == words.table.weight[UNKNOWN]).all(1).float().mean()
    assert 0.4 < hidden < 0.6


def test_nothing_to_read_is_refused() -> None:
    with pytest.raises(ConfigError, match="leaves no embeddings"):
        WordEmbeddings.of(TaskWordConfig(dim=0, characters=None), SENTENCES)
    with pytest.raises(ConfigError, match="word_dropout is 1"):
        TaskWordConfig(word_dropout=1.0)


def test_a_word_that_no_line_can_hold_is_told_before_training() -> None:
    with pytest.raises(PolysemeError, match="cannot be written as a line"):
        WordEmbeddings.of(TaskWordConfig(), [["two\nlines"]])
