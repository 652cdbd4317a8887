"""16-bit matmuls on a CPU without them."""

from __future__ import annotations

import logging

import pytest
import torch

from polyseme.nn import matmul
from polyseme.nn.config import Precision

HALVES = {"fp16": torch.float16, "bf16": torch.bfloat16}


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
@pytest.mark.parametrize("rows", [1, 20])
@pytest.mark.parametrize("biased", [False, True])
def test_rounded_numbers_are_multiplied_exactly(
    monkeypatch: pytest.MonkeyPatch, precision: Precision, rows: int, biased: bool
) -> None:
    monkeypatch.setattr(matmul, "_has", lambda precision: False)
    torch.manual_seed(0)
    weight, x, other = torch.randn(12, 30), torch.randn(rows, 30), torch.randn(rows, 12)
    bias = torch.randn(12) if biased else None
    dtype = HALVES[precision]
    expected = x.to(dtype).double() @ weight.to(dtype).double().t() + (0.0 if bias is None else bias.double())
    made = matmul.prepare_matmul(weight, precision, bias)
    torch.testing.assert_close(made.multiply(x, torch.empty(rows, 12)).double(), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(made.add(x, other.clone()).double(), expected + other.double(), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(expected.float(), torch.nn.functional.linear(x, weight, bias), atol=1e-6)


def test_missing_support_is_reported_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    matmul._has.cache_clear()
    try:
        with caplog.at_level(logging.WARNING):
            for _ in range(2):
                matmul.prepare_matmul(torch.ones(2, 2), "bf16")
        assert [record.getMessage() for record in caplog.records] == [
            "this CPU does not support bf16: matmuls run in fp32 on rounded numbers, without a speed-up"
        ]
    finally:
        matmul._has.cache_clear()


def test_a_row_alone_is_rounded_as_in_company(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "_has", lambda precision: False)
    torch.manual_seed(0)
    weight, row = torch.randn(512, 1024), torch.randn(1, 1024)  # where one row sums in another order here
    made = matmul.prepare_matmul(weight, "bf16")
    alone, both = made.multiply(row, torch.empty(1, 512)), made.multiply(row.repeat(2, 1), torch.empty(2, 512))
    assert torch.equal(alone[0], both[0])
