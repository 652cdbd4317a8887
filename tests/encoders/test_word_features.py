"""Tokens read through the words that cover them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polyseme.base.config import ConfigError
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.encoders.word_features import (
    BEGIN,
    END,
    INSIDE,
    POSITION_TAGS,
    SINGLE,
    WordAlignment,
    WordFeatures,
    align_to_words,
)
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.features import Features
from polyseme.tasks.word_embeddings import WordEmbeddings
from polyseme.text.word_vectors import WordVectors
from polyseme.text.words import get_splitter
from tests.encoders.small import elmo

WORDS = ["北京市", "市长", "长", "在", "北京"]
TEXTS = [list("他在北京市"), [], list("长3kg")]


def model() -> Elmo:
    made = elmo()
    made.splitter = get_splitter("unigram", WORDS)
    return made


def test_each_token_knows_its_word_and_its_place() -> None:
    assert align_to_words(list("他在北京长"), model()) == WordAlignment(
        ["他", "在", "北京", "长"], [0, 1, 2, 2, 3], [SINGLE, SINGLE, BEGIN, END, SINGLE]
    )
    assert align_to_words(list("北京市"), model()).positions == [BEGIN, INSIDE, END]
    assert align_to_words(["北京", "市", "2019", "年"], model()) == WordAlignment(
        ["北京市", "2019", "年"], [0, 0, 1, 2], [BEGIN, END, SINGLE, SINGLE]
    )


@pytest.mark.parametrize("tokens", [["北", " ", "京"], ["北", "　"]])
def test_blank_tokens_are_words_of_their_own(tokens: list[str]) -> None:
    assert align_to_words(tokens, model()) == WordAlignment(tokens, list(range(len(tokens))), [SINGLE] * len(tokens))


def test_an_encoder_that_cuts_at_blanks_reads_the_tokens() -> None:
    made = model()
    made.splitter = get_splitter("whitespace")
    assert align_to_words(list("北京"), made).words == ["北", "京"]


def test_vectors_are_those_of_the_word_and_a_mark_of_the_place() -> None:
    made = model()
    covering = WordFeatures(made)
    found = covering.embed(TEXTS)
    words = made.embed([["他", "在", "北京市"]])[0]
    assert [each.shape for each in found] == [(3, 5, covering.dim), (3, 0, covering.dim), (3, 4, covering.dim)]
    np.testing.assert_allclose(found[0][..., :-POSITION_TAGS], words[:, [0, 1, 2, 2, 2]], atol=1e-6)
    assert found[0][1, :, -POSITION_TAGS:].argmax(1).tolist() == [SINGLE, SINGLE, BEGIN, INSIDE, END]
    assert (found[0][..., -POSITION_TAGS:].sum(-1) == 1).all()


def test_forward_gives_what_embed_gives() -> None:
    covering = WordFeatures(model())
    states = covering(covering.prepare(TEXTS)).states
    for row, array in enumerate(covering.embed(TEXTS)):
        np.testing.assert_allclose(states[:, row, : array.shape[1]].detach(), array, atol=1e-5)
        assert not states[:, row, array.shape[1] :].any()


def test_its_name_differs_from_the_encoders() -> None:
    one, other = model(), model()
    other.splitter = get_splitter("unigram", [*WORDS, "他在"])
    names = [model_fingerprint(each) for each in (one, WordFeatures(one), WordFeatures(other))]
    assert len(set(names)) == 3


def test_loaded_vectors_are_read_by_covering_words_too() -> None:
    vectors = WordVectors(["北京", "北"], np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32), total=2)
    table = WordVectorTable.from_vectors(vectors, splitter=get_splitter("unigram", WORDS))
    own = TaskWordConfig(characters=None, word_dropout=0.0)
    config = FeaturesConfig(words=own, word_features=True, norm="none", dropout=0.0)
    made = Features(config, WordEmbeddings.of(own, [list("北京")], table)).eval()
    found = made(made.prepare([list("北京")])).at_input[0]
    assert made.width("input") == 2 + 2 + POSITION_TAGS == found.shape[1]
    torch.testing.assert_close(found[0, :4], torch.tensor([3.0, 4.0, 1.0, 2.0]))


def test_not_fine_tuned() -> None:
    with pytest.raises(ConfigError, match="needs mode='frozen'"):
        FeaturesConfig(word_features=True, mode="finetune")
