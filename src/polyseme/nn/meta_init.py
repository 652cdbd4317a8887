"""Build modules on the meta device, without numbers, when their weights are loaded right afterwards.

`torch.device("meta")` does most of it. But the first `normal_` on a meta tensor makes torch import its compiler: 900 modules,
one to two seconds in every program that loads a model. So this also skips `normal_`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_SKIPPED = (Tensor.normal_, nn.init.normal_)


class _SkipInit(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _SKIPPED:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


@contextlib.contextmanager
def meta_init() -> Iterator[None]:
    """Within this block new tensors are on the meta device: they have shapes, but no numbers."""
    with torch.device("meta"), _SkipInit():
        yield
