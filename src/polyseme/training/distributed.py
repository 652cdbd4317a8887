"""Many processes, one model: what the loop asks of the others, and nothing at all where there is one process.

Under torchrun the gradients are averaged by DistributedDataParallel (gloo on CPUs, nccl on GPUs). Everything small (words
done, a wish to stop, positions for the checkpoint) goes over a gloo group on the host, so that no GPU waits for it. Rank 0
alone reads and writes files and hands out what it read: machines need no common disk.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.training.base import Learner, Loss


class Model(nn.Module):
    """A learner whose `forward` is its loss, which is what DistributedDataParallel can wrap."""

    def __init__(self, learner: Learner) -> None:
        super().__init__()
        self.learner = learner

    def forward(self, batch: Any) -> Loss:
        """The loss of one batch."""
        return self.learner.loss(batch)


class SingleProcess:
    """One process: every question answers itself."""

    def wrap(self, learner: Learner) -> nn.Module:
        """The module whose call gives the loss and whose backward pass gives the gradients of all processes."""
        return Model(learner)

    def no_sync(self, model: nn.Module) -> contextlib.AbstractContextManager[Any]:
        """A block whose gradients are not yet shared, for all but the last batch of a step."""
        return contextlib.nullcontext()

    def sum_over_processes(self, values: Sequence[float]) -> list[float]:
        """Numbers summed over the processes, the same everywhere."""
        return list(values)

    def gather(self, value: Any) -> list[Any]:
        """Each process's value by rank; on rank 0 only (an empty list elsewhere)."""
        return [value]

    def broadcast(self, value: Any) -> Any:
        """Rank 0's value, everywhere."""
        return value


class DistributedProcesses(SingleProcess):
    """The processes that torchrun started."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._host = dist.new_group(backend="gloo")

    def wrap(self, learner: Learner) -> nn.Module:
        """DistributedDataParallel; buffers are left alone, since carried state belongs to each process."""
        devices = [self._run.device] if self._run.device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(Model(learner), device_ids=devices, broadcast_buffers=False)

    def no_sync(self, model: nn.Module) -> contextlib.AbstractContextManager[Any]:
        """DistributedDataParallel's `no_sync`."""
        assert isinstance(model, nn.parallel.DistributedDataParallel)
        return model.no_sync()

    def sum_over_processes(self, values: Sequence[float]) -> list[float]:
        """In float64, on the host."""
        shared = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(shared, group=self._host)
        return [float(value) for value in shared]

    def gather(self, value: Any) -> list[Any]:
        """Tensors travel as they are."""
        places: list[Any] | None = [None] * self._run.world_size if self._run.is_main_process else None
        dist.gather_object(value, places, dst=0, group=self._host)
        return places or []

    def broadcast(self, value: Any) -> Any:
        """Tensors travel as they are."""
        box = [value]
        dist.broadcast_object_list(box, src=0, group=self._host)
        return box[0]


@contextlib.contextmanager
def process_group(run: Run) -> Iterator[SingleProcess]:
    """The processes of a run for the time of the block; with one process, torch.distributed is not touched."""
    cuda = run.device.type == "cuda"
    if run.world_size == 1:
        with torch.cuda.device(run.device) if cuda else contextlib.nullcontext():  # Triton's kernels run on the current GPU
            yield SingleProcess()
        return
    if cuda:
        torch.cuda.set_device(run.device)
    ours = not dist.is_initialized()
    if ours and (missing := [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]):
        raise PolysemeError(
            f"the environment says {run.world_size} processes (WORLD_SIZE), but not {' and '.join(missing)}: start it by "
            "torchrun, or unset WORLD_SIZE and RANK"
        )
    if ours:
        dist.init_process_group("nccl" if cuda else "gloo", rank=run.rank, world_size=run.world_size)
    try:
        yield DistributedProcesses(run)
    finally:
        if ours:
            dist.destroy_process_group()
