"""Training in several processes: what the trainer needs from the others; with one process, nothing.

Under torchrun DistributedDataParallel averages the gradients (gloo on CPUs, nccl on GPUs). Everything small (words done, a
request to stop, positions for the checkpoint) goes over a gloo group on the host, so that no GPU waits for it. Only the main
process writes files; it reads the checkpoint and broadcasts it. After a restart the main process may be on another machine, so
the machines share the folder of the run, unless torchrun gives them fixed ranks.
"""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.training.base import Learner, Loss


class LossModule(nn.Module):
    """A learner whose `forward` is its loss, which DistributedDataParallel can wrap."""

    def __init__(self, learner: Learner) -> None:
        super().__init__()
        self.learner = learner

    def forward(self, batch: Any) -> Loss:
        return self.learner.loss(batch)


class SingleProcess:
    """Training in one process, and the interface of `DistributedProcesses`."""

    def wrap(self, learner: Learner) -> nn.Module:
        """Return a module whose call gives the loss and whose backward pass gives the gradients of all processes."""
        return LossModule(learner)

    def no_sync(self, model: nn.Module) -> contextlib.AbstractContextManager[Any]:
        """Do not average the gradients in a `with` block: for all but the last batch of a step."""
        return contextlib.nullcontext()

    def sum(self, values: Sequence[float]) -> list[float]:
        """Sum numbers over the processes; all get the result."""
        return list(values)

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all processes by rank, in the main process; an empty list elsewhere."""
        return [value]

    def broadcast(self, value: Any) -> Any:
        """Return the main process's value, in every process."""
        return value

    def wait(self) -> None:
        """Wait until all processes are here, for a day if need be."""


class DistributedProcesses(SingleProcess):
    """The processes that torchrun started."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._host = dist.new_group(backend="gloo")

    def wrap(self, learner: Learner) -> nn.Module:
        """Wrap with DistributedDataParallel; buffers are not broadcast, because carried state belongs to each process."""
        devices = [self._run.device] if self._run.device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(LossModule(learner), device_ids=devices, broadcast_buffers=False)

    def no_sync(self, model: nn.Module) -> contextlib.AbstractContextManager[Any]:
        assert isinstance(model, nn.parallel.DistributedDataParallel)
        return model.no_sync()

    def sum(self, values: Sequence[float]) -> list[float]:
        shared = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(shared, group=self._host)
        return [float(value) for value in shared]

    def gather(self, value: Any) -> list[Any]:
        values: list[Any] | None = [None] * self._run.world_size if self._run.is_main_process else None
        dist.gather_object(value, values, dst=0, group=self._host)
        return values or []

    def broadcast(self, value: Any) -> Any:
        box = [value]
        dist.broadcast_object_list(box, src=0, group=self._host)
        return box[0]

    def wait(self) -> None:
        dist.monitored_barrier(group=self._host, timeout=datetime.timedelta(days=1))


@contextlib.contextmanager
def process_group(run: Run) -> Iterator[SingleProcess]:
    """Join the processes of a run during a `with` block; with one process, torch.distributed is not used."""
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
            f"WORLD_SIZE is {run.world_size}, but {' and '.join(missing)} are not set: start the processes with torchrun, or "
            "unset WORLD_SIZE and RANK"
        )
    if ours:
        dist.init_process_group("nccl" if cuda else "gloo", rank=run.rank, world_size=run.world_size)
    try:
        yield DistributedProcesses(run)
    except RuntimeError as error:
        if not (isinstance(error, dist.DistError) or "/gloo/" in str(error)):
            raise
        reason = str(error).partition("\n")[0].rpartition("] ")[2]
        raise PolysemeError(
            f"lost another process of this run ({reason}): torchrun restarts all of them from the last checkpoint if it may "
            "(--max-restarts); otherwise the same command does"
        ) from error
    finally:
        if ours:
            dist.destroy_process_group()
