"""Settings of the training loop: how long to train, how often to evaluate. Imports no PyTorch, so that `--help` stays fast."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from polyseme.base.config import Config, setting
from polyseme.base.errors import arg
from polyseme.training.optim_config import OptimConfig

BUDGETS = ("steps", "epochs", "words", "minutes")
_BUDGET, _TRAINING = "Budget", "Training"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainConfig(Config):
    """One budget (steps, epochs, words or minutes) and the settings of the loop."""

    optim: OptimConfig = dataclasses.field(default_factory=OptimConfig)
    steps: int | None = setting(None, "Optimizer steps.", min=1, one_of=_BUDGET, group=_BUDGET)
    epochs: float | None = setting(None, "Passes over the training data.", above=0, one_of=_BUDGET, group=_BUDGET)
    words: int | None = setting(None, "Words to train on, over all processes.", min=1, one_of=_BUDGET, group=_BUDGET)
    minutes: float | None = setting(
        None,
        "Minutes of training, evaluations included. The speed of a few steps turns them into steps before training begins.",
        above=0,
        one_of=_BUDGET,
        group=_BUDGET,
    )
    gradient_accumulation_steps: int = setting(1, "Batches per step; their gradients are averaged.", min=1, group=_TRAINING)
    eval_every: int | None = setting(
        None, "Steps between evaluations.", min=1, default_text="a tenth of the run", group=_TRAINING
    )
    patience: int | None = setting(
        None,
        "Stop after this many evaluations without a better score.",
        min=1,
        default_text="never stop early",
        group=_TRAINING,
    )
    checkpoint_every: int | None = setting(
        None, "Steps between checkpoints.", min=1, default_text="only by time", group=_TRAINING
    )
    checkpoint_seconds: float | None = setting(
        None,
        "Longest time between checkpoints.",
        above=0,
        default_text="30 seconds, or 50 times as long as writing one takes",
        group=_TRAINING,
    )
    log_every: int = setting(100, "Steps between lines of the log.", min=1, group=_TRAINING)

    def problems(self) -> Iterable[str]:
        given = [name for name in BUDGETS if getattr(self, name) is not None]
        if len(given) != 1:
            what = " and ".join(map(arg, given)) + " are given" if given else "no budget is given"
            yield f"{what}: give exactly one of {', '.join(map(arg, BUDGETS))}"
        for name in given:
            if not math.isfinite(getattr(self, name)):
                yield f"{arg(name)} is {getattr(self, name)}; allowed: finite numbers"
