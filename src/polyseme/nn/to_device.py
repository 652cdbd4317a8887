"""Copy tensors from the CPU to the device of a network."""

from __future__ import annotations

import torch
from torch import Tensor


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a CPU tensor to a device; to a GPU without waiting for its queued work.

    A copy from pageable memory would wait, and with it the thread that prepares the next batch.
    """
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
