"""Sentences that are read in their documents: as one text with marks between them, and given back by sentences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polyseme.base.errors import UsageError
from polyseme.encoders.config import NnlmConfig
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.nnlm import Nnlm
from polyseme.text.vocabulary import Vocabulary
from tests.encoders.small import elmo

DOCUMENT = [["the", "cat", "sat"], ["a", "dog"], ["money", "."]]


@pytest.mark.parametrize("form", ["characters", "words", "both"])
@pytest.mark.parametrize("start", ["zero", "learned"])
def test_an_elmo_reads_on_over_its_marks(form: str, start: str) -> None:
    """The oracle goes through the network itself, one word at a time, over the whole document."""
    model = elmo(form=form, start=start)
    if model.learned is not None:
        for value in model.learned.values():
            torch.nn.init.normal_(value)
    (found,) = model.embed_documents([DOCUMENT])
    stream = ["<S>", *DOCUMENT[0], "</S>", "<S>", *DOCUMENT[1], "</S>", "<S>", *DOCUMENT[2], "</S>"]
    expected = _word_by_word(model, stream)
    for array, begin, sentence in zip(found, (1, 6, 10), DOCUMENT, strict=True):
        assert array.shape == (model.layers, len(sentence), model.dim)
        np.testing.assert_allclose(array, expected[:, begin : begin + len(sentence)], atol=1e-5)


def _word_by_word(model: Elmo, stream: list[str]) -> np.ndarray:
    """All layers of a stream, marks included: (layers, words, dim)."""
    with torch.no_grad():
        vectors = model.tokens(model.word_inputs(stream))
        begin = model.start_state(None, 1)
        layers = [torch.cat([vectors, vectors], dim=1)]
        inputs = [vectors, vectors.flip(0)]
        for level in range(model.config.lstm.layers):
            outputs = []
            for way, side in enumerate((model.lstm.forward_layers, model.lstm.backward_layers)):
                hidden, cell, states = begin.hidden[way, level], begin.cell[way, level], []
                for word in inputs[way]:
                    hidden, cell = side[level].step(word[None] @ side[level].input_weight.T + side[level].bias, hidden, cell)
                    states.append(hidden[0] + word if level and model.config.lstm.residual else hidden[0])
                outputs.append(torch.stack(states))
            inputs = outputs
            layers.append(torch.cat([outputs[0], outputs[1].flip(0)], dim=1))
        return torch.stack(layers).numpy()


def test_context_changes_the_layers_above_the_words_own() -> None:
    model = elmo()
    ((_, second, _),) = model.embed_documents([DOCUMENT])
    (alone,) = model.embed([DOCUMENT[1]])
    np.testing.assert_allclose(second[0], alone[0], atol=1e-6)
    assert np.abs(second[1:] - alone[1:]).max(axis=2).min() > 1e-3


def test_documents_do_not_influence_each_other() -> None:
    model = elmo()
    several = model.embed_documents([DOCUMENT[:1], [], DOCUMENT, [[], ["cat"]]], batch_words=4)
    assert [[array.shape[1] for array in document] for document in several] == [[3], [], [3, 2, 2], [0, 1]]
    np.testing.assert_allclose(several[0][0], model.embed(DOCUMENT[:1])[0], atol=1e-6)
    (alone,) = model.embed_documents([DOCUMENT])
    for found, expected in zip(several[2], alone, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_layers_can_be_chosen_and_batches_are_told() -> None:
    model, told = elmo(), []
    (found,) = model.embed_documents([DOCUMENT], layers="top", progress=told.append)
    (whole,) = model.embed_documents([DOCUMENT])
    assert told == [1]
    for top, every in zip(found, whole, strict=True):
        np.testing.assert_allclose(top, every[-1], atol=1e-6)


def test_systems_without_such_marks_read_the_words_alone() -> None:
    words = Vocabulary(["<s>", "</s>", "<unk>", "the", "cat", "a"], unknown="<unk>", begin="<s>", end="</s>")
    model = Nnlm(NnlmConfig(size=6, order=3, dim=3, hidden_size=5, direct_connections=False), vocabulary=words).eval()
    (found,) = model.embed_documents([DOCUMENT])
    (joined,) = model.embed([[word for sentence in DOCUMENT for word in sentence]])
    np.testing.assert_allclose(np.concatenate(found, axis=1), joined, atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [("a text", "list of documents"), (None, "list of documents"), (["a text"], "list of sentences, got one string")],
)
def test_what_is_no_list_of_documents_is_refused(wrong: object, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        elmo().embed_documents(wrong)  # type: ignore[arg-type]
