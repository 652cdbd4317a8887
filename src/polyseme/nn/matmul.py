"""Matmuls of activations with a fixed matrix on the CPU, in a chosen precision; and of arrays.

A `PreparedMatmul` is built once from a weight (outputs, inputs) and used many times. The fastest way was measured for 1 to 128
rows: a plain `mm` with the transposed matrix where it fits a cache, oneDNN's own layout for larger ones (up to 1.5 times as
fast for 16 rows), and `linear` for a few rows on ARM. int8 uses one scale for the whole matrix: oneDNN's per-channel form
gives wrong numbers on ARM when the number of rows changes.
"""

from __future__ import annotations

import functools
import logging
import platform
import warnings
from typing import Literal, Protocol, TypeVar, get_args

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from polyseme.base.errors import UsageError, nearest
from polyseme.nn.config import Precision

ARM = platform.machine().lower() in ("aarch64", "arm64")
_log = logging.getLogger(__name__)
_LARGE = 1 << 22  # size of a matrix from which oneDNN's layout is faster
_HALVES = {"fp16": torch.float16, "bf16": torch.bfloat16}
Real = TypeVar("Real", np.float32, np.float64)
_FEW = 8  # rows up to which `linear` is fastest on ARM


def array_matmul(a: NDArray[Real], b: NDArray[Real]) -> NDArray[Real]:
    """a @ b by PyTorch, whose threads can be limited.

    The threads of NumPy's BLAS keep their cores busy for tens of milliseconds after each product, in case that another one
    follows, and what PyTorch computes meanwhile takes up to twice as long.

    >>> array_matmul(np.ones((2, 3), np.float32), np.ones(3, np.float32)).tolist()
    [3.0, 3.0]
    """
    return (torch.from_numpy(a) @ torch.from_numpy(b)).numpy()


class PreparedMatmul(Protocol):
    """x (rows, inputs) -> x @ weight.T + bias, (rows, outputs)."""

    def multiply(self, x: Tensor, out: Tensor) -> Tensor:
        """Return the product, in `out` or in a new tensor."""

    def add(self, x: Tensor, other: Tensor) -> Tensor:
        """Return the product plus `other`; this may overwrite `other`."""


def prepare_matmul(weight: Tensor, precision: Precision = "fp32", bias: Tensor | None = None) -> PreparedMatmul:
    """Return the fastest matmul with this matrix on this machine."""
    if precision == "int8":
        return _Int8(weight, bias)
    if precision == "fp32":
        large = weight.numel() >= _LARGE and torch.backends.mkldnn.is_available()
        return _Reordered(weight, bias) if large else _Transposed(weight, bias)
    if precision in _HALVES:
        kind = _Half if _has(precision) else _Rounded
        return kind(weight, bias, _HALVES[precision])
    raise UsageError(f"unknown precision {precision!r}{nearest(precision, get_args(Precision))}")


@functools.cache
def _has(precision: Literal["fp16", "bf16"]) -> bool:
    """Whether oneDNN multiplies 16-bit numbers on this CPU; warns once if not."""
    ask = {"fp16": torch.ops.mkldnn._is_mkldnn_fp16_supported, "bf16": torch.ops.mkldnn._is_mkldnn_bf16_supported}[precision]
    if torch.backends.mkldnn.is_available() and ask():
        return True
    _log.warning("this CPU does not support %s: matmuls run in fp32 on rounded numbers, without a speed-up", precision)
    return False


class _Transposed:
    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias
        self.transposed = weight.t().contiguous()

    def multiply(self, x: Tensor, out: Tensor) -> Tensor:
        if ARM and len(x) <= _FEW:
            return F.linear(x, self.weight, self.bias)
        if self.bias is None:
            return torch.mm(x, self.transposed, out=out)
        return torch.addmm(self.bias, x, self.transposed, out=out)

    def add(self, x: Tensor, other: Tensor) -> Tensor:
        if ARM and len(x) <= _FEW:
            return other.add_(F.linear(x, self.weight, self.bias))
        other = other if self.bias is None else other.add_(self.bias)
        return other.addmm_(x, self.transposed)


class _Reordered:
    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), 64), bias

    def multiply(self, x: Tensor, out: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")

    def add(self, x: Tensor, other: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise.binary(x, other, self.weight, self.bias, "add")


class _Half:
    """Weights and activations in 16 bits, accumulation in 32."""

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        self.bias, self.dtype = bias, dtype
        self.weight = self._prepare(weight)

    def _prepare(self, weight: Tensor) -> Tensor:
        return torch.ops.mkldnn._reorder_linear_weight(weight.to(self.dtype).contiguous(), 64)

    def multiply(self, x: Tensor, out: Tensor) -> Tensor:
        out.copy_(self._matmul(x))
        return out if self.bias is None else out.add_(self.bias)

    def add(self, x: Tensor, other: Tensor) -> Tensor:
        other = other if self.bias is None else other.add_(self.bias)
        return other.add_(self._matmul(x))

    def _matmul(self, x: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x.to(self.dtype), self.weight, None, "none", [], "")


class _Rounded(_Half):
    """Numbers rounded to 16 bits and multiplied in 32: for a CPU without 16-bit matmuls.

    A difference in the last bit of 32 can round to another number of 16 bits. So few rows take the same kernel as many, and a
    single row is doubled: matrix-vector products sum in another order.
    """

    def _prepare(self, weight: Tensor) -> Tensor:
        return weight.to(self.dtype).float().t().contiguous()

    def _matmul(self, x: Tensor) -> Tensor:
        rounded = x.to(self.dtype).float()
        return torch.mm(rounded, self.weight) if len(x) > 1 else torch.mm(rounded.repeat(2, 1), self.weight)[: len(x)]


def _saturates() -> bool:
    """Whether this CPU adds pairs of 8-bit products in 16 bits, where they overflow: x86 without its instruction for them."""
    supported = getattr(torch.cpu, "_is_vnni_supported", lambda: False)  # without a public name
    return platform.machine().lower() in ("x86_64", "amd64") and not supported()


class _Int8:
    """Weights in 8 bits with one scale, activations with one for each call: in 8 bits, or 7 where products would overflow."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        if "onednn" not in torch.backends.quantized.supported_engines:
            raise UsageError("int8 needs oneDNN, which this build of PyTorch lacks: use fp32")
        self.seven_bits = _saturates()
        before = torch.backends.quantized.engine
        torch.backends.quantized.engine = "onednn"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch warns that a later release removes it
                scale = max(float(weight.abs().max()), 1e-12) / 127
                quantised = torch.quantize_per_tensor(weight.contiguous(), scale, 0, torch.qint8)
                self.packed = torch.ops.quantized.linear_prepack(quantised, bias)
        finally:
            torch.backends.quantized.engine = before

    def multiply(self, x: Tensor, out: Tensor) -> Tensor:
        return torch.ops.quantized.linear_dynamic(x, self.packed, self.seven_bits)

    def add(self, x: Tensor, other: Tensor) -> Tensor:
        return other.add_(torch.ops.quantized.linear_dynamic(x, self.packed, self.seven_bits))
