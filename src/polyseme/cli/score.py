"""`polyseme score`: how likely a model finds sentences and words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.cli import explain as explaining
from polyseme.cli import show
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
    need_elmo,
    open_language_model,
)
from polyseme.text.files.lines import lines_of

if TYPE_CHECKING:
    from polyseme.cli.options import AnyLanguageModel
    from polyseme.encoders.embed_config import EmbedConfig
    from polyseme.encoders.language_model import WordLogProbs

EachWord = Annotated[bool, typer.Option("--words", help="Show every word, not only the sentence.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show the chain rule step by step: each word's probability, and the product so far.")
]


def score(
    texts: Texts = None,
    input: Input = None,
    model: Model = None,
    words: EachWord = False,
    explain: Explain = False,
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
    is likelier. At the end the same over all lines. An ELMo needs its output layer and vocabulary; n-gram models and other
    ancestors read from left to right only.

    Example:

        polyseme score "The bank of the river ." "river bank the of The ."
    """
    check_splitting(split_on_spaces, splitter)
    lines = lines_of(texts, input)
    loaded = open_language_model(
        model, options=options, vocabulary=vocabulary, splitter=splitter, device=device, precision=precision
    )
    from polyseme.encoders.embed_config import EmbedConfig

    settings = EmbedConfig(start=start.value if start else None, split_on_spaces=split_on_spaces)
    _log_probs(loaded, [], settings)  # what it lacks is told before the table begins
    totals = Totals()
    if not json:
        sides = ("backward", "mean") if loaded.kind in ("elmo", "taglm") else ()
        show.line(f"{_row('forward', *sides)}  {'perplexity':>12}  sentence")
    for number, found in enumerate(score_lines(loaded, lines, settings)):
        totals.add(found)
        if json:
            show.as_json(_as_dict(number, found, words) | ({"steps": explaining.as_dicts(loaded, found)} if explain else {}))
        else:
            _show(found, words and not explain)
            if explain:
                explaining.show_steps(loaded, found)
    if json:
        show.as_json({"lines": totals.lines, "predictions": totals.predictions, "perplexity": totals.perplexity()})
    elif totals.lines:
        values = ", ".join(f"{name} {value}".strip() for name, value in totals.shown())
        show.line(f"\nperplexity of {show.count(totals.lines, 'line')}: {values}")


@dataclass
class Totals:
    """Sums over lines, for perplexities over all of them."""

    lines: int = 0
    predictions: int = 0
    """Words and marks predicted in each direction."""
    forward: float = 0.0
    backward: float | None = 0.0
    """None: of a model that reads from left to right."""

    def add(self, found: WordLogProbs) -> None:
        """Count one more line."""
        self.lines += 1
        self.predictions += len(found.forward)
        self.forward += float(found.forward.sum())
        if found.backward is None or self.backward is None:
            self.backward = None
        else:
            self.backward += float(found.backward.sum())

    def perplexity(self) -> dict[str, float | None]:
        """exp of the mean loss, for each direction and for all together; None where there was no line, or no such direction."""
        mean = self.forward if self.backward is None else (self.forward + self.backward) / 2
        sums = {"forward": self.forward, "backward": self.backward, "mean": mean}
        return {
            name: math.exp(min(-value / self.predictions, 700)) if self.lines and value is not None else None
            for name, value in sums.items()
        }

    def shown(self) -> list[tuple[str, str]]:
        """Perplexities by their names, for people; where there is but one direction, one without a name."""
        values = self.perplexity() if self.backward is not None else {"": self.perplexity()["mean"]}
        return [(name, plain_perplexity(value)) for name, value in values.items() if value is not None]


def score_lines(model: AnyLanguageModel, lines: Iterable[str], settings: EmbedConfig) -> Iterator[WordLogProbs]:
    """Log-probabilities of all lines, read a chunk at a time."""
    from polyseme.encoders.embedding_stream import chunked, words_of

    for texts in chunked((words_of(model, line, settings) for line in lines), settings):
        yield from _log_probs(model, texts, settings)


def _log_probs(model: AnyLanguageModel, texts: list[list[str]], settings: EmbedConfig) -> list[WordLogProbs]:
    if settings.start is None:
        return model.log_probs(texts)
    elmo = need_elmo(model, "has no choice of start state: leave --start out")
    return elmo.log_probs(texts, start=settings.start)  # type: ignore[arg-type]


def plain_perplexity(value: float) -> str:
    """For people: with two digits behind the point; a huge one, of which no more can be read, as a power of ten.

    >>> plain_perplexity(1234.5), plain_perplexity(3e66)
    ('1,234.50', '3.000e+66')
    """
    return f"{value:,.2f}" if value < 1e9 else f"{value:.3e}"


def _row(first: str, *others: str) -> str:
    """Columns that end at the same places in every line, and have two blanks between them however wide a number is."""
    return "  ".join([f"{first:>12}", *(f"{other:>10}" for other in others)])


def _perplexity(found: WordLogProbs) -> float:
    return math.exp(min(-found.score / len(found.forward), 700))


def _as_dict(number: int, found: WordLogProbs, words: bool) -> dict[str, Any]:
    result: dict[str, Any] = {
        "line": number,
        "forward": float(found.forward.sum()),
        "backward": None if found.backward is None else float(found.backward.sum()),
        "mean": found.score,
        "perplexity": _perplexity(found),
    }
    if words:
        result["words"] = found.words
        result["known"] = found.known.tolist()
        result["forward_words"], result["end"] = found.forward[:-1].tolist(), float(found.forward[-1])
        if found.backward is not None:
            result["backward_words"], result["begin"] = found.backward[:-1].tolist(), float(found.backward[-1])
    return result


def _show(found: WordLogProbs, words: bool) -> None:
    backward = found.backward
    sides = () if backward is None else (f"{backward.sum():.3f}", f"{found.score:.3f}")
    log_probs, perplexity = _row(f"{found.forward.sum():.3f}", *sides), plain_perplexity(_perplexity(found))
    show.line(f"{log_probs}  {perplexity:>12}  {show.short(' '.join(found.words), 60)}")
    if not words:
        return
    blank = " " * (16 if backward is None else 28)
    for place, (word, known) in enumerate(zip(found.words, found.known, strict=True)):
        each = _row(f"{found.forward[place]:.3f}", *(() if backward is None else [f"{backward[place]:.3f}"]))
        show.line(f"{each}{blank}{show.short(word, 40)}{'' if known else '  (not in the vocabulary)'}")
    show.line(f"{found.forward[-1]:12.3f}{'' if backward is None else ' ' * 12}{blank}end of the sentence")
    if backward is not None:
        show.line(f"{'':12}{backward[-1]:12.3f}{blank}begin of the sentence")
