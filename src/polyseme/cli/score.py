"""`polyseme score`: how likely a model finds sentences and words."""

from __future__ import annotations

from typing import Annotated

import typer

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
    open_language_model,
)
from polyseme.text.files.lines import lines_of

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
    from polyseme.encoders.scoring import score_texts

    choice = start.value if start else None
    results = score_texts(loaded, lines, words=words, explain=explain, split_on_spaces=split_on_spaces, start=choice)
    show.show_result(results, json=json)
