"""What a model's training cost, in a small file beside it that programs read: `pretraining.json`.

Every method writes it at its end, and a model has it only then: so it also says that the training is over.
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


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Of a model, or of several together."""

    method: str
    """The name of what `polyseme pretrain` trained."""
    seconds: float
    """Of training, without the reading of the text where the method reads it first."""
    words: int
    """Seen in training: those of the text, once for each pass."""
    text_words: int
    """Of the text."""
    parameters: int
    """Numbers of the encoder, as `polyseme info` counts them."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """On text held out from training, where there is some: perplexity, loss."""
    device: str = "cpu"
    """Joined by `+` where several models were trained on several."""
    date: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).date().isoformat())

    @property
    def words_per_second(self) -> float | None:
        """How fast it was trained; None where it took no time."""
        return self.words / self.seconds if self.seconds > 0 else None

    def plus(self, other: Self) -> Self:
        """Both together, side by side in one row of a table."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in ("seconds", "words", "text_words", "parameters")}
        devices = dict.fromkeys([*self.device.split("+"), *other.device.split("+")])
        return dataclasses.replace(self, method=f"{self.method}+{other.method}", scores={}, device="+".join(devices), **sums)


def write_cost(folder: Path, cost: Cost) -> None:
    """Put the file into a model's folder; that of the same run stays, with its date and its seconds."""
    old = read_cost(folder)
    if old is None or (old.method, old.words, old.text_words) != (cost.method, cost.words, cost.text_words):
        write_text(folder / FILE, json.dumps(dataclasses.asdict(cost), indent=2) + "\n")


def read_cost(folder: Path) -> Cost | None:
    """What the folder tells; None: it holds no model, a published one, or one whose training is not over."""
    if not (folder / FILE).is_file():
        return None
    values: dict[str, Any] = read_json(folder / FILE)
    known = {each.name for each in dataclasses.fields(Cost)}
    return Cost(**{name: value for name, value in values.items() if name in known})
