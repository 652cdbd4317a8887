from __future__ import annotations

import pytest
import torch

from polyseme.base.errors import UsageError
from polyseme.nn.pooling import pool

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


def test_no_words_are_zeros() -> None:
    empty = torch.zeros(2, 0, 3), torch.zeros(2, 0, dtype=torch.bool)
    assert pool(*empty, "max").tolist() == [[0, 0, 0]] * 2 and pool(*empty, "ends").shape == (2, 6)


def test_mistakes() -> None:
    with pytest.raises(UsageError, match=r"unknown pooling 'men' \(did you mean 'mean'\?\)"):
        pool(VECTORS, MASK, "men")  # type: ignore[arg-type]
