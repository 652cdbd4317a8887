"""What the benchmarks compare is the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks import logistic_regression, sentence_vectors, workload
from tests.encoders.small import elmo, sentences


def test_fewer_sentences_are_the_first_of_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLYSEME_DATA", raising=False)
    assert workload.sentences(64) == workload.sentences(300)[:64]
    lengths = [len(text) for text in workload.sentences(300)]
    assert min(lengths) >= 1 and max(lengths) <= 60 and 10 < sum(lengths) / 300 < 20


def test_logistic_regression_is_at_its_minimum() -> None:
    draw = np.random.default_rng(0)
    inputs = draw.normal(size=(200, 12)).astype(np.float32)
    labels = (inputs[:, 0] + draw.normal(size=200) > 0).astype(np.int64)
    rotated, basis = logistic_regression._rotate(inputs)
    (weights,), (bias,) = (each.T for each in logistic_regression._solve(rotated, labels, 2, [(labels >= 0, 0.01)]))
    in_inputs = basis @ weights
    slopes = 1 / (1 + np.exp(-(inputs @ in_inputs + bias))) - labels
    np.testing.assert_allclose(inputs.T @ slopes / 200 + 0.12 * in_inputs, 0, atol=1e-4)
    assert abs(slopes.mean()) < 1e-4


def test_logistic_regression_chooses_inside_the_training_data() -> None:
    draw = np.random.default_rng(0)
    inputs = draw.normal(size=(300, 30)).astype(np.float32)
    labels = inputs[:, :3].argmax(1)
    found = logistic_regression.choose_and_predict(inputs[:200], labels[:200], inputs[200:])
    assert (found.predicted == labels[200:]).mean() > 0.8
    on_dev = logistic_regression.choose_and_predict(
        inputs[:150], labels[:150], inputs[200:], dev=(inputs[150:200], labels[150:200])
    )
    assert (on_dev.predicted == labels[200:]).mean() > 0.8


def test_sentence_vectors_are_those_of_encode() -> None:
    model = elmo(output=True).fit_pooling(sentences(60, seed=5))
    texts = ["the cat sat", "", "a bank"]
    for name, found in sentence_vectors.pooled(model, texts).items():
        np.testing.assert_allclose(found, model.encode(texts, pooling=name), atol=1e-6)
    assert sentence_vectors.similarity(np.eye(4, dtype=np.float32)[[0, 1, 2, 0, 2, 3]], [5.0, 0.0, 0.0]) == pytest.approx(1)


def test_small_draws_are_judged_by_their_own_scores() -> None:
    from benchmarks import small_draws

    assert small_draws.spans(["B-PER", "I-PER", "O", "S-LOC", "B-LOC", "E-LOC", "I-LOC"]) == {
        *{(0, 2, "-PER"), (3, 4, "-LOC"), (4, 6, "-LOC"), (6, 7, "-LOC")},
    }
    good = {
        "score": 0.7,
        "prior": 0.5,
        "reported": 0.7,
        "dev": 60,
        "learned": True,
        "restarts": 1,
        "restart_lines": 1,
        "failure_lines": 0,
    }
    bad = {**good, "score": 0.5, "reported": 0.5, "learned": False, "restarts": 2, "restart_lines": 2, "failure_lines": 1}
    assert small_draws.violation(good) == small_draws.violation(bad) == ""
    assert small_draws.violation({**good, "failure_lines": 1}) == "beats the prior and says that it learned nothing"
    assert small_draws.violation({**bad, "failure_lines": 0}) == "no better than the prior and does not say so"
    silent = {**bad, "restarts": 0, "restart_lines": 0}
    assert small_draws.violation(silent) == "no better than the prior and did not restart"


def test_a_widened_model_predicts_the_same() -> None:
    from benchmarks.distillation import widened

    model = elmo(output=True, start="learned")
    assert model.learned is not None
    torch.nn.init.normal_(model.learned["cell"])
    wide = widened(model, model.config.lstm.cell_size + 5)
    np.testing.assert_allclose(list(wide.score(sentences(5))), list(model.score(sentences(5))), rtol=1e-5)


def test_a_distilled_loss_has_the_gradients_of_a_mixture() -> None:
    from benchmarks.distillation import DistilledLoss
    from polyseme.nn.output.full import FullSoftmax

    torch.manual_seed(0)
    model, teacher, share = FullSoftmax(50, 8), FullSoftmax(50, 12), 0.6
    states, theirs, targets = torch.randn(6, 8, requires_grad=True), torch.randn(6, 12), torch.randint(50, (6,))
    total, each = DistilledLoss.apply(states, model.weight, model.bias, targets, theirs, teacher, share)
    found = torch.autograd.grad(total, (states, model.weight, model.bias))
    mixture = share * teacher(theirs).exp() + (1 - share) * torch.nn.functional.one_hot(targets, 50)
    expected = torch.autograd.grad(-(mixture.detach() * model(states)).sum(), (states, model.weight, model.bias))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(each, -model.log_probs(states, targets).detach())
