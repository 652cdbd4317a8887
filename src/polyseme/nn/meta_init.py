"""Modules built without numbers, for weights that are put in at once.

`torch.device("meta")` alone does most of it. But the first `normal_` on such tensors makes torch import its compiler, 900
modules and one to two seconds of every program that loads a model, so that call is left out as well.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_LEFT_OUT = (Tensor.normal_, nn.init.normal_)


class _NoNumbers(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _LEFT_OUT:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


@contextlib.contextmanager
def meta_init() -> Iterator[None]:
    """Within this block tensors have shapes and no numbers."""
    with torch.device("meta"), _NoNumbers():
        yield
