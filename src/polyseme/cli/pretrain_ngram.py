"""`polyseme pretrain ngram`: from a folder of text to an n-gram model."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

import typer

from polyseme.base.errors import UsageError
from polyseme.cli.option_groups import command
from polyseme.cli.options import Json
from polyseme.cli.text_options import TextOptions
from polyseme.cli.training_options import CorpusOption, Out, report


class Smoothing(StrEnum):
    """How counts become probabilities."""

    kneser_ney = "kneser-ney"
    absolute = "absolute"
    none = "none"


Order = Annotated[int, typer.Option("--order", min=1, help="Words of the longest n-grams: a word depends on one less.")]
SmoothingOption = Annotated[
    Smoothing,
    typer.Option("--smoothing", help="kneser-ney: modified and interpolated; absolute discounting; none: plain shares."),
]
Vocabulary = Annotated[
    int | None,
    typer.Option(
        "--vocabulary", min=4, help="Most frequent words, three marks counted; the others are `<unk>`. Not given: all."
    ),
]
MinCount = Annotated[int, typer.Option("--min-count", min=1, help="Words that come less often are `<unk>`.")]
Cutoff = Annotated[
    str,
    typer.Option(
        "--cutoff",
        metavar="0,N,...",
        help="For each order: n-grams that come so often or less are dropped; the last number is for all higher orders. "
        "The first is 0: --min-count drops words.",
    ),
]


@command
def ngram(
    corpus: CorpusOption,
    out: Out,
    text: TextOptions,
    order: Order = 5,
    smoothing: SmoothingOption = Smoothing.kneser_ney,
    vocabulary: Vocabulary = None,
    min_count: MinCount = 1,
    cutoff: Cutoff = "0",
    json: Json = False,
) -> None:
    """Count the n-grams of a text and smooth them: a language model in seconds.

    All of the text is counted; `polyseme perplexity` tells how well the model predicts other text, `polyseme score --explain`
    how it comes to its numbers, and `polyseme convert MODEL FILE --to arpa` writes it for other programs.

    Example:

        polyseme pretrain ngram --corpus texts/ --out my-ngrams --order 3
    """
    from polyseme.base.run import Run
    from polyseme.pretraining.ngram_config import NgramPretraining

    config = NgramPretraining(
        order=order,
        smoothing=smoothing.value,
        vocabulary_size=vocabulary,
        min_count=min_count,
        cutoffs=parse_cutoffs(cutoff),
    )
    run = Run.from_environment(device="cpu")
    report(config.fit(text.open(corpus), run, out), run, json)


def parse_cutoffs(text: str) -> tuple[int, ...]:
    """`0,0,1` -> (0, 0, 1).

    >>> parse_cutoffs("0,0,1")
    (0, 0, 1)
    """
    if not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", text):
        raise UsageError(f"--cutoff is {text!r}; expected a whole number for each order, such as 0,0,1")
    return tuple(map(int, text.split(",")))
