"""Where a run stands, in one line of at most 80 columns: progress, loss, dev score, and the time that is left."""

from __future__ import annotations

from dataclasses import dataclass

from polyseme.base.display import format_duration, short

WIDTH = 80  # terminal columns
_MANY_EPOCHS = 10  # from here on their estimate is rounded: it changes with the lengths of the first sentences
_PART = 0.98  # epochs; below, a share of the run says more
_BAR = 12  # columns of the bar, where there is room
_MIN_STEPS, _MIN_SECONDS = 3, 1.0  # that are timed before a time is told
_WORTH_TELLING = 10.0  # seconds that a run takes at least, if its expected time is to be told


@dataclass
class RunStatus:
    """What the loop knows about its run, for the person who watches it."""

    total: int
    """Steps or words of the whole run."""
    done: int
    score_name: str
    """Which number of an evaluation is shown."""
    patience: int | None = None
    """Evaluations without a better score after which the run ends."""
    epoch: float = 0.0
    loss: float | None = None
    sampled: bool = False
    score: float | None = None
    """On the dev data, in the last evaluation."""
    best: float | None = None
    is_best: bool = False
    """Whether the model of the last evaluation is kept."""
    is_perfect: bool = False
    """Whether the last evaluation had no error."""
    prefers_later: bool = False
    """Whether the later one of two models with the same score is kept."""
    left: float | None = None
    """Seconds, by the speed of this process so far; None: not timed yet."""
    evaluations: float = 0.0
    """Seconds of all evaluations, as measured before the first; the speed includes them from then on."""
    _start: tuple[int, float] | None = None
    _steps: int = 0

    def advance(self, done: int, total: int, seconds: float) -> None:
        """Note a step that ended after `seconds` of the run. The first one is not timed: it allocates and compiles."""
        self.done, self.total = done, total
        if self._start is None:
            self._start = (done, seconds)
            return
        self._steps += 1
        begun, elapsed = self._start[0], seconds - self._start[1]
        if done > begun and self._steps >= _MIN_STEPS and (elapsed >= _MIN_SECONDS or self.score is not None):
            self.left = max(total - done, 0) * elapsed / (done - begun)
            self.left += self.evaluations * max(total - done, 0) / total if self.score is None else 0.0

    def evaluated(self, score: float, best: float, *, is_best: bool) -> None:
        """Note an evaluation, the best score so far, and whether its own model is kept as the best."""
        self.score, self.best, self.is_best = score, best, is_best

    def line(self) -> str:
        """The line of an evaluation, where there is no bar.

        >>> status = RunStatus(total=100, done=40, score_name="f1", epoch=2.0, loss=0.5, score=0.8, best=0.9, left=42)
        >>> status.line()
        'epoch 2 of 5, loss 0.5000, dev f1 0.8000 (best 0.9000), 42 s left'

        The best score is left out where there is no room for it. Less than one epoch is told in percent of the run.

        >>> RunStatus(total=100, done=10, score_name="f1", epoch=0.0787, loss=0.5).line()
        '10 % of 0.79 epochs, loss 0.5000'
        """
        left = [] if self.done >= self.total else self._left()
        loss = [self._loss()] if self.loss is not None else []
        start = [self._epochs(), *loss]
        scores = [[]] if self.score is None else [[f"dev {self._score()}"], [f"dev {self._score(with_best=False)}"]]
        lines = [", ".join([*start, *score, *left]) for score in scores]
        return short(next((line for line in lines if len(line) <= WIDTH), lines[-1]), WIDTH)

    def bar(self, width: int = WIDTH) -> str:
        """The line of a terminal that changes in place.

        >>> status = RunStatus(total=100, done=50, score_name="f1", loss=0.5, score=0.8, best=0.8, left=42, is_best=True)
        >>> status.bar()
        ' 50% ━━━━━━──────  loss 0.5000  dev f1 0.8000 (best)  42 s left'
        """
        share = min(self.done / max(self.total, 1), 1.0)
        parts = [self._loss()] if self.loss is not None else []
        parts += [f"dev {self._score()}"] if self.score is not None else []
        text, percent = "  ".join([*parts, *self._left()]), f"{100 * share:3.0f}% "
        room = min(max(min(width, WIDTH) - len(percent) - len(text) - 2, 0), _BAR)
        full = round(share * room)
        return short(f"{percent}{'━' * full}{'─' * (room - full)}  {text}".rstrip(), min(width, WIDTH))

    def expected(self) -> str | None:
        """A sentence about the time that the run will take; None: it is not known yet, or short."""
        if self.left is None or self.left < _WORTH_TELLING:
            return None
        early = "" if self.patience is None else ", less if the dev score stops improving"
        return f"expected time: {format_duration(self.left)}{early}"

    def remark(self) -> str:
        """A line about a perfect score: why training goes on; empty before.

        >>> RunStatus(total=9, done=3, score_name="f1", is_perfect=True, prefers_later=True).remark()
        'perfect dev f1: of such networks, the last one is kept'
        """
        if not self.is_perfect or self.done >= self.total:
            return ""
        kept = "the last one" if self.prefers_later else "the one with the least dev loss"
        return f"perfect dev {self.score_name.replace('_', ' ')}: of such networks, {kept} is kept"

    def _epochs(self) -> str:
        if not self.done:
            return f"epoch {number_of_epochs(self.epoch)}"
        whole = self.epoch * self.total / self.done
        if whole < _PART:
            return f"{100 * min(self.done / self.total, 1.0):.0f} % of {whole:.2g} epochs"
        # the last batch may go beyond the last epoch
        total = number_of_epochs(round(whole) if whole >= _MANY_EPOCHS else whole)
        return f"epoch {number_of_epochs(min(self.epoch, whole))} of {total}"

    def _loss(self) -> str:
        return f"{'sampled loss' if self.sampled else 'loss'} {_value(self.loss or 0.0)}"

    def _left(self) -> list[str]:
        if self.left is None:
            return []
        return [f"{format_duration(self.left) if self.left >= 10 else f'{max(self.left, 1.0):.0f} s'} left"]

    def _score(self, *, with_best: bool = True) -> str:
        assert self.score is not None and self.best is not None
        best = "best" if self.is_best else f"best {_value(self.best)}"
        return f"{self.score_name.replace('_', ' ')} {_value(self.score)}" + (f" ({best})" if with_best else "")


def _value(number: float) -> str:
    """A number of about five digits.

    >>> _value(0.51234), _value(48970.1)
    ('0.5123', '48,970')
    """
    return f"{number:.4f}" if abs(number) < 10 else f"{number:,.1f}" if abs(number) < 1000 else f"{number:,.0f}"


def number_of_epochs(epochs: float) -> str:
    """A number of epochs: whole ones as such.

    >>> number_of_epochs(2.0001), number_of_epochs(0.25), number_of_epochs(12.34)
    ('2', '0.25', '12.3')
    """
    return f"{epochs:.0f}" if abs(epochs - round(epochs)) < 0.02 and epochs > 0.5 else f"{epochs:.3g}"
