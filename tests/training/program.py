"""A training program to start, kill and start again: `python -m tests.training.program OUT '{"config": {...}}'`."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.training.config import TrainConfig
from polyseme.training.trainer import Trainer
from tests.training import toy


def train(out: Path, options: dict[str, Any]) -> int:
    run = Run.from_environment(seed=1, device="cpu")
    batches = toy.ToyBatches(rank=run.rank, world_size=run.world_size)
    trainer = Trainer(TrainConfig.from_dict(toy.config().to_dict() | options.get("config", {})), run)
    try:
        result = trainer.fit(toy.learner(**options.get("learner", {})), batches, toy.dev(), out)
    except PolysemeError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"rank {run.rank} ended by {result.ended or result.stopped_by} after {result.steps}")
    return 0


def train_rank(rank: int, world_size: int, port: int, out: Path, options: dict[str, Any]) -> None:
    """One of several processes, with the variables that torchrun would set."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world_size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    sys.exit(train(out, options))


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    sys.exit(train(Path(sys.argv[1]), json.loads(sys.argv[2])))
