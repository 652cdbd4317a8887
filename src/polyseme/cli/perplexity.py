"""`polyseme perplexity`: how well a model predicts a text, by the full distribution over its vocabulary."""

from __future__ import annotations

from typing import Annotated

import typer

from polyseme.cli import show
from polyseme.cli.options import Device, Json, Model, Options, SplitterOption, VocabularyFile, open_language_model
from polyseme.cli.text_options import Field, OwnSentences, Workers, open_corpus

Sources = Annotated[
    list[str],
    typer.Argument(metavar="SOURCE", help="Files, folders or quoted globs of text, plain or packed; - is standard input."),
]
Carry = Annotated[
    bool,
    typer.Option("--carry", help="Read each sentence after the one before, as ULMFiT's perplexities are published."),
]


def perplexity(
    source: Sources,
    model: Model = None,
    carry: Carry = False,
    json: Json = False,
    sentences: OwnSentences = None,
    field: Field = None,
    workers: Workers = None,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    splitter: SplitterOption = None,
    device: Device = None,
) -> None:
    """Measure how well a model predicts a text that it has not seen.

    Words are split as in the model's training, sentences as is usual for that (give --sentences where they were split
    otherwise), and every sentence is read alone, from the model's start state; with --carry an AWD-LSTM (ULMFiT) reads on from
    sentence to sentence. Ends of sentences are predicted too, and words outside the vocabulary as the unknown word: their share
    is told, since a smaller vocabulary makes prediction easier. The perplexity is exp of the mean loss of each direction, and
    of both; n-gram models and their like have one direction.

    Example:

        polyseme perplexity held-out.txt --model my-model
    """
    loaded = open_language_model(model, options=options, vocabulary=vocabulary, splitter=splitter, device=device)
    from polyseme.encoders.scoring import corpus_perplexity

    text = open_corpus(source, loaded.splitter, sentences, field, workers)
    show.show_result(corpus_perplexity(loaded, text, carry=carry), json=json)
