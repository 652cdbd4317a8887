"""A language model small enough to train a thousand times: letters, one LSTM with carried state, dropout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from polyseme.base.files import atomic
from polyseme.base.run import Run
from polyseme.training.base import Learner, Loss
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig

LETTERS = 11


class ToyBatches:
    """Lanes of letters, (lanes, length + 1) a batch, from a text that is the same for every process."""

    def __init__(self, *, lanes: int = 4, length: int = 5, batches: int = 13, rank: int = 0, world_size: int = 1) -> None:
        made = torch.Generator().manual_seed(5)
        text = torch.randint(LETTERS, (lanes, batches * length + 1), generator=made)
        text[:, 1::2] = (text[:, :-1:2] * 3 + 1) % LETTERS  # something to learn
        self.words_per_epoch = lanes * length * batches
        own = lanes // world_size
        self._text = text[rank * own : (rank + 1) * own]
        self._length, self._batches, self._next = length, batches, 0

    def __iter__(self) -> Iterator[Tensor]:
        while True:
            start = self._next % self._batches * self._length
            self._next += 1
            yield self._text[:, start : start + self._length + 1]

    def position(self) -> dict[str, Any]:
        return {"batch": self._next}

    def seek(self, position: Mapping[str, Any]) -> None:
        self._next = position["batch"]


class ToyLearner(Learner):
    """`broken_at`: the count of losses from which on they are NaN. It is carried, as all that training changes must be."""

    score_name = "perplexity"

    def __init__(self, *, dim: int = 8, dropout: float = 0.3, broken_at: int | None = None) -> None:
        super().__init__()
        self.table = nn.Embedding(LETTERS, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.output = nn.Linear(dim, LETTERS)
        self.output.weight = self.table.weight  # tied: two names, one memory
        self.dropout = nn.Dropout(dropout)
        self.broken_at, self.losses = broken_at, 0
        self.state: tuple[Tensor, Tensor] | None = None

    def _errors(self, batch: Tensor, state: Any) -> tuple[Tensor, Any]:
        hidden, state = self.lstm(self.dropout(self.table(batch[:, :-1])), state)
        scores = self.output(self.dropout(hidden))
        return nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten()), state

    def loss(self, batch: Tensor) -> Loss:
        error, state = self._errors(batch, self.state)
        self.state = tuple(part.detach() for part in state)  # type: ignore[assignment]
        self.losses += 1
        if self.broken_at is not None and self.losses >= self.broken_at:
            error = error * float("nan")
        return Loss(error, batch[:, 1:].numel(), {"half": error / 2})

    def evaluate(self, dev: list[Tensor]) -> dict[str, float]:
        errors = [self._errors(batch, None)[0] for batch in dev]
        mean = float(torch.stack(errors).mean())
        return {"loss": mean, "perplexity": float(torch.tensor(mean).exp())}

    def save(self, folder: Path) -> None:
        with atomic(folder / "model.safetensors") as part:
            save_file({name: value.clone() for name, value in self.state_dict().items()}, part)

    def carried_state(self) -> dict[str, Tensor]:
        if self.state is None:
            return {}
        return {"hidden": self.state[0], "cell": self.state[1], "losses": torch.tensor(self.losses)}

    def restore_carried_state(self, carried: Mapping[str, Tensor]) -> None:
        self.state = (carried["hidden"], carried["cell"]) if carried else None
        self.losses = int(carried["losses"]) if carried else 0


def learner(seed: int = 3, **options: Any) -> ToyLearner:
    torch.manual_seed(seed)
    return ToyLearner(**options)


def dev() -> list[Tensor]:
    batches = iter(ToyBatches(lanes=6, batches=2))
    return [next(batches) for _ in range(2)]


def config(**changes: Any) -> TrainConfig:
    given: dict[str, Any] = {"steps": 40, "eval_every": 10, "checkpoint_every": 7, "log_every": 4}
    given |= {"optim": OptimConfig(learning_rate=0.01)}
    if {"epochs", "words", "minutes"} & set(changes):
        del given["steps"]
    return TrainConfig(**(given | changes))


def best(out: Path) -> dict[str, Tensor]:
    return load_file(out / "model.safetensors")


RUN = Run(seed=1)
