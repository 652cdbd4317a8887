"""A pre-training for other processes: tiny, in packed rows, with dropout and a sampled softmax, so that random numbers matter.

It can kill or stop itself at a given moment, so that no test depends on timing.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.encoders import elmo
from polyseme.pretraining.elmo_config import ElmoPretraining
from polyseme.pretraining.elmo_packed import PackedElmoObjective
from polyseme.text.corpus import Corpus
from polyseme.training.base import Loss
from polyseme.training.config import TrainConfig
from tests.training.program import die, kill_in_checkpoint, stop

elmo.WARM_UP = 3  # as in the process that runs the tests
Interrupt = tuple[str, str, int]
"""What to do (kill or stop), at which moment (encode, loss, tensors or head of a checkpoint), and at its which occurrence."""


def write_text(path: Path, *, lines: int, types: int = 2000) -> Path:
    chance = random.Random(5)
    words = ["".join(chance.choices("etaoinshr", k=chance.randint(1, 9))) for _ in range(types)]
    weights = [1 / (rank + 1) for rank in range(types)]
    text = (" ".join(chance.choices(words, weights, k=chance.randint(1, 30))) for _ in range(lines))
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path


def interrupt(what: str, moment: str, number: int) -> None:
    """Let this process kill or stop itself."""
    act, left = {"kill": die, "stop": stop}[what], [number]

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            act()

    if moment in ("tensors", "head"):
        kill_in_checkpoint(moment, number)
    elif moment == "encode":
        blocks = Corpus.blocks

        def counted_blocks(self: Corpus, *arguments: Any) -> Iterator[Any]:
            for block in blocks(self, *arguments):
                count()
                yield block

        Corpus.blocks = counted_blocks  # type: ignore[method-assign]
    else:
        loss = PackedElmoObjective.loss

        def counted_loss(self: PackedElmoObjective, batch: Any) -> Loss:
            count()
            return loss(self, batch)

        PackedElmoObjective.loss = counted_loss  # type: ignore[method-assign]


def train(text: Path, out: Path, loop: dict[str, Any], at: Interrupt | None = None) -> int:
    corpus = Corpus(text, splitter="whitespace", sentences="lines", workers=0)
    config = ElmoPretraining(
        size="tiny",
        vocabulary_size=300,
        output="sampled",
        negatives=20,
        dropout=0.2,
        batching="packed",
        batch_words=200,
        bptt=5,
        train=TrainConfig(**loop),
    )
    if at is not None:
        interrupt(*at)
    try:
        result = config.fit(corpus, Run.from_environment(seed=1, device="cpu"), out)
    except PolysemeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if result.ended else 3  # type: ignore[attr-defined]


def train_and_exit(text: Path, out: Path, loop: dict[str, Any], at: Interrupt | None = None) -> None:
    sys.exit(train(text, out, loop, at))


def train_rank(process: tuple[int, int, int], text: Path, out: Path, loop: dict[str, Any], at: Interrupt | None = None) -> None:
    """One of several processes (rank, number, port), with the variables that torchrun would set."""
    rank, world_size, port = map(str, process)
    os.environ |= {"RANK": rank, "WORLD_SIZE": world_size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    sys.exit(train(text, out, loop, at))
