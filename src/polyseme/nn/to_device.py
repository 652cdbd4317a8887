"""From the CPU to where a network computes."""

from __future__ import annotations

import torch
from torch import Tensor


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the CPU on a device; to a GPU without waiting for what that still computes.

    A copy from memory that the system may page out would wait, and with it the thread that makes the next batch ready.
    """
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
