"""Language-model questions, checked against probabilities worked out from the layers that `embed` gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.elmo import Elmo
from tests.encoders.small import elmo, sentences, vocabulary

TEXT = ["the", "bank", "of", "zebra", "river"]
IDS = {word: place for place, word in enumerate(vocabulary().words)}


def by_hand(model: Elmo, text: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Distributions over the vocabulary at each place, with marks: (words + 2, vocabulary) from the left and the right."""
    layers = model(model.prepare([text]))
    assert layers.ends is not None
    states = torch.cat([layers.ends[-1, 0, :1], layers.states[-1, 0], layers.ends[-1, 0, 1:]]).detach().double().numpy()
    weight, bias = (value.detach().double().numpy() for value in (model.output.weight, model.output.bias))
    result = []
    for half in (states[:, :8], states[:, 8:]):
        scores = half @ weight.T + bias
        result.append(scores - np.log(np.exp(scores).sum(1, keepdims=True)))
    return result[0], result[1]


def test_log_probs() -> None:
    model = elmo(output=True)
    left, right = by_hand(model, TEXT)
    found = model.log_probs([["cat"], TEXT])[1]
    ids = [IDS.get(word, IDS["<UNK>"]) for word in TEXT]
    np.testing.assert_allclose(found.forward, [left[i, w] for i, w in enumerate([*ids, IDS["</S>"]])], atol=1e-5)
    expected = [right[i + 2, w] for i, w in enumerate(ids)] + [right[1, IDS["<S>"]]]
    np.testing.assert_allclose(found.backward, expected, atol=1e-5)
    assert found.known.tolist() == [True, True, True, False, True]
    assert found.score == pytest.approx((found.forward.sum() + found.backward.sum()) / 2)


def test_a_word_is_not_seen_by_its_own_prediction() -> None:
    model = elmo(output=True)
    a, b = model.log_probs([["the", "cat", "sat"], ["the", "dog", "sat"]])
    assert a.forward[0] == pytest.approx(b.forward[0], abs=1e-6)
    assert a.backward[2] == pytest.approx(b.backward[2], abs=1e-6)
    assert a.forward[2] != pytest.approx(b.forward[2], abs=1e-4)


def test_perplexity_and_score() -> None:
    model = elmo(output=True)
    texts = sentences(20)
    found = model.log_probs(texts)
    forward = np.concatenate([each.forward for each in found])
    backward = np.concatenate([each.backward for each in found])
    perplexity = model.perplexity(texts)
    assert perplexity.predictions == sum(len(text) + 1 for text in texts)
    assert perplexity.forward == pytest.approx(np.exp(-forward.mean()))
    assert perplexity.backward == pytest.approx(np.exp(-backward.mean()))
    assert perplexity.mean == pytest.approx(np.exp(-(forward.mean() + backward.mean()) / 2))
    np.testing.assert_allclose(model.score(texts), [each.score for each in found])


def test_probabilities_sum_to_one() -> None:
    model = elmo(output=True)
    states = torch.randn(5, 8)
    torch.testing.assert_close(model.output(states).exp().sum(1), torch.ones(5))
    whole = model.output(states).gather(1, torch.arange(5)[:, None])[:, 0]
    torch.testing.assert_close(model.output.log_probs(states, torch.arange(5), numbers=1), whole)


def test_substitutes() -> None:
    model = elmo(output=True)
    left, right = by_hand(model, TEXT)
    both = left[1] + right[3]  # for the word "bank": what is left of it and what is right of it
    both[[IDS["<S>"], IDS["</S>"], IDS["<UNK>"]]] = -np.inf
    both -= np.log(np.exp(both).sum())
    best = np.argsort(-both)[:4]
    found = model.substitutes(TEXT, 1, count=4)
    assert [each.word for each in found] == [vocabulary()[int(i)] for i in best]
    np.testing.assert_allclose([each.log_prob for each in found], both[best], atol=1e-5)
    everything = model.substitutes(TEXT, 1, count=1000)
    assert len(everything) == len(IDS) - 3


def test_carried_questions_keep_the_order_of_arrival() -> None:
    texts = sentences(140, seed=2)
    found = elmo(output=True).log_probs(texts, start="carry")
    model, expected = elmo(output=True), []
    for begin in (0, 128):
        some = texts[begin : begin + 128]
        states, _ = model.read(some, start="carry")
        with torch.no_grad():
            expected += [model._sentence(states[-1, i], text, model.output, model.vocabulary) for i, text in enumerate(some)]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.forward, b.forward, atol=1e-5)


def test_mistakes() -> None:
    with pytest.raises(UsageError, match="start='carry' does not apply to substitutes"):
        elmo(output=True).substitutes(TEXT, 1, start="carry")
    with pytest.raises(UsageError, match="count is 0"):
        elmo(output=True).substitutes(TEXT, 1, count=0)
    with pytest.raises(PolysemeError, match="no output layer"):
        elmo().score(["the cat"])
    with pytest.raises(UsageError, match="position is 5; the sentence has 5 words, counted from 0"):
        elmo(output=True).substitutes(TEXT, 5)
    with pytest.raises(UsageError, match="at least one sentence"):
        elmo(output=True).perplexity([])


def test_substitutes_by_word() -> None:
    model = elmo(output=True)
    found = model.substitutes("the cat sat", word="cat", count=3)
    assert found == model.substitutes("the cat sat", 1, count=3) and (found.words, found.position) == (["the", "cat", "sat"], 1)
    for call, said in (
        ({"word": "dog"}, "'dog' is not in the sentence; its words are 0: the, 1: cat, 2: the"),
        ({"word": "the"}, "'the' occurs at positions 0, 2: choose one with position"),
        ({"word": "ca"}, "'ca' is not a word of its own: the model splits the sentence into 0: the"),
        ({}, "give word or position; the words are 0: the"),
        ({"word": "cat", "position": 1}, "give word or position"),
    ):
        with pytest.raises(UsageError, match=said):
            model.substitutes("the cat the", **call)


def test_results_print_and_render() -> None:
    model = elmo(output=True)
    found = model.substitutes(["the", "<b>", "sat"], word="<b>", count=2)
    assert str(found).splitlines()[0] == "the [<b>] sat" and "<b>" not in found._repr_html_()
    assert [*found.to_json()] == ["words", "position", "substitutes"]
    log_probs = model.log_probs([["the", "<b>"]])
    assert "not in the vocabulary" in str(log_probs[0]) and "&lt;b&gt;" in log_probs._repr_html_()
    assert [*log_probs[0].to_json()] == ["forward", "backward", "mean", "perplexity"]
    total = model.perplexity(["the cat", "the <b>"])
    assert total.sentences == 2 and total.words == 4 and total.unknown == 0.25 and "perplexity backward" in str(total)
    assert "<table>" in total._repr_html_() and [*total.to_json()] == ["sentences", "words", "unknown", "perplexity"]


def test_the_chain_rule_multiplies_to_the_score() -> None:
    model = elmo(output=True)
    (found,), steps = model.log_probs(["the cat"]), model.chain_rule("the cat")
    assert [step.word for step in steps] == ["the", "cat", "</S>", "cat", "the", "<S>"]
    sides = steps.directions()
    np.testing.assert_allclose(sides["forward"][-1].product, found.forward.sum())
    np.testing.assert_allclose(sides["backward"][-1].product, found.backward.sum())
    assert steps.to_json() == model.chain_rule(found).to_json() and "right to left" in str(steps)


def test_other_models_say_what_to_use() -> None:
    with pytest.raises(PolysemeError, match=r"kind elmo, which has no masked-word prediction: give a BERT"):
        elmo(output=True).fill("the [MASK]")
