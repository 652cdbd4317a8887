"""What the training of a model cost: the file `pretraining.json` in its folder.

Every method writes it at its end, so it also says that the training is finished.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from polyseme.base.files import read_json, write_text
from polyseme.encoders.folder import COST as FILE
from polyseme.pretraining.result import PretrainingResult


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a model, or of several together."""

    method: str
    """Name of the method; adapt for an adaptation."""
    seconds: float
    """Training time, without reading the text where the method reads it first."""
    words: int
    """Words trained on, each pass counted."""
    text_words: int
    """Words of the text."""
    parameters: int
    """Parameters of the encoder, as in `polyseme info`."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Scores on held-out text, where the method holds some out: perplexity, loss."""
    device: str = "cpu"
    """Joined by `+` where several models were trained on different devices."""
    date: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).date().isoformat())

    @classmethod
    def of(cls, result: PretrainingResult, *, parameters: int, device: str = "cpu") -> Self:
        """Return the cost of a training."""
        return cls(
            method=result.method,
            seconds=round(result.seconds, 3),
            words=result.words,
            text_words=result.text_words,
            parameters=parameters,
            scores=dict(result.scores),
            device=device,
        )

    @property
    def words_per_second(self) -> float | None:
        """Training speed; None where it took no time."""
        return self.words / self.seconds if self.seconds > 0 else None

    def plus(self, other: Self) -> Self:
        """Return the sum of both, for models whose vectors are concatenated."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in ("seconds", "words", "text_words", "parameters")}
        devices = dict.fromkeys([*self.device.split("+"), *other.device.split("+")])
        return dataclasses.replace(self, method=f"{self.method}+{other.method}", scores={}, device="+".join(devices), **sums)


def write_cost(folder: Path, cost: Cost) -> None:
    """Write the file into a model's folder; the file of the same run is kept, with its date and time."""
    old = read_cost(folder)
    if old is None or (old.method, old.words, old.text_words) != (cost.method, cost.words, cost.text_words):
        write_text(folder / FILE, json.dumps(dataclasses.asdict(cost), indent=2) + "\n")


def read_cost(folder: Path) -> Cost | None:
    """Read the file; None: the folder holds no model, a published one, or one whose training is not finished."""
    if not (folder / FILE).is_file():
        return None
    values: dict[str, Any] = read_json(folder / FILE)
    known = {each.name for each in dataclasses.fields(Cost)}
    return Cost(**{name: value for name, value in values.items() if name in known})
