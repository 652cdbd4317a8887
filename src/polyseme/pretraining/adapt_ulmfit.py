"""ULMFiT's second stage: its language model goes on learning on a task's own text (Howard and Ruder 2018).

As published: each layer moves 2.6 times slower than the one above it (discriminative rates), under a slanted triangular
schedule. The text's frequent words join the vocabulary, each beginning as one more name of the unknown word; the rest of an
adaptation is `adapt`'s. The optimizer is AdamW, as in `ulmfit`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyseme.base.config import ConfigError
from polyseme.base.run import Run
from polyseme.encoders.ulmfit import Ulmfit
from polyseme.pretraining.adapt import EPOCHS, NEW_WORDS, extend_with_text
from polyseme.pretraining.left_to_right import Ids
from polyseme.pretraining.ulmfit import UlmfitObjective, UlmfitTraining, optim
from polyseme.text.batching.bptt import BpttBatches
from polyseme.text.counting.counts import SPECIAL_TOKENS
from polyseme.text.shards.shards import Shards
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig

RATE = 1e-3  # at the top; a third of a new model's
LAYER_DECAY = 2.6


def slanted(learning_rate: float = RATE) -> OptimConfig:
    """The optimizer of pre-training under the slanted triangle, a tenth of which climbs."""
    return optim(learning_rate).replace(warmup=0.1, decay="slanted")


@dataclass(frozen=True, kw_only=True)
class UlmfitAdaptation(UlmfitTraining):
    """How a model goes on learning."""

    new_words: int | None = None
    """At most so many words of the text join the vocabulary, most frequent first; None: 10,000."""
    min_count: int = 2
    """A word joins when the text has it so often."""
    layer_decay: float = LAYER_DECAY
    """Each layer moves so many times slower than the one above."""
    freeze: tuple[str, ...] = ()
    """Parts that stay as they are: table, layer1, layer2 ..., output."""
    train: TrainConfig = field(default_factory=lambda: TrainConfig(epochs=EPOCHS, optim=slanted()))
    """The budget and the loop."""

    def __post_init__(self) -> None:
        problems = self.training_problems()
        if self.new_words is not None and self.new_words < 0:
            problems.append(f"new_words is {self.new_words}; allowed: 0 (none) or more")
        if self.min_count < 1 or not self.layer_decay >= 1:
            problems.append(f"min_count is {self.min_count}, layer_decay {self.layer_decay}; allowed: 1 or more each")
        if problems:
            raise ConfigError("; ".join(problems))

    def training_settings(self) -> dict[str, Any]:
        """What a run cannot change when it goes on: all but the budget."""
        return {name: value for name, value in self.to_dict().items() if name != "train"}

    def known(self, shards: Shards, model: Ulmfit) -> Shards:
        """The text as it is: the model's rows of its words are looked up."""
        return shards

    def resolve_defaults(self, model: Ulmfit, words: int, run: Run) -> UlmfitAdaptation:
        """With what was left open chosen for a text of so many words and a device."""
        new_words = NEW_WORDS if self.new_words is None else self.new_words
        return self.replace(batch_size=self.default_batch_size(words, run), new_words=new_words)

    def enlarge(self, model: Ulmfit, shards: Shards) -> list[str]:
        """Take the text's frequent words into the vocabulary; gives them."""
        assert self.new_words is not None
        return extend_with_text(model, shards, self.new_words, self.min_count)

    def objective(self, model: Ulmfit, shards: Shards, sentences: range, run: Run) -> tuple[UlmfitObjective, BpttBatches]:
        """What learns, and its batches of some sentences."""
        objective = self.learner(model, rows_of(shards, model))
        objective.layer_decay = self.layer_decay
        return objective, self.batches(shards, sentences, run)


def rows_of(shards: Shards, model: Ulmfit) -> Ids:
    """The row of the model's table for each type of a text, (types,); its marks are unknown words, as in `Ulmfit.rows`."""
    types = list(itertools.chain.from_iterable(shards.type_blocks()))
    found: Ids = model.rows(types).astype(np.int32)
    found[: len(SPECIAL_TOKENS)] = model.rows([model.config.unknown])[0]
    return found
