"""A training program for other processes: it can kill or stop itself at a given moment.

python -m tests.training.program OUT '{"config": {...}, "kill": ["loss", 12]}'
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from torch import Tensor

from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.training import checkpoint
from polyseme.training.base import Loss
from polyseme.training.config import TrainConfig
from polyseme.training.trainer import Trainer
from tests.training import toy


class Interrupted(toy.ToyLearner):
    """Calls `interrupt` before the loss with number `at`."""

    at, interrupt = 0, staticmethod(lambda: None)

    def loss(self, batch: Tensor) -> Loss:
        self.at -= 1
        if self.at == 0:
            self.interrupt()
        return super().loss(batch)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop() -> None:
    signal.raise_signal(signal.SIGTERM)


def stop_torchrun() -> None:
    """Send SIGTERM to torchrun, as a cluster does, and wait until it comes back to this process."""
    if os.environ["RANK"] == "0":
        os.kill(os.getppid(), signal.SIGTERM)
    handler: Any = signal.getsignal(signal.SIGTERM)
    while handler.__self__.name is None:
        time.sleep(0.01)


def kill_in_checkpoint(moment: str, number: int) -> None:
    """Kill this process while it writes a checkpoint: in the middle of a file, or between the two files."""
    name = {"tensors": "write_unchanged", "head": "write_text"}[moment]
    write, left = getattr(checkpoint, name), [number]

    def killed(*arguments: Any) -> None:
        left[0] -= 1
        if left[0]:
            return write(*arguments)
        if moment == "tensors":
            arguments[1].write_bytes(b"half")
        die()

    setattr(checkpoint, name, killed)


def train(out: Path, options: dict[str, Any]) -> int:
    run = Run.from_environment(seed=1, device="cpu")
    batches = toy.ToyBatches(rank=run.rank, world_size=run.world_size)
    trainer = Trainer(TrainConfig.from_dict(toy.config().to_dict() | options.get("config", {})), run)
    learner: toy.ToyLearner = toy.learner(**options.get("learner", {}))
    how, moment, number = options.get("interrupt", ("", "", 0))
    if moment in ("tensors", "head"):
        kill_in_checkpoint(moment, number)
    elif moment == "loss" and how:
        learner.__class__ = Interrupted
        learner.at, learner.interrupt = number, {"kill": die, "stop": stop, "stop torchrun": stop_torchrun}[how]  # type: ignore[attr-defined]
    try:
        result = trainer.fit(learner, batches, toy.dev(), out)
    except PolysemeError as error:
        print(error, file=sys.stderr)
        out.with_name(f"error-{run.rank}.txt").write_text(str(error))
        return 1
    print(f"rank {run.rank} ended by {result.ended or result.stopped_by} after {result.steps}")
    return 0


def train_and_exit(out: Path, options: dict[str, Any]) -> None:
    sys.exit(train(out, options))


def train_rank(rank: int, world_size: int, port: int, out: Path, options: dict[str, Any]) -> None:
    """One of several processes, with the variables that torchrun would set; `interrupt` is for the last of them."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world_size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    if rank < world_size - 1:
        options = {name: value for name, value in options.items() if name != "interrupt"}
    sys.exit(train(out, options))


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    sys.exit(train(Path(sys.argv[1]), json.loads(sys.argv[2])))
