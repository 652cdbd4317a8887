"""Weights in eight bits: each row or each column of a matrix has one scale, and whole numbers from -127 to 127.

    weight = number * scale

The scale is the largest absolute weight of the channel / 127. Clipping the largest weights, as is done for fewer bits, gains
nothing here: with the clip that has the least squared error in each channel, the error of the matrices of the model `en` is at
most about 1 % smaller. Whether rows or columns lose less differs between matrices, up to a third of the error, so
that is tried for each. Scales have 16 significant bits, so that `number * scale` is exact in float32 and weights that were read
are written again as they were.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

LEVELS = 127
_SMALLEST = 1 << 14  # numbers of the smallest tensor that is worth it
_BITS = 16  # of a scale; LEVELS has 7, float32 24


class Quantized(NamedTuple):
    """A tensor in eight bits."""

    numbers: Tensor
    """int8, of the tensor's shape."""
    scale: Tensor
    """float32: of the shape of one row (1, n, 1, ...) or one column (n, 1, 1, ...)."""

    def weights(self) -> Tensor:
        """The tensor in float32."""
        return self.numbers.float().mul_(self.scale)


def worth_quantizing(tensor: Tensor) -> bool:
    """Whether a tensor is a large matrix or convolution kernel; vectors and small ones keep their precision.

    >>> worth_quantizing(torch.zeros(256, 64)), worth_quantizing(torch.zeros(16384)), worth_quantizing(torch.zeros(16, 16))
    (True, False, False)
    """
    return tensor.is_floating_point() and tensor.dim() >= 2 and tensor.numel() >= _SMALLEST


def quantize(tensor: Tensor) -> Quantized:
    """Round a matrix or kernel, by rows or by columns, whichever has the smaller squared error.

    >>> quantize(torch.tensor([[1.0, -127.0], [63.5, 0.0]])).weights().tolist()
    [[1.0, -127.0], [63.5, 0.0]]
    """
    value = tensor.detach().to("cpu", torch.float32)
    by_rows = _by_channel(value, 0)
    by_columns = _by_channel(value, 1)
    return min((by_rows, by_columns), key=lambda each: float((each.weights() - value).square().sum()))


def fits(shape: list[int], scale: list[int]) -> bool:
    """Whether a scale of this shape has one number per row or per column of a tensor.

    >>> fits([4, 3], [4, 1]), fits([4, 3], [1, 3]), fits([4, 3], [4, 3]), fits([4, 3], [4])
    (True, True, False, False)
    """
    return len(shape) >= 2 and scale in ([shape[0]] + [1] * (len(shape) - 1), [1, shape[1]] + [1] * (len(shape) - 2))


def _by_channel(value: Tensor, channel: int) -> Quantized:
    others = [dim for dim in range(value.dim()) if dim != channel]
    scale = value.abs().amax(others, keepdim=True) / LEVELS
    mantissa, exponent = torch.frexp(scale)
    scale = torch.ldexp(torch.ceil(mantissa * 2**_BITS) / 2**_BITS, exponent)
    scale = torch.where(scale > 0, scale, 1.0)
    return Quantized((value / scale).round_().clamp_(-LEVELS, LEVELS).to(torch.int8), scale)
