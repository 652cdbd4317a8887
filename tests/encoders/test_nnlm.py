"""The feed-forward language model, compared with its definition in NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, UsageError
from polyseme.encoders.config import NnlmConfig
from polyseme.encoders.nnlm import Nnlm
from polyseme.text.vocabulary import Vocabulary

WORDS = ["<s>", "</s>", "<unk>", "the", "bank", "of", "river", "a"]


def small(order: int = 4, direct: bool = True, seed: int = 0) -> Nnlm:
    torch.manual_seed(seed)
    vocabulary = Vocabulary(WORDS, unknown="<unk>", begin="<s>", end="</s>")
    model = Nnlm(
        NnlmConfig(size=len(WORDS), order=order, dim=3, hidden_size=5, direct_connections=direct), vocabulary=vocabulary
    )
    torch.nn.init.normal_(model.output.bias)
    return model.eval()


def oracle(model: Nnlm, sentence: list[str]) -> list[float]:
    """Natural logs of P(word | words before) by the formulas of Bengio et al. 2003, one place at a time."""
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    c, h, d = weights["table.weight"], weights["hidden.weight"], weights["hidden.bias"]
    wide, b = weights["output.weight"], weights["output.bias"]
    units, n = len(d), model.config.order
    ids = [WORDS.index(word) if word in WORDS[3:] else 2 for word in sentence]
    stream, logs = [0] * (n - 1) + ids + [1], []
    for t in range(n - 1, len(stream)):
        x = np.concatenate([c[word] for word in stream[t - n + 1 : t]])
        y = b + wide[:, :units] @ np.tanh(d + h @ x)
        if model.config.direct_connections:
            y = y + wide[:, units:] @ x
        logs.append(float(y[stream[t]] - np.log(np.exp(y).sum())))
    return logs


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("order", [2, 3, 6])
def test_probabilities_are_those_of_the_definition(order: int, direct: bool) -> None:
    model = small(order, direct, seed=order)
    texts = [["the", "bank", "of", "the", "river"], [], ["zebra", "</s>", "a"], ["a"]]
    found = model.log_probs(texts)
    for text, each in zip(texts, found, strict=True):
        np.testing.assert_allclose(each.forward, oracle(model, text), atol=1e-5)
        assert each.backward is None and each.words == text
    assert found[2].known.tolist() == [False, False, True]
    sums = [sum(oracle(model, text)) for text in texts]
    np.testing.assert_allclose(model.score(texts), sums, atol=1e-4)
    said = model.perplexity(texts)
    assert said.mean == said.forward == pytest.approx(np.exp(-sum(sums) / 13), rel=1e-5) and said.predictions == 13
    assert model.predicts_words


def test_it_sums_to_one() -> None:
    model = small()
    states = model.top_states(torch.tensor([[0, 3, 4]]))
    assert torch.allclose(model.output(states[0]).exp().sum(1), torch.ones(3))


def test_a_word_depends_on_the_words_before_it_and_on_no_others() -> None:
    model = small(order=3)
    text = ["the", "bank", "of", "the", "river", "a"]
    plain = model.log_probs([text])[0].forward
    for place in range(len(text)):
        other = [*text]
        other[place] = "zebra"
        changed = np.flatnonzero(~np.isclose(model.log_probs([other])[0].forward, plain, atol=1e-7))
        assert changed.tolist() == [place, place + 1, place + 2][: len(plain) - place]  # itself, and as a context


def test_vectors_are_the_table() -> None:
    model = small()
    (vectors,) = model.embed([["bank", "zebra", "bank"]])
    np.testing.assert_array_equal(vectors[0], model.table.weight.detach().numpy()[[4, 2, 4]])
    assert (model.layers, model.dim, vectors.shape) == (1, 3, (1, 3, 3))
    with pytest.raises(UsageError, match="start does not apply to embed"):
        model.embed(["bank"], start="zero")
    model.freeze("table")
    assert not model.table.weight.requires_grad and model.hidden.weight.requires_grad


def test_folder(tmp_path: Path) -> None:
    model, texts = small(), [["the", "zebra"], []]
    again = polyseme.load(model.save_pretrained(tmp_path / "m"))
    np.testing.assert_array_equal(again.score(texts), model.score(texts))
    half = polyseme.load(model.save_pretrained(tmp_path / "half", precision="fp16"))
    np.testing.assert_allclose(half.score(texts), model.score(texts), atol=0.05)
    (tmp_path / "m" / "vocabulary.txt").write_text("<s>\n</s>\n<unk>\n")
    with pytest.raises(FormatError, match="size is 8, but there are 3 words"):
        polyseme.load(tmp_path / "m")
    (tmp_path / "m" / "vocabulary.txt").unlink()
    with pytest.raises(FormatError, match=r"lacks vocabulary\.txt"):
        polyseme.load(tmp_path / "m")


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match="order is 1; allowed: 2 or more; hidden_size is 0; allowed: 1 or more"):
        NnlmConfig(size=4, dim=3, hidden_size=0, order=1)
    with pytest.raises(ConfigError, match="the vocabulary lacks </s> and <unk>"):
        Nnlm(NnlmConfig(size=2, dim=3), vocabulary=Vocabulary(["<s>", "a"], unknown=None))
