"""`polyseme score`: how likely a model finds sentences and words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.cli import show
from polyseme.cli.lines import lines_of
from polyseme.cli.options import (
    Device,
    Input,
    Json,
    Model,
    Options,
    Precision,
    PrecisionOption,
    SplitOnSpaces,
    SplitterOption,
    StartOption,
    Texts,
    VocabularyFile,
    check_splitting,
    open_language_model,
)

if TYPE_CHECKING:
    from polyseme.encoders.elmo import Elmo
    from polyseme.encoders.questions import WordLogProbs
    from polyseme.formats.vectors.store import Settings

EachWord = Annotated[bool, typer.Option("--words", help="Show every word, not only the sentence.")]


def score(
    texts: Texts = None,
    input: Input = None,
    model: Model = None,
    words: EachWord = False,
    split_on_spaces: SplitOnSpaces = False,
    json: Json = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    splitter: SplitterOption = None,
    device: Device = None,
    start: StartOption = None,
    precision: PrecisionOption = Precision.fp32,
) -> None:
    """Say how likely sentences are, by the language model inside.

    For every line: the natural-log probability of its words read from left to right (forward) and from right to left
    (backward), their mean, and the perplexity: roughly, among how many words the model hesitated at each place; lower
    is likelier. At the end the same over all lines. The model needs its output layer and vocabulary.

    Example:

        polyseme score "The bank of the river ." "river bank the of The ."
    """
    check_splitting(split_on_spaces, splitter)
    lines = lines_of(texts, input)
    loaded = open_language_model(
        model, options=options, vocabulary=vocabulary, splitter=splitter, device=device, precision=precision
    )
    from polyseme.formats.vectors.store import Settings

    settings = Settings(start=start.value if start else None, split_on_spaces=split_on_spaces)
    loaded.log_probs([], start=settings.start)  # type: ignore[arg-type]  # what it lacks is told before the table begins
    totals = Totals()
    if not json:
        show.line(f"{'forward':>12}{'backward':>12}{'mean':>12}{'perplexity':>14}  sentence")
    for number, found in enumerate(score_lines(loaded, lines, settings)):
        totals.add(found)
        if json:
            show.as_json(_as_dict(number, found, words))
        else:
            _show(found, words)
    if json:
        show.as_json({"lines": totals.lines, "predictions": totals.predictions, "perplexity": totals.perplexity()})
    elif totals.lines:
        values = ", ".join(f"{name} {value:,.2f}" for name, value in totals.perplexity().items())
        show.line(f"\nperplexity of {show.count(totals.lines, 'line')}: {values}")


@dataclass
class Totals:
    """Sums over lines, for perplexities over all of them."""

    lines: int = 0
    predictions: int = 0
    """Words and marks predicted in each direction."""
    forward: float = 0.0
    backward: float = 0.0

    def add(self, found: WordLogProbs) -> None:
        """Count one more line."""
        self.lines += 1
        self.predictions += len(found.forward)
        self.forward += float(found.forward.sum())
        self.backward += float(found.backward.sum())

    def perplexity(self) -> dict[str, float | None]:
        """exp of the mean loss, for each direction and for both together; None where there was no line."""
        sums = {"forward": self.forward, "backward": self.backward, "mean": (self.forward + self.backward) / 2}
        return {name: math.exp(min(-value / self.predictions, 700)) if self.lines else None for name, value in sums.items()}


def score_lines(model: Elmo, lines: Iterable[str], settings: Settings) -> Iterator[WordLogProbs]:
    """Log-probabilities of all lines, read a chunk at a time."""
    from polyseme.formats.vectors.store import chunks, words_of

    for texts in chunks((words_of(model, line, settings) for line in lines), settings):
        yield from model.log_probs(texts, start=settings.start)  # type: ignore[arg-type]


def _perplexity(found: WordLogProbs) -> float:
    return math.exp(min(-found.score / len(found.forward), 700))


def _as_dict(number: int, found: WordLogProbs, words: bool) -> dict[str, Any]:
    result: dict[str, Any] = {
        "line": number,
        "forward": float(found.forward.sum()),
        "backward": float(found.backward.sum()),
        "mean": found.score,
        "perplexity": _perplexity(found),
    }
    if words:
        result["words"] = found.words
        result["known"] = found.known.tolist()
        result["forward_words"], result["end"] = found.forward[:-1].tolist(), float(found.forward[-1])
        result["backward_words"], result["begin"] = found.backward[:-1].tolist(), float(found.backward[-1])
    return result


def _show(found: WordLogProbs, words: bool) -> None:
    sums = f"{found.forward.sum():12.3f}{found.backward.sum():12.3f}{found.score:12.3f}{_perplexity(found):14,.2f}"
    show.line(f"{sums}  {show.short(' '.join(found.words), 60)}")
    if not words:
        return
    for word, forward, backward, known in zip(found.words, found.forward, found.backward, found.known, strict=False):
        strange = "" if known else "  (not in the vocabulary)"
        show.line(f"{forward:12.3f}{backward:12.3f}{'':28}{show.short(word, 40)}{strange}")
    show.line(f"{found.forward[-1]:12.3f}{'':40}end of the sentence")
    show.line(f"{'':12}{found.backward[-1]:12.3f}{'':28}begin of the sentence")
