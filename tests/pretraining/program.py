"""A pre-training to start, kill and start again: tiny, in lanes, with dropout and a sample, so that random numbers matter."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.pretraining.elmo_fit import ElmoPretraining, pretrain
from polyseme.text.corpus import Corpus
from polyseme.training.config import TrainConfig


def write_text(path: Path, *, lines: int, types: int = 2000) -> Path:
    chance = random.Random(5)
    words = ["".join(chance.choices("etaoinshr", k=chance.randint(1, 9))) for _ in range(types)]
    weights = [1 / (rank + 1) for rank in range(types)]
    text = (" ".join(chance.choices(words, weights, k=chance.randint(1, 30))) for _ in range(lines))
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path


def train(text: Path, out: Path, loop: dict[str, Any]) -> int:
    corpus = Corpus(text, splitter="whitespace", sentences="lines", workers=0)
    config = ElmoPretraining(
        size="tiny",
        vocabulary_size=300,
        output="sampled",
        negatives=20,
        dropout=0.2,
        batching="packed",
        batch_words=200,
        train=TrainConfig(**loop),
    )
    try:
        result = pretrain(corpus, out, config, Run.from_environment(seed=1, device="cpu"))
    except PolysemeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if result.ended else 3


def train_and_exit(text: Path, out: Path, loop: dict[str, Any]) -> None:
    """As a process of its own that gives way: who watches it to kill it in time goes first, also on a busy machine."""
    os.nice(10)
    sys.exit(train(text, out, loop))


def train_rank(rank: int, world_size: int, port: int, text: Path, out: Path, loop: dict[str, Any]) -> None:
    """One of several processes, with the variables that torchrun would set."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world_size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    sys.exit(train(text, out, loop))
