"""`polyseme pretrain ngram`: from a folder of text to an n-gram model."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

import typer

from polyseme.base.errors import UsageError
from polyseme.base.progress import progress
from polyseme.cli import show
from polyseme.cli.option_groups import command
from polyseme.cli.options import Json
from polyseme.cli.text_options import TextOptions
from polyseme.cli.training_options import CorpusOption, Out


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
    from polyseme.pretraining.ngram import NgramPretraining

    config = NgramPretraining(
        order=order,
        smoothing=smoothing.value,
        vocabulary_size=vocabulary,
        min_count=min_count,
        cutoffs=parse_cutoffs(cutoff),
    )
    run = Run.from_environment(device="cpu")
    opened = text.open(corpus)
    with progress("encoding text", unit="words") as count:
        made = config.fit(opened, run, out, progress=count)
    if not run.is_main_process:
        return  # under torchrun one process speaks
    facts = {name: value for name, value in made.model.info().items() if name in ("vocabulary", "ngrams", "discounts")}
    if json:
        seconds = round(made.seconds, 3)
        show.as_json({"out": str(out), "words": made.words, "sentences": made.sentences, **facts, "seconds": seconds})
        return
    show.line(f"{out}: {made.words:,} words, {show.count(made.sentences, 'sentence')}, {made.seconds:,.1f} s")
    discounts = facts["discounts"] or [[]] * order
    rows = [
        (f"{n}-grams", f"{some:,}".rjust(14) + f"   discounts {', '.join(f'{value:.3f}' for value in taken)}")
        for n, (some, taken) in enumerate(zip(facts["ngrams"], discounts, strict=True), start=1)
    ]
    show.columns(rows)


def parse_cutoffs(text: str) -> tuple[int, ...]:
    """`0,0,1` -> (0, 0, 1).

    >>> parse_cutoffs("0,0,1")
    (0, 0, 1)
    """
    if not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", text):
        raise UsageError(f"--cutoff is {text!r}; expected a whole number for each order, such as 0,0,1")
    return tuple(map(int, text.split(",")))
