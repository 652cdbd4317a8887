"""The language model of ULMFiT: its layers and probabilities against its definition in NumPy."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

import polyseme
from polyseme.analysis.next_words import predicts_next
from polyseme.base.config import ConfigError
from polyseme.base.errors import UsageError
from polyseme.encoders.config import UlmfitConfig
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.ulmfit import Ulmfit
from polyseme.nn.config import AwdDropout
from polyseme.serve.explorer import surprise_of
from polyseme.serve.models import ServedModel
from polyseme.serve.read_sentences import ReadSentences
from polyseme.text.vocabulary import Vocabulary

WORDS = ["<s>", "</s>", "<unk>", "the", "bank", "of", "river", "a"]
TEXTS = [["the", "bank", "of", "the", "river"], [], ["zebra", "</s>", "a"], ["a"]]


def small(layers: int = 3, seed: int = 0, *, backward: bool = False) -> Ulmfit:
    torch.manual_seed(seed)
    vocabulary = Vocabulary(WORDS, unknown="<unk>", begin="<s>", end="</s>")
    config = UlmfitConfig(size=len(WORDS), dim=3, hidden_size=5, layers=layers, backward=backward)
    model = Ulmfit(config, vocabulary=vocabulary)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.7)
    return model.eval()


def oracle(model: Ulmfit, ids: list[int]) -> tuple[list[list[np.ndarray]], list[np.ndarray]]:
    """What each layer gives at each place, and the logs of all words' probabilities after it, one step at a time."""
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    table, count = weights["table.weight"], model.config.layers

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    states = [[np.zeros(weights[f"lstm.layers.{n}.bias"].size // 4)] * 2 for n in range(count)]
    stacks, logs = [], []
    for word in ids:
        x = table[word]
        stack = [x]
        for n in range(count):
            w, u, b = (weights[f"lstm.layers.{n}.{name}"] for name in ("input_weight", "recurrent_weight", "bias"))
            h, c = states[n]
            i, f, g, o = np.split(w @ x + u @ h + b, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            x = sigmoid(o) * np.tanh(c)
            states[n] = [x, c]
            stack.append(x)
        y = table @ x + weights["output.bias"]
        stacks.append(stack)
        logs.append(y - np.log(np.exp(y).sum()))
    return stacks, logs


def numbers(text: list[str]) -> list[int]:
    return [WORDS.index(word) if word in WORDS[3:] else 2 for word in text]


@pytest.mark.parametrize("layers", [1, 3])
def test_layers_and_probabilities_are_those_of_the_definition(layers: int) -> None:
    model = small(layers, seed=layers)
    assert model.predicts_words and model.layers == layers + 1 and model.dim == (5 if layers > 1 else 3)
    for text, vectors, found in zip(TEXTS, model.embed(TEXTS), model.log_probs(TEXTS), strict=True):
        ids = numbers(text)
        stacks, logs = oracle(model, [1, *ids])
        np.testing.assert_allclose(found.forward, [log[n] for log, n in zip(logs, [*ids, 1], strict=True)], atol=1e-5)
        assert found.backward is None and vectors.shape == (layers + 1, len(text), model.dim)
        for place, stack in enumerate(stacks[1:]):
            for level, vector in enumerate(stack):
                np.testing.assert_allclose(vectors[level, place, : len(vector)], vector, atol=1e-5)
                assert not vectors[level, place, len(vector) :].any()


def test_carried_from_sentence_to_sentence() -> None:
    model = small()
    stream = [1, *(n for text in TEXTS for n in [*numbers(text), 1])]
    _, logs = oracle(model, stream[:-1])
    expected = np.array([log[n] for log, n in zip(logs, stream[1:], strict=True)])
    found = model.log_probs(TEXTS, start="carry")
    np.testing.assert_allclose(np.concatenate([each.forward for each in found]), expected, atol=1e-5)
    model.reset_state()
    parts = [*model.log_probs(TEXTS[:2], start="carry"), *model.log_probs(TEXTS[2:], start="carry")]  # on from call to call
    np.testing.assert_allclose(np.concatenate([each.forward for each in parts]), expected, atol=1e-5)
    again = copy.deepcopy(model)
    said = again.perplexity(TEXTS, start="carry")  # a copy carries nothing
    assert said.mean == pytest.approx(np.exp(-expected.mean()), rel=1e-5) and said.predictions == len(expected)
    assert model.log_probs([], start="carry") == []
    assert model.score(TEXTS)[0] == pytest.approx(found[0].forward.sum(), abs=1e-5)  # the first one begins alike
    with pytest.raises(UsageError, match="start is 'warm'; allowed: zero, carry"):
        model.score(TEXTS, start="warm")  # type: ignore[arg-type]


def test_long_texts_are_carried_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small()
    whole = model.score(TEXTS, start="carry")
    model.reset_state()
    monkeypatch.setattr("polyseme.encoders.ulmfit._CARRIED", 3)
    np.testing.assert_allclose(model.score(TEXTS, start="carry"), whole, atol=1e-5)


def test_a_word_depends_on_all_before_it_and_on_nothing_behind() -> None:
    model = small()
    text = ["the", "bank", "of", "the", "river", "a"]
    plain, vectors = model.log_probs([text])[0].forward, model.embed([text])[0]
    for place in range(len(text)):
        other = [*text]
        other[place] = "zebra"
        same = np.isclose(model.log_probs([other])[0].forward, plain, atol=1e-9)
        assert same[:place].all() and not same[place:].any()
        same = np.isclose(model.embed([other])[0], vectors, atol=1e-9).all(-1)  # (layers, words)
        assert same[:, :place].all() and not same[1:, place:].any()
        assert np.flatnonzero(~same[0]).tolist() == [place]


def test_folder_and_parts(tmp_path: Path) -> None:
    model = small()
    again = polyseme.load(model.save_pretrained(tmp_path / "m"))
    np.testing.assert_array_equal(again.score(TEXTS), model.score(TEXTS))
    assert again.output.weight is again.table.weight  # type: ignore[attr-defined]
    assert list(model.layer_groups()) == ["table", "layer1", "layer2", "layer3", "output"]
    model.freeze("layer1")
    assert [p.requires_grad for p in model.lstm.layers[0].parameters()] == [False] * 3 and model.table.weight.requires_grad


def test_in_training_it_drops_and_learns() -> None:
    model = small()
    model.set_dropout(AwdDropout())
    quiet = model(model.prepare(TEXTS)).states
    model.train()
    torch.manual_seed(1)
    loud = model(model.prepare(TEXTS)).states
    assert torch.equal(loud[0], quiet[0]) and not torch.allclose(loud[1:], quiet[1:])
    loud.sum().backward()
    assert all(weight.grad is not None for layer in model.lstm.stack() for weight in layer.parameters())


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match="hidden_size is 0; allowed: 1 or more; layers is 0"):
        UlmfitConfig(size=4, hidden_size=0, layers=0)


# ---- from right to left


def test_a_backward_model_reads_reversed_texts() -> None:
    forward, backward = small(), small(backward=True)
    reversed_texts = [text[::-1] for text in TEXTS]
    for one, other in zip(backward.embed(TEXTS), forward.embed(reversed_texts), strict=True):
        np.testing.assert_allclose(one, other[:, ::-1], atol=1e-6)
    for one, other in zip(backward.log_probs(TEXTS), forward.log_probs(reversed_texts), strict=True):
        np.testing.assert_allclose(one.forward[:-1], other.forward[:-1][::-1], atol=1e-6)
        assert one.forward[-1] == pytest.approx(other.forward[-1])
    pair, turned = [(TEXTS[0], TEXTS[2])], [(TEXTS[2][::-1], TEXTS[0][::-1])]
    with torch.inference_mode():
        ours = backward.encode_sequence(backward.prepare_sequence(pair), predict=True)
        theirs = forward.encode_sequence(forward.prepare_sequence(turned), predict=True)
    torch.testing.assert_close(ours.vectors, theirs.vectors)
    assert float(ours.lm_loss) == pytest.approx(float(theirs.lm_loss))
    with pytest.raises(UsageError, match="carry"):
        backward.log_probs(TEXTS, start="carry")
    with pytest.raises(UsageError, match="from right to left"):
        backward.chain_rule(TEXTS[0])


def test_the_direction_is_saved_and_old_fingerprints_stay(tmp_path: Path) -> None:
    forward, backward = small(), small(backward=True)
    again = polyseme.load(backward.save_pretrained(tmp_path / "m"))
    np.testing.assert_array_equal(again.embed(TEXTS)[0], backward.embed(TEXTS)[0])
    assert "backward" not in forward.config.to_dict(format=1) and model_fingerprint(forward) != model_fingerprint(backward)


def test_long_sequences_are_read_in_chunks_with_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vectors are those of one reading; gradients stay inside a chunk."""
    model, texts = small(), [(["the", "bank", "of", "a", "river"] * 3,), (["a"],)]
    with torch.no_grad():
        whole = model.encode_sequence(model.prepare_sequence(texts), predict=True)
    monkeypatch.setattr("polyseme.encoders.ulmfit.SEQUENCE_BPTT", 4)
    parts = model.encode_sequence(model.prepare_sequence(texts), predict=True)
    torch.testing.assert_close(parts.vectors, whole.vectors)
    torch.testing.assert_close(parts.lm_loss, whole.lm_loss)
    last = parts.vectors[0, : model.config.dim].sum()  # the state of the last word, which the last chunk has read
    rows = torch.autograd.grad(last, model.table.weight)[0].abs().sum(dim=1).nonzero()[:, 0].tolist()
    assert rows == sorted({WORDS.index(word) for word in ("bank", "of", "a", "river")})  # 16 tokens are read, 12 to 15 last


def test_a_backward_model_does_not_tell_the_next_word() -> None:
    assert predicts_next(small()) and not predicts_next(small(backward=True))
    sentences, read = ReadSentences(), ServedModel("forward", small())
    assert surprise_of(sentences, read, ["the"])["right"] is None
    backward = surprise_of(sentences, ServedModel("backward", small(backward=True)), ["the"])
    assert backward["left"] is None and len(backward["right"]) == 1
