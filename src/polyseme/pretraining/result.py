"""What pre-training gives: one result type for all methods, with what each kind of method has to say besides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.base.display import columns, count, html_table

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder
    from polyseme.pretraining.baselines import Baselines

FEW_WORDS = 1000
"""Held-out words that tell little."""
OLD_VOCABULARY = "old_vocabulary"
"""Name of a score: the perplexity in which the words that an adaptation added count as unknown, as they did before."""


@dataclass(frozen=True, kw_only=True)
class PretrainingResult:
    """A trained model in its folder, and how its training went."""

    out: Path
    """The folder."""
    method: str
    """Name of the method; adapt for an adaptation."""
    words: int
    """Words trained on, each pass counted."""
    text_words: int
    """Words of the text."""
    seconds: float
    """Training time, without reading the text where the method reads it first."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Scores of the best model on held-out text, where the method holds some out: perplexity, loss ..."""

    @property
    def model(self) -> Encoder:
        """The model, read from its folder."""
        from polyseme.encoders.folder import load

        return load(self.out)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as `--json` prints them."""
        raise NotImplementedError

    def lines(self) -> list[str]:
        """Return the result in sentences for a person."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), value) for name, value in self.to_dict().items() if value is not None]
        return html_table(("", self.method), rows)


@dataclass(frozen=True, kw_only=True)
class TrainingResult(PretrainingResult):
    """The result of a method under the training loop."""

    steps: int
    """Optimizer steps."""
    best_step: int | None = None
    """The step of the model in the folder; None: no evaluation yet."""
    ended: str | None = None
    """budget or patience; None: interrupted by a signal, and the same call resumes the run."""
    stopped_by: str | None = None
    """The signal that interrupted it: SIGINT or SIGTERM."""
    baselines: Baselines | None = None
    """Perplexities of counted models on the same held-out text; None: not finished, or not comparable."""
    held_out_words: int | None = None
    """Words of the held-out text; None: not counted."""

    def to_dict(self) -> dict[str, Any]:
        values = {"out": str(self.out), "steps": self.steps, "words": self.words, **self.scores, "ended": self.ended}
        return values | ({} if self.baselines is None else {"baselines": self.baselines.to_dict()})

    def lines(self) -> list[str]:
        scores = [f"{name.replace('_', ' ')} {value:,.4g}" for name, value in self.scores.items()]
        held_out = f"held-out {', '.join(scores)}" if scores else "stopped before the first evaluation"
        verdict = [] if self.baselines is None or not scores else [self.baselines.verdict(self.scores)]
        return [self._run_line(), held_out, *verdict]

    def _run_line(self) -> str:
        return f"{self.out}: {count(self.steps, 'step')}, {self.words:,} words, {self.seconds:,.0f} s"


@dataclass(frozen=True, kw_only=True)
class AdaptationResult(TrainingResult):
    """The result of an adaptation."""

    before: Mapping[str, float] | None = None
    """The scores before training, on the same sentences and vocabulary; None: the model had no output layer.

    Where words were added, `old_vocabulary` is the perplexity in which they count as unknown: before training, that of the
    untouched model."""
    added: list[str] = field(default_factory=list)
    """Words that were added to the vocabulary."""

    @property
    def better(self) -> bool | None:
        """Whether the held-out perplexity is lower than before, with the added words and without; None: nothing to compare."""
        if self.before is None or not self.scores:
            return None
        names = {"perplexity", OLD_VOCABULARY} & set(self.before) & set(self.scores)
        return all(self.scores[name] < self.before[name] for name in names)

    def to_dict(self) -> dict[str, Any]:
        return {
            "out": str(self.out),
            "steps": self.steps,
            "words": self.words,
            "added_words": len(self.added),
            "before": None if self.before is None else dict(self.before),
            "after": dict(self.scores),
            "better": self.better,
            "ended": self.ended,
        }

    def lines(self) -> list[str]:
        scores = [f"before {format_perplexity(self.before)}" if self.before is not None else "before: no output layer"]
        scores += [f"after {format_perplexity(self.scores)}"] if self.scores else []
        lines = [self._run_line(), f"added {count(len(self.added), 'word')}", f"held-out perplexity: {', '.join(scores)}"]
        if self.held_out_words is not None and self.held_out_words < FEW_WORDS:
            lines.append(f"only {count(self.held_out_words, 'word')} of the text are held out: the difference may be chance")
        if self.before is not None and OLD_VOCABULARY in self.before and OLD_VOCABULARY in self.scores:
            lines.append(
                f"over the old vocabulary: untouched model {self.before[OLD_VOCABULARY]:,.2f}, after "
                f"{self.scores[OLD_VOCABULARY]:,.2f} (here added words count as unknown, above they are predicted: compare "
                "the numbers of one line)"
            )
        if self.better is False:
            lines.append(
                f"no better than the untouched model: {self.out} holds the best model of this training, of step "
                f"{self.best_step}; {self._advice()}"
            )
        return lines

    def _advice(self) -> str:
        if self.words >= self.text_words / 2:
            return "try more text, fewer epochs or a lower learning rate"
        return f"it has read {100 * self.words / self.text_words:.2g} % of the text: give it more time"


@dataclass(frozen=True, kw_only=True)
class WordVectorResult(PretrainingResult):
    """The result of word2vec, fastText or GloVe."""

    vocabulary_size: int
    """Words that have a vector."""
    epochs: int
    """Passes over the text or its pairs."""
    loss: float | None = None
    """Mean loss of the last epoch, where the method computes one."""

    def to_dict(self) -> dict[str, Any]:
        values = {
            "out": str(self.out),
            "words": self.vocabulary_size,
            "text_words": self.text_words,
            "epochs": self.epochs,
            "seconds": round(self.seconds, 3),
        }
        return values | ({} if self.loss is None else {"loss": self.loss})

    def lines(self) -> list[str]:
        loss = "" if self.loss is None else f", loss {self.loss:.4f}"
        epochs = f"{count(self.epochs, 'epoch')} of {self.text_words:,} words{loss}"
        return [f"{self.out}: {self.vocabulary_size:,} words, {epochs}, {self.seconds:,.0f} s"]


@dataclass(frozen=True, kw_only=True)
class NgramResult(PretrainingResult):
    """The result of counting n-grams."""

    sentences: int
    """Sentences of the text."""
    vocabulary: int
    """Words of the vocabulary, special tokens included."""
    ngrams: list[int]
    """For each order: the number of n-grams."""
    discounts: list[list[float]] | None
    """For each order: the discounts of the counts 1, 2, and 3 or more; None: there are none."""

    def to_dict(self) -> dict[str, Any]:
        names = ("words", "sentences", "vocabulary", "ngrams", "discounts")
        values = {"out": str(self.out)} | {name: getattr(self, name) for name in names}
        return values | {"seconds": round(self.seconds, 3)}

    def lines(self) -> list[str]:
        head = f"{self.out}: {self.words:,} words, {count(self.sentences, 'sentence')}, {self.seconds:,.1f} s"
        discounts = self.discounts or [[]] * len(self.ngrams)
        rows = [
            (f"{order}-grams", f"{number:,}".rjust(14) + f"   discounts {', '.join(f'{value:.3f}' for value in each)}")
            for order, (number, each) in enumerate(zip(self.ngrams, discounts, strict=True), start=1)
        ]
        return [head, *columns(rows).splitlines()]


def format_perplexity(scores: Mapping[str, float]) -> str:
    """Return the perplexities of an evaluation for a person.

    >>> format_perplexity({"perplexity": 20.0, "forward": 16.0, "backward": 25.0})
    '20.00 (forward 16.00, backward 25.00)'
    """
    each = ", ".join(f"{name} {scores[name]:,.2f}" for name in ("forward", "backward") if name in scores)
    return f"{scores['perplexity']:,.2f}" + (f" ({each})" if each else "")
