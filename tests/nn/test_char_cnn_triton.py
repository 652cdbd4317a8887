"""The fused convolutions against the plain ones, through Triton's interpreter where there is no GPU."""

from __future__ import annotations

import pytest
import torch

from polyseme.nn import char_cnn
from polyseme.nn.char_cnn import CharCnn
from polyseme.nn.config import CharactersConfig

pytest.importorskip("triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CONFIG = CharactersConfig(symbols=262, dim=4, filters=((1, 5), (2, 7), (5, 9)), highway_layers=1, max_length=14)


@pytest.mark.parametrize("words", [1, 70])
def test_vectors_and_gradients(words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of all lengths, those too long for a window of padding too, in any order."""
    torch.manual_seed(0)
    network = CharCnn(CONFIG).to(DEVICE)
    lengths = torch.randint(3, CONFIG.max_length + 1, (words,))
    ids = torch.randint(1, 262, (words, CONFIG.max_length))
    ids[torch.arange(CONFIG.max_length) >= lengths[:, None]] = 0
    target = torch.randn(words, CONFIG.output_size, device=DEVICE)
    found = []
    for fused in (False, True):
        monkeypatch.setattr(char_cnn, "fused_fits", lambda *_, fused=fused: fused)
        out = network(ids.to(DEVICE), lengths)
        grads = torch.autograd.grad((out * target).sum(), list(network.parameters()))
        found.append([out.detach(), *grads])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_nothing_but_long_words(monkeypatch: pytest.MonkeyPatch) -> None:
    network = CharCnn(CONFIG).to(DEVICE)
    ids = torch.randint(1, 262, (3, CONFIG.max_length), device=DEVICE)
    lengths = torch.full((3,), CONFIG.max_length)
    plain = network(ids, lengths)
    monkeypatch.setattr(char_cnn, "fused_fits", lambda *_: True)
    torch.testing.assert_close(network(ids, lengths), plain)
