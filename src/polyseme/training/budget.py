"""The budget of a run as one number: where it ends, decided before step 1 and kept in the run.

Steps and minutes are counted in steps; words and epochs in words, because batches may differ in size and a pass over the data
does not. Minutes become steps by the measured time of a few steps, instead of stopping by the clock: the learning-rate
schedule then fits the run. Other programs disturb the measurement, so each tenth of the run is a new one: if its steps were
faster or slower, the number of steps is corrected in both directions (`revise_budget`). In the second half a schedule becomes
longer only as far as it has been before: what a busy minute took away comes back, and the learning rate does not rise above
what was planned.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

from polyseme.base.config import Config
from polyseme.base.display import count, two_digits
from polyseme.base.errors import PolysemeError, arg
from polyseme.training.config import TrainConfig

EVALUATIONS = 10
TIMING_CHECKS = 10  # of the speed of a run by minutes, evenly spaced
MARGIN = 0.9  # of the minutes: machines slow down, and the last model has to be written
EVALUATION_FRACTION = 0.2  # of the minutes, unless eval_every is given
FEW_STEPS = 200
MANY_EPOCHS, SMALL_TEXT = 15.0, 100_000  # words: so many passes over so little text are learned by heart
UNUSED = 0.85  # of the minutes: lengthen the budget only if the run would end before that
OVERRUN = 1.05  # shorten it only if the run would take this many times the minutes
LARGE_CORRECTION, MANY_CORRECTIONS = 1.5, 2  # only corrections by such a factor are reported, and only so many


@dataclasses.dataclass(frozen=True, kw_only=True)
class Budget(Config):
    """Where a run ends, and how many evaluations it has."""

    unit: Literal["steps", "words"]
    """What `total` counts."""
    total: int
    evaluations: int = EVALUATIONS
    """Evenly spaced evaluations; not used if eval_every is given."""
    longest: int = 0
    """The largest total that a correction replaced."""

    def done(self, step: int, words: int) -> int:
        """How far a run is, in the budget's unit."""
        return step if self.unit == "steps" else words

    def passes_evaluation(self, before: int, after: int) -> bool:
        """Whether an evaluation is due in (before, after].

        >>> budget = Budget(unit="steps", total=25, evaluations=10)
        >>> [step for step in range(1, 26) if budget.passes_evaluation(step - 1, step)]
        [3, 5, 8, 10, 13, 15, 18, 20, 23, 25]
        """
        return self._passes(before, after, self.evaluations)

    def passes_timing_check(self, before: int, after: int) -> bool:
        """Whether a check of the speed is due in (before, after]."""
        return self._passes(before, after, TIMING_CHECKS)

    def _passes(self, before: int, after: int, points: int) -> bool:
        return before * points // self.total < after * points // self.total


@dataclasses.dataclass(frozen=True)
class Timing:
    """Measured seconds."""

    step: float
    evaluation: float
    spent: float
    """In the run so far."""
    words: float = 0.0
    """Per step, not in seconds."""


def budget_from_config(config: TrainConfig, words_per_epoch: int) -> Budget | None:
    """Return the budget in steps, words or epochs; None for minutes, which need a `Timing`."""
    if config.steps is not None:
        return Budget(unit="steps", total=config.steps)
    if config.words is not None:
        return Budget(unit="words", total=config.words)
    if config.epochs is not None:
        return Budget(unit="words", total=math.ceil(config.epochs * words_per_epoch))
    return None


class TooShortError(PolysemeError):
    """The minutes are too short for a step and an evaluation."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}; give more minutes, a smaller model or less held-out data")
        self.problem = problem


def too_short(config: TrainConfig, seconds: float) -> str:
    """Return that the minutes are too short for a step and an evaluation, which take so many seconds, all told.

    >>> too_short(TrainConfig(minutes=1), 108)
    'minutes=1 is too short: measuring the speed, one step and one evaluation take 2 minutes or more'
    """
    need = seconds / MARGIN / 60
    what = "measuring the speed, one step and one evaluation"
    return f"{arg('minutes', config.minutes)} is too short: {what} take {two_digits(need)} minutes or more"


def check_minutes(config: TrainConfig, *, spent: float, step: float) -> None:
    """Refuse minutes that are over before the first step of the run would end, as soon as that is known."""
    if config.minutes is not None and spent + step > 60 * MARGIN * config.minutes:
        raise TooShortError(too_short(config, spent + step))


def budget_from_minutes(config: TrainConfig, timing: Timing) -> Budget:
    """Return the steps that fit into the minutes, together with evaluations and the time spent already."""
    assert config.minutes is not None
    usable = config.minutes * 60 * MARGIN - timing.spent - timing.evaluation  # the last step is always evaluated
    if config.eval_every is not None:
        steps, evaluations = usable / (timing.step + timing.evaluation / config.eval_every), EVALUATIONS
    else:
        fit = EVALUATION_FRACTION * max(usable, 0.0) / timing.evaluation if timing.evaluation > 0 else math.inf
        evaluations = max(1, int(min(fit, EVALUATIONS)))
        steps = (usable - (evaluations - 1) * timing.evaluation) / timing.step
    if steps < 1:
        raise TooShortError(too_short(config, timing.spent + timing.evaluation + timing.step))
    return Budget(unit="steps", total=int(steps), evaluations=evaluations)


def reach_of_minutes(config: TrainConfig, budget: Budget, timing: Timing, words_per_epoch: int) -> str:
    """How far minutes get at the measured speed, in words.

    >>> reach_of_minutes(TrainConfig(minutes=10), Budget(unit="steps", total=900), Timing(0.5, 9, 9, 2500), 1_000_000)
    'minutes=10 is about 900 steps, 2,250,000 words, 2.2 epochs, at 5,000 words per second'
    >>> reach_of_minutes(TrainConfig(minutes=1), Budget(unit="steps", total=90), Timing(0.5, 9, 9, 20), 100).partition("; ")[2]
    'the text is small, and so many passes make a model memorise it: give more text, or fewer minutes'
    >>> reach_of_minutes(TrainConfig(minutes=1), Budget(unit="steps", total=90), Timing(0.5, 9, 9, 20), 9000).partition("; ")[2]
    'so few steps teach little: give more minutes or a smaller model'
    """
    words = budget.total * timing.words
    epochs, rate = words / max(words_per_epoch, 1), timing.words / max(timing.step, 1e-9)
    passes = f"{two_digits(epochs)} epochs"
    reach = f"about {count(budget.total, 'step')}, {words:,.0f} words, {passes}, at {rate:,.0f} words per second"
    few = ""
    if epochs > MANY_EPOCHS and words_per_epoch < SMALL_TEXT:
        few = "; the text is small, and so many passes make a model memorise it: give more text, or fewer minutes"
    elif budget.total < FEW_STEPS:
        few = "; so few steps teach little: give more minutes or a smaller model"
    return f"{arg('minutes', config.minutes)} is {reach}{few}"


def revise_budget(config: TrainConfig, budget: Budget, step: int, timing: Timing) -> Budget:
    """Return the budget by minutes, longer or shorter if the last steps were faster or slower than expected.

    In the second half of a run it is at most as long as it has been, because a longer schedule raises the learning rate.
    """
    assert config.minutes is not None
    left, minutes = budget.total - step, 60 * config.minutes
    evaluations = budget.evaluations * left // budget.total if config.eval_every is None else left // config.eval_every
    expected = timing.spent + left * timing.step + (1 + evaluations) * timing.evaluation
    is_late, longest = expected > OVERRUN * minutes, max(budget.longest, budget.total)
    if not is_late and expected > UNUSED * minutes:
        return budget
    try:
        rest = budget_from_minutes(config, timing)
    except PolysemeError:  # no time is left for another step
        return budget.replace(total=step + 1, longest=longest) if is_late else budget
    total = step + rest.total
    if is_late:
        return rest.replace(total=total, longest=longest) if total < budget.total else budget
    total = total if 2 * step <= budget.total else min(total, longest)
    return rest.replace(total=total, longest=longest) if total > budget.total else budget


def is_large_correction(old: int, new: int) -> bool:
    """Whether a number of steps is so different from the one that was told last that a person should know.

    >>> is_large_correction(100, 120), is_large_correction(100, 60), is_large_correction(100, 160)
    (False, True, True)
    """
    return max(old, new) > LARGE_CORRECTION * min(old, new)
