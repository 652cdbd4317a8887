"""A run: seed, device, precision, rank and world size; and random states, captured and restored.

It is passed as a value; there is no global device, and no seed is set at import. Under torchrun rank and world size come
from its variables (RANK, WORLD_SIZE, LOCAL_RANK). Random states are JSON values, so that a checkpoint needs no pickle.
"""

from __future__ import annotations

import base64
import dataclasses
import os
import random
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from polyseme.base.errors import UsageError, arg

PRECISIONS = ("fp32", "bf16")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """Where and how a computation runs.

    >>> Run(seed=1).device
    device(type='cpu')
    """

    seed: int = 0
    """Each process derives its own seed from this one."""
    device: torch.device = dataclasses.field(default_factory=lambda: torch.device("cpu"))
    rank: int = 0
    """Number of this process, from 0."""
    world_size: int = 1
    """Number of processes that train together."""
    precision: str = "fp32"
    """fp32, or bf16: matrix products in bfloat16, weights in float32 (CUDA only)."""

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UsageError(f"{arg('seed')} is {self.seed}; allowed: 0 or more")
        if self.precision not in PRECISIONS:
            raise UsageError(f"{arg('precision')} is {self.precision!r}; allowed: {' or '.join(PRECISIONS)}")
        if self.precision == "bf16" and self.device.type != "cuda":
            raise UsageError(f"{arg('precision', 'bf16')} needs a CUDA device; use fp32 on {self.device.type}")
        if not 0 <= self.rank < self.world_size:
            raise UsageError(
                f"rank is {self.rank}; with {self.world_size} processes it lies between 0 and {self.world_size - 1}"
            )

    @classmethod
    def from_environment(cls, *, seed: int = 0, device: str | None = None, precision: str | None = None) -> Self:
        """Return the run of this process: the rank under torchrun, a GPU if there is one, bf16 on a GPU that has it."""
        rank, world_size, local = (
            _number(name, default) for name, default in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0))
        )
        try:
            chosen = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        except RuntimeError:
            raise UsageError(f"{arg('device')} is {device!r}; allowed: cpu, cuda, or cuda:1 for the second GPU") from None
        if chosen.type == "cuda" and not torch.cuda.is_available():
            raise UsageError(
                f"{arg('device')} is {device!r}, but PyTorch finds no GPU: leave it out, or install PyTorch with CUDA"
            )
        if chosen.type == "cuda" and chosen.index is None:
            chosen = torch.device("cuda", local)
        if precision is None:  # matrix units for bfloat16 came with compute capability 8.0
            old = torch.cuda.is_available() and torch.cuda.get_device_capability() < (8, 0)
            precision = "bf16" if chosen.type == "cuda" and not old else "fp32"
        return cls(seed=seed, device=chosen, rank=rank, world_size=world_size, precision=precision)

    @property
    def is_main_process(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    def seed_all(self) -> None:
        """Seed Python, NumPy and PyTorch (CPU and CUDA), each rank differently, so that dropout differs."""
        seed = (self.seed + 1_000_003 * self.rank) % 2**63
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)

    def random_states(self) -> dict[str, Any]:
        """Return all global random states of this process as JSON values."""
        kind, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
        version, internal, gauss_next = random.getstate()
        states = {
            "python": [version, list(internal), gauss_next],
            "numpy": [kind, np.asarray(keys).tolist(), int(position), int(has_gauss), float(gauss)],
            "torch": _to_text(torch.get_rng_state()),
        }
        if self.device.type == "cuda":
            states["cuda"] = _to_text(torch.cuda.get_rng_state(self.device))
        return states

    def restore_random(self, states: Mapping[str, Any]) -> None:
        version, internal, gauss_next = states["python"]
        random.setstate((version, tuple(internal), gauss_next))
        kind, keys, *rest = states["numpy"]
        np.random.set_state((kind, np.array(keys, dtype=np.uint32), *rest))
        torch.set_rng_state(_from_text(states["torch"]))
        if self.device.type == "cuda" and "cuda" in states:
            torch.cuda.set_rng_state(_from_text(states["cuda"]), self.device)


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"the environment variable {name} is {text!r}; torchrun sets it to an integer") from None


def _to_text(state: Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode("ascii")


def _from_text(text: str) -> Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
