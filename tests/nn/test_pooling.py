from __future__ import annotations

import pytest
import torch

from polyseme.base.errors import UsageError
from polyseme.nn.pooling import pool, pool_spans

VECTORS = torch.tensor([[[1.0, -4.0], [3.0, -2.0], [99.0, 99.0]], [[5.0, 6.0], [99.0, 99.0], [99.0, 99.0]], [[99.0, 99.0]] * 3])
MASK = torch.tensor([[True, True, False], [True, False, False], [False, False, False]])


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("mean", [[2, -3], [5, 6], [0, 0]]),
        ("max", [[3, -2], [5, 6], [0, 0]]),
        ("first", [[1, -4], [5, 6], [0, 0]]),
        ("last", [[3, -2], [5, 6], [0, 0]]),
        ("ends", [[1, -4, 3, -2], [5, 6, 5, 6], [0, 0, 0, 0]]),
    ],
)
def test_padding_never_counts(how: str, expected: list) -> None:
    assert pool(VECTORS, MASK, how).tolist() == expected  # type: ignore[arg-type]


def test_spans() -> None:
    words = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    spans = torch.tensor([[0, 4], [1, 2], [2, 4]])
    assert pool_spans(words, spans).tolist() == [[1.5], [1.0], [2.5]]
    assert pool_spans(words, spans, "ends").tolist() == [[0, 3], [1, 1], [2, 3]]
    assert pool_spans(words, torch.zeros(0, 2, dtype=torch.long)).shape == (0, 1)


def test_no_words_are_zeros() -> None:
    empty = torch.zeros(2, 0, 3), torch.zeros(2, 0, dtype=torch.bool)
    assert pool(*empty, "max").tolist() == [[0, 0, 0]] * 2 and pool(*empty, "ends").shape == (2, 6)
    assert pool_spans(torch.ones(4, 1), torch.tensor([[1, 1]]), "first").tolist() == [[0]]


def test_mistakes() -> None:
    with pytest.raises(UsageError, match="ends before it starts"):
        pool_spans(torch.zeros(4, 1), torch.tensor([[3, 1]]))
    with pytest.raises(UsageError, match=r"unknown pooling 'men' \(did you mean 'mean'\?\)"):
        pool(VECTORS, MASK, "men")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="spans reach from 0 to 5, but the sentence has 4 words"):
        pool_spans(torch.zeros(4, 1), torch.tensor([[0, 5]]))
