"""The recurrent layers against PyTorch's own way of packing, one layer after another."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from polyseme.base.errors import UsageError
from polyseme.nn.dropout import VariationalDropout
from polyseme.nn.stacked_bilstm import StackedBiLstm, final_states

LENGTHS = torch.tensor([3, 0, 5, 1])
MASK = torch.arange(5) < LENGTHS[:, None]


def words(dim: int = 4) -> Tensor:
    """(4, 5, dim), with 99 on padding."""
    return torch.randn(4, 5, dim, generator=torch.Generator().manual_seed(1)).masked_fill(~MASK.unsqueeze(2), 99.0)


def plain(network: StackedBiLstm, vectors: Tensor, extra: Tensor | None = None) -> Tensor:
    """The same by `pack_padded_sequence`, for texts that have words."""
    for number, lstm in enumerate(network.layers):
        if extra is not None and number in network.between:
            vectors = torch.cat([vectors, extra], dim=2)
        packed = pack_padded_sequence(vectors, LENGTHS[LENGTHS > 0], batch_first=True, enforce_sorted=False)
        vectors = pad_packed_sequence(lstm(packed)[0], batch_first=True)[0]
    return vectors


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_as_pytorch_packs(layers: int) -> None:
    torch.manual_seed(0)
    network, full = StackedBiLstm(4, 6, layers), LENGTHS > 0
    found = network(words(), MASK)
    torch.testing.assert_close(found[full], plain(network, words()[full]))
    assert found.shape == (4, 5, network.dim) and not found[~MASK].any()
    torch.testing.assert_close(network(words(), MASK, LENGTHS), found, atol=0.0, rtol=0.0)


@pytest.mark.parametrize(("between", "sizes"), [(None, [4, 15, 12]), ([2], [4, 12, 15]), ([1, 2], [4, 15, 15])])
def test_further_vectors_between_layers(between: list[int] | None, sizes: list[int]) -> None:
    torch.manual_seed(0)
    network, full = StackedBiLstm(4, 6, 3, extra_inputs=3, between=between), LENGTHS > 0
    assert [lstm.input_size for lstm in network.layers] == sizes
    found = network(words(), MASK, extra=words(3))
    torch.testing.assert_close(found[full], plain(network, words()[full], words(3)[full]))
    assert not torch.allclose(found, network(words(), MASK, extra=-words(3)))


def test_alone_as_in_a_batch() -> None:
    torch.manual_seed(0)
    network = StackedBiLstm(4, 6, 2)
    together = network(words(), MASK)
    for row, length in enumerate(LENGTHS.tolist()):
        alone = network(words()[row : row + 1, :length], MASK[row : row + 1, :length])
        torch.testing.assert_close(alone[0], together[row, :length], atol=1e-6, rtol=0.0)


def test_texts_without_words() -> None:
    network, empty = StackedBiLstm(4, 6), torch.zeros(2, 3, dtype=torch.bool)
    assert network(torch.ones(2, 3, 4), empty).tolist() == torch.zeros(2, 3, 12).tolist()
    assert network(torch.ones(2, 0, 4), empty[:, :0]).shape == (2, 0, 12)
    assert network(torch.ones(0, 3, 4), empty[:0]).shape == (0, 3, 12)


def test_gradients_reach_everything_but_padding() -> None:
    network = StackedBiLstm(4, 6, 2, dropout=0.1, extra_inputs=3)
    vectors, extra = words().requires_grad_(), words(3).requires_grad_()
    network(vectors, MASK, LENGTHS, extra).square().sum().backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in network.parameters())
    for given in (vectors, extra):
        assert given.grad is not None and bool(given.grad[MASK].any()) and not given.grad[~MASK].any()


def test_first_values() -> None:
    lstm = StackedBiLstm(4, 6).layers[0]
    for name, parameter in lstm.named_parameters():
        if name.startswith("weight_hh"):
            for gate in parameter.chunk(4):
                torch.testing.assert_close(gate @ gate.T, torch.eye(6))
    for end in ("", "_reverse"):
        bias = getattr(lstm, f"bias_ih_l0{end}") + getattr(lstm, f"bias_hh_l0{end}")
        assert bias.tolist() == [0.0] * 6 + [1.0] * 6 + [0.0] * 12  # input, forget, cell and output gate


def test_final_states() -> None:
    network = StackedBiLstm(4, 6)
    found = final_states(network(words(), MASK), MASK)
    for row, length in enumerate(LENGTHS.tolist()):
        if length:
            _, (last, _) = network.layers[0](words()[row : row + 1, :length])
            torch.testing.assert_close(found[row], last.flatten())
    assert not found[1].any()


def test_dropout_takes_the_same_places_of_all_words() -> None:
    torch.manual_seed(0)
    dropout, ones = VariationalDropout(0.25), torch.ones(50, 7, 40)
    found = dropout(ones)
    assert torch.equal(found, found[:, :1].expand_as(found))
    assert not torch.equal(found[0], found[1])
    assert found.unique().tolist() == [0.0, pytest.approx(1 / 0.75)]
    assert (found == 0).float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert dropout.eval()(ones) is ones
    network = StackedBiLstm(30, 40, dropout=0.5)
    assert 0.4 < (network(words(30), MASK)[LENGTHS > 0] == 0).all(1).float().mean() < 0.6
    assert torch.equal(network.eval()(words(30), MASK), network(words(30), MASK))


@pytest.mark.parametrize("given", [torch.float32, torch.bfloat16])
def test_few_bits(given: torch.dtype) -> None:
    torch.manual_seed(0)
    network = StackedBiLstm(4, 6, 2, dropout=0.0)
    expected = network(words(), MASK)
    with torch.autocast("cpu", torch.bfloat16):
        found = network(words().to(given), MASK)
    torch.testing.assert_close(found.float(), expected, atol=0.03, rtol=0.0)
    found.float().sum().backward()


def test_learns_to_look_both_ways() -> None:
    """Each word is to say whether the first and the last word of its text are of one kind."""
    torch.manual_seed(0)
    network, score = StackedBiLstm(2, 16, 2), torch.nn.Linear(32, 1)
    kinds = torch.randint(2, (32, 6))
    mask = torch.arange(6) < torch.randint(2, 7, (32, 1))
    last = kinds.gather(1, mask.sum(1, keepdim=True) - 1)
    wanted = (kinds[:, :1] == last).float().expand(-1, 6)[mask]
    optimizer = torch.optim.Adam([*network.parameters(), *score.parameters()], lr=0.03)
    for _ in range(40):
        optimizer.zero_grad()
        scores = score(network(torch.eye(2)[kinds], mask)).squeeze(2)[mask]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, wanted)
        loss.backward()
        optimizer.step()
    assert ((scores > 0) == wanted.bool()).float().mean() > 0.95


def test_mistakes() -> None:
    with pytest.raises(UsageError, match=r"after layers \[1\] of 1: another layer must follow"):
        StackedBiLstm(4, 6, 1, extra_inputs=3)
    with pytest.raises(UsageError, match="takes extra vectors of size 0; got 3"):
        StackedBiLstm(4, 6, 2)(words(), MASK, extra=words(3))
    with pytest.raises(UsageError, match="takes extra vectors of size 3; got 0"):
        StackedBiLstm(4, 6, 2, extra_inputs=3)(words(), MASK)
    with pytest.raises(UsageError, match=r"dropout is 1.0; allowed: 0 or more, below 1"):
        VariationalDropout(1.0)


def test_with_and_without_gradients() -> None:
    """On a CPU two kernels compute the layers."""
    torch.manual_seed(0)
    network = StackedBiLstm(5, 7, 2, extra_inputs=3).eval()
    vectors, extra = torch.randn(4, 6, 5), torch.randn(4, 6, 3)
    lengths = torch.tensor([6, 0, 3, 1])
    mask = torch.arange(6) < lengths[:, None]
    with torch.no_grad():
        expected = network(vectors, mask, lengths, extra)
    found = network(vectors, mask, lengths, extra)
    torch.testing.assert_close(found, expected)
    assert found.requires_grad and not found[~mask].any()
