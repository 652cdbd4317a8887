"""How far a run goes: its budget as one number, planned before step 1 and kept in the run.

Steps and minutes count steps, words and epochs count words (batches may differ in size, a pass over the data does not).
Minutes become steps by a rate measured on a few real steps, against stopping by the clock: the schedule then fits the run,
and a run that is resumed, on a busier machine too, is still the same run. A machine can be disturbed just then; where steps
turn out quicker in the first half of the sitting that began the run, the budget is lengthened (`extend_budget`).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

from polyseme.base.config import Config
from polyseme.base.errors import PolysemeError
from polyseme.training.config import TrainConfig

EVALUATIONS = 10
TIMING_CHECKS = 10  # at the pace of a run by minutes, evenly over its budget
MARGIN = 0.9  # of a budget in minutes: machines slow down, and the last model has to be written
EVALUATION_FRACTION = 0.2  # of a budget in minutes, where the user has not said how often
EXTENSION_THRESHOLD = 1.2  # times as many steps as planned are worth another budget


@dataclasses.dataclass(frozen=True, kw_only=True)
class Budget(Config):
    """The end of a run and the evaluations on the way."""

    unit: Literal["steps", "words"]
    """What `total` counts."""
    total: int
    """Where the run ends."""
    evaluations: int = EVALUATIONS
    """Evaluations, evenly over the run; not used where the user set eval_every."""

    def done(self, step: int, words: int) -> int:
        """How far a run is, in the budget's unit."""
        return step if self.unit == "steps" else words

    def passes_evaluation(self, before: int, after: int) -> bool:
        """Whether one of the even evaluation points lies in (before, after].

        >>> budget = Budget(unit="steps", total=25, evaluations=10)
        >>> [step for step in range(1, 26) if budget.passes_evaluation(step - 1, step)]
        [3, 5, 8, 10, 13, 15, 18, 20, 23, 25]
        """
        return self._passes(before, after, self.evaluations)

    def passes_timing_check(self, before: int, after: int) -> bool:
        """Whether one of the points lies there where the pace of a run by minutes is looked at, evaluated or not."""
        return self._passes(before, after, TIMING_CHECKS)

    def _passes(self, before: int, after: int, points: int) -> bool:
        return before * points // self.total < after * points // self.total


@dataclasses.dataclass(frozen=True)
class Timing:
    """What was measured before step 1, in seconds."""

    step: float
    evaluation: float
    spent: float


def budget_from_config(config: TrainConfig, words_per_epoch: int) -> Budget | None:
    """The budget of a budget in steps, words or epochs; None for minutes, which want a measured rate."""
    if config.steps is not None:
        return Budget(unit="steps", total=config.steps)
    if config.words is not None:
        return Budget(unit="words", total=config.words)
    if config.epochs is not None:
        return Budget(unit="words", total=math.ceil(config.epochs * words_per_epoch))
    return None


def budget_from_minutes(config: TrainConfig, rate: Timing) -> Budget:
    """The budget that fits into the minutes at a measured rate, evaluations and the measuring included."""
    assert config.minutes is not None
    usable = config.minutes * 60 * MARGIN - rate.spent - rate.evaluation  # the last step is always evaluated
    if config.eval_every is not None:
        steps, evaluations = usable / (rate.step + rate.evaluation / config.eval_every), EVALUATIONS
    else:
        room = EVALUATION_FRACTION * max(usable, 0.0) / rate.evaluation if rate.evaluation > 0 else math.inf
        evaluations = max(1, min(EVALUATIONS, int(min(room, EVALUATIONS))))
        steps = (usable - (evaluations - 1) * rate.evaluation) / rate.step
    if steps < 1:
        need = (rate.spent + rate.evaluation + rate.step) / MARGIN / 60
        raise PolysemeError(
            f"{config.minutes:g} minutes are too few: measuring, one step and one evaluation take {need:.2g}; "
            "give more minutes, a smaller model or less held-out data"
        )
    return Budget(unit="steps", total=int(steps), evaluations=evaluations)


def extend_budget(config: TrainConfig, budget: Budget, step: int, rate: Timing) -> Budget:
    """The budget of a run by minutes that has come to a step, at the rate of its last steps; `rate.spent` is all of its time.

    It is the old one unless many more steps have room, and in the second half, where a longer schedule would turn the learning
    rate far back. It is never shorter: a step that was disturbed would end the run.
    """
    if 2 * step > budget.total:
        return budget
    try:
        rest = budget_from_minutes(config, rate)
    except PolysemeError:  # no time is left for another step
        return budget
    longer = rest.replace(total=step + rest.total)
    return longer if longer.total > EXTENSION_THRESHOLD * budget.total else budget
