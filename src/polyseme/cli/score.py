"""`polyseme score`: how likely a model finds sentences and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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
    StartOption,
    Texts,
    VocabularyFile,
    open_model,
)

if TYPE_CHECKING:
    from polyseme.encoders.questions import WordLogProbs

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
    device: Device = None,
    start: StartOption = None,
    precision: PrecisionOption = Precision.fp32,
) -> None:
    """Say how likely sentences are, by the language model inside.

    For every line: the natural-log probability of its words read from left to right (forward) and from right to left
    (backward), their mean, and the perplexity: roughly, among how many words the model hesitated at each place; lower
    is likelier. At the end the same over all lines. The model needs its output layer and vocabulary.

    Example:

        polyseme score "The bank of the river ." "river bank the of The ." --model my-model
    """
    lines = lines_of(texts, input)
    loaded = open_model(model, options=options, vocabulary=vocabulary, device=device, precision=precision)
    from polyseme.formats.vectors_run import Settings
    from polyseme.formats.scores import Totals, score_lines

    settings = Settings(start=start.value if start else None, split_on_spaces=split_on_spaces)
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
        perplexity = {name: f"{value:,.2f}" for name, value in totals.perplexity().items()}
        show.line(f"{totals.lines:,} lines: perplexity " + ", ".join(f"{n} {v}" for n, v in perplexity.items()))
