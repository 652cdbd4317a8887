"""Whether weights have changed since something was derived from them."""

from __future__ import annotations

from torch import nn

Stamp = tuple[tuple[int, int], ...]


def stamp(module: nn.Module) -> Stamp:
    """Changes whenever a parameter is replaced, moved or written in place (an optimizer's step, a new state dict)."""
    return tuple((p.data_ptr(), 0 if p.is_inference() else p._version) for p in module.parameters())
