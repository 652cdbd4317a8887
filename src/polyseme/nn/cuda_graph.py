"""The forward and the backward pass of a module as two CUDA graphs, which replace thousands of kernel launches by two.

A graph has fixed shapes and reads the weights at their addresses: they may change, but not move. Results and gradients are
valid until the next call. So where a step adds the gradients of several batches, only the first of them goes through a graph.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

recording = threading.Lock()
"""Held while a graph is captured. Other threads must hold it to allocate GPU memory, which would break the capture."""


def capture(module: nn.Module, inputs: Sequence[Tensor], *, pool: Any = None) -> Callable[..., Any]:
    """Capture a call of a module that is trained, with autocast as it is now; inputs need gradients as those given do.

    Results of earlier calls with gradients must be gone: PyTorch cannot capture beside them. Later calls have the random
    numbers that they would have without a capture. Graphs with one `pool` (`torch.cuda.graph_pool_handle()`) share memory: of
    their calls, none may begin between another's forward and backward.
    """
    sample = tuple(tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in inputs)
    # the graph is captured on its own stream, and gradients accumulate on the default one: this is intended
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    kind, half = torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda")
    with recording, torch.autocast("cuda", dtype=kind, enabled=half, cache_enabled=False):
        random = torch.cuda.get_rng_state()
        replay: Callable[..., Any] = torch.cuda.make_graphed_callables(module, sample, allow_unused_input=True, pool=pool)
        torch.cuda.set_rng_state(random)
    return replay


def can_replay(module: nn.Module) -> bool:
    """Whether a call may be a graph's: in training, and before any gradient.

    A graph's gradients become those of the weights without a copy, so the graph must not run again for the same step.
    """
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    return torch.is_grad_enabled() and module.training and bool(weights) and all(weight.grad is None for weight in weights)
