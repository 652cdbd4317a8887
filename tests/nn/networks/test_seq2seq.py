"""The network from sequences to sequences: training over all words equals writing word by word, padding counts for nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from polyseme.base.errors import UsageError
from polyseme.nn.networks.beam import beam_search
from polyseme.nn.networks.seq2seq import DecoderAttention, DecoderConfig, DecoderState, Seq2Seq
from polyseme.nn.stacked_bilstm import StackedBiLstm

SIZES = DecoderConfig(vocabulary=11, word_dim=6, hidden_size=8, memory_dim=8)
LENGTHS = torch.tensor([5, 3, 0, 1])
TARGETS = torch.tensor([[4, 5, 6, 1], [7, 1, 1, 1], [1, 1, 1, 1], [8, 9, 1, 1]])
COUNTS = torch.tensor([4, 2, 1, 3])
PLACES = torch.cat([4 * row + torch.arange(count) for row, count in enumerate(COUNTS.tolist())])
kinds = pytest.mark.parametrize(
    "changes",
    [{}, {"score": "additive"}, {"input_feeding": True}, {"tied": True}, {"layers": 2}, {"layers": 2, "input_feeding": True}],
    ids=str,
)


def network(changes: dict[str, Any] | None = None, **others: Any) -> Seq2Seq:
    torch.manual_seed(0)
    sizes = replace(SIZES, **(changes or {}))
    return Seq2Seq(StackedBiLstm(3, 4, dropout=sizes.dropout), sizes, begin=0, **others).eval()


def texts(rows: slice = slice(None)) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    lengths = LENGTHS[rows]
    width = max(int(lengths.max()), 1)
    mask = torch.arange(width) < lengths[:, None]
    vectors = torch.randn(4, 5, 3)[rows, :width].masked_fill(~mask.unsqueeze(2), 0.0)
    return vectors, mask, lengths


def stepped(model: Seq2Seq, state: DecoderState, words: list[int]) -> Tensor:
    """Log-probabilities of known words of one text, one by one: (words,)."""
    found, last = [], 0
    for word in words:
        made = model.decoder.step(torch.tensor([last]), state)
        found.append(made.log_probs[0, word])
        state, last = made.state, word
    return torch.stack(found)


@kinds
@torch.no_grad()
def test_all_words_at_once_are_one_word_after_another(changes: dict[str, Any]) -> None:
    model = network(changes)
    total = model.losses(model.read(*texts()), TARGETS, PLACES)
    expected = 0.0
    for row, count in enumerate(COUNTS.tolist()):
        state = model.read(*texts(slice(row, row + 1)))
        expected -= float(stepped(model, state, TARGETS[row, :count].tolist()).sum())
    assert float(total.total) == pytest.approx(expected, rel=1e-5)
    assert float(total.plain) == pytest.approx(expected, rel=1e-5)


@kinds
@torch.no_grad()
def test_beams_of_a_batch_are_those_of_each_text(changes: dict[str, Any]) -> None:
    model, limits = network(changes), torch.tensor([6, 4, 3, 5])
    together = beam_search(model.decoder.step, model.read(*texts()), limits, begin=0, end=1, beam=3)
    for row in range(4):
        some = slice(row, row + 1)
        (alone,) = beam_search(model.decoder.step, model.read(*texts(some)), limits[some], begin=0, end=1, beam=3)
        assert [each.words for each in alone] == [each.words for each in together[row]]
        assert [each.source_positions for each in alone] == [each.source_positions for each in together[row]]
        assert [each.score for each in alone] == pytest.approx([each.score for each in together[row]], abs=1e-5)
        assert not any(0 in each.words for each in alone)  # the begin mark


@kinds
def test_everything_learns(changes: dict[str, Any]) -> None:
    model = network({**changes, "dropout": 0.1}).train()
    model.losses(model.read(*texts()), TARGETS, PLACES).total.backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()] == []


@pytest.mark.parametrize("tied", [False, True])
def test_label_smoothing_is_that_of_torch(tied: bool) -> None:
    model = network({"tied": tied}, label_smoothing=0.2)
    found = model.losses(model.read(*texts()), TARGETS, PLACES)
    found.total.backward()
    grads = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad()
    begin = torch.zeros(4, 1, dtype=torch.int64)
    readouts, _, _ = model.decoder(torch.cat([begin, TARGETS[:, :-1]], dim=1), model.read(*texts()))
    scores = F.linear(readouts.flatten(0, 1)[PLACES], model.decoder.output.weight, model.decoder.output.bias)
    expected = F.cross_entropy(scores, TARGETS.flatten()[PLACES], reduction="sum", label_smoothing=0.2)
    expected.backward()
    assert float(found.total.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
    assert float(found.plain) == pytest.approx(
        float(F.cross_entropy(scores.detach(), TARGETS.flatten()[PLACES], reduction="sum"))
    )
    for name, weight in model.named_parameters():
        torch.testing.assert_close(grads[name], weight.grad, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize("scoring", ["general", "additive"])
@torch.no_grad()
def test_attention_by_hand(scoring: Any) -> None:
    torch.manual_seed(2)
    attention, states, values = DecoderAttention(4, 3, scoring), torch.randn(2, 5, 4), torch.randn(2, 6, 3)
    mask = torch.tensor([[True, True, True, False, False, False], [False] * 6])
    context, weights = attention(states, attention.remember(values, mask))
    for step in range(5):
        scores = []
        for word in range(3):
            key = attention.key.weight @ values[0, word]
            if attention.query is None or attention.score is None:
                scores.append(states[0, step] @ key)
            else:
                hidden = torch.tanh(attention.query.weight @ states[0, step] + attention.query.bias + key)
                scores.append(attention.score.weight[0] @ hidden)
        expected = torch.softmax(torch.stack(scores), 0)
        torch.testing.assert_close(weights[0, step, :3], expected)
        torch.testing.assert_close(context[0, step], expected @ values[0, :3])
    assert not weights[0, :, 3:].any() and not weights[1].any() and not context[1].any()  # nothing to look at: zeros


def test_an_unknown_way_to_look() -> None:
    with pytest.raises(UsageError, match="attention is 'dot'; allowed: general, additive"):
        DecoderAttention(4, 3, "dot")  # type: ignore[arg-type]


@torch.no_grad()
def test_vectors_beside_the_memory() -> None:
    model = network({"memory_dim": 10})
    vectors, mask, lengths = texts()
    states = [model.read(vectors, mask, lengths, at_output=torch.full((4, 5, 2), number)) for number in (0.0, 1.0)]
    assert states[0].memory.values.shape == (4, 5, 10)
    losses = [float(model.losses(state, TARGETS, PLACES).total) for state in states]
    assert losses[0] != pytest.approx(losses[1])
