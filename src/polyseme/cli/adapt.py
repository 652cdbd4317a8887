"""`polyseme adapt`: from any model and a domain's text to a model of that domain."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Annotated

import typer

from polyseme.cli import show
from polyseme.cli.option_groups import command
from polyseme.cli.options import ModelArgument, Options, SplitterOption, VocabularyFile, open_adaptable
from polyseme.cli.text_options import Field, OwnSentences, SkipBad, Workers, open_corpus
from polyseme.cli.training_options import (
    BatchWords,
    CorpusOption,
    LayoutOption,
    Negatives,
    Out,
    TrainingOptions,
    large_pages,
    report,
)


class Output(StrEnum):
    """How a model is trained to predict words."""

    full = "full"
    sampled = "sampled"


NewWords = Annotated[
    int | None,
    typer.Option(
        "--new-words", min=0, metavar="N", help="Frequent words of the text that join the vocabulary; not given: up to 10,000."
    ),
]
MinCount = Annotated[int, typer.Option("--min-count", min=1, metavar="N", help="A word joins that comes N times or more.")]
VocabularySize = Annotated[
    int | None,
    typer.Option(
        "--vocabulary-size",
        min=4,
        metavar="N",
        help="Most frequent words to predict, for a model without a vocabulary; not given: 50,000.",
    ),
]
OutputOption = Annotated[
    Output | None, typer.Option("--output", help="Train by all words, or by a sample of a large vocabulary.")
]
Freeze = Annotated[
    list[str] | None,
    typer.Option(
        "--freeze",
        metavar="PART",
        help="A part that stays as it is: tokens, layer1, layer2, start, output (may be given again).",
        rich_help_panel="Training",
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--learning-rate", help="Highest learning rate; not given: 0.0003, for a ulmfit 0.001.", rich_help_panel="Training"
    ),
]
OwnDropout = Annotated[
    float | None,
    typer.Option("--dropout", help="Share of numbers dropped in training; not given: 0.1.", rich_help_panel="Training"),
]
Factor = Annotated[
    float | None,
    typer.Option("--dropout-factor", help="Of a ulmfit: all its shares of dropout times this.", rich_help_panel="Training"),
]
LayerDecay = Annotated[
    float | None,
    typer.Option(
        "--layer-decay",
        min=1,
        help="Of a ulmfit: each layer moves so many times slower than the one above; not given: 2.6.",
        rich_help_panel="Training",
    ),
]


@command
def adapt(
    model: ModelArgument,
    corpus: CorpusOption,
    out: Out,
    new_words: NewWords = None,
    min_count: MinCount = 2,
    vocabulary_size: VocabularySize = None,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    splitter: SplitterOption = None,
    sentences: OwnSentences = None,
    field: Field = None,
    workers: Workers = None,
    skip_bad_lines: SkipBad = False,
    output: OutputOption = None,
    negatives: Negatives = None,
    freeze: Freeze = None,
    learning_rate: Rate = None,
    dropout: OwnDropout = None,
    dropout_factor: Factor = None,
    layer_decay: LayerDecay = None,
    layout: LayoutOption = None,
    batch_words: BatchWords = None,
    *,
    training: TrainingOptions,
) -> None:
    """Go on training a model on the text of a domain, and add the domain's words to its vocabulary.

    MODEL is any ELMo that polyseme loads, or the language model of ULMFiT. An ELMo without an output layer gets a new one;
    of a ulmfit, the layers move at different rates under a slanted triangular schedule, as published. The folder of --out
    holds the best model so far at any moment, and the same command goes on after a stop; perplexities before and after are
    by the full vocabulary, the added words included, on the last hundredth of the text. `polyseme convert` brings an ELMo
    back to bilm-tf's files.

    Example:

        polyseme adapt elmo_2x1024_128_2048cnn_1xhighway_weights.hdf5 --corpus reports/ --out my-domain --splitter english
    """
    large_pages()
    from polyseme.pretraining.adapt import adapt as train
    from polyseme.pretraining.methods import configure_adaptation

    logging.basicConfig(format="polyseme: %(message)s")
    start = open_adaptable(model, options=options, vocabulary=vocabulary, splitter=splitter)
    given = {
        "new_words": new_words,
        "min_count": min_count,
        "freeze": tuple(freeze or ()),
        "vocabulary_size": vocabulary_size,
        "output": output and output.value,
        "negatives": negatives,
        "learning_rate": learning_rate,
        "dropout": dropout,
        "dropout_multiplier": dropout_factor,
        "layer_decay": layer_decay,
        "batching": layout and layout.value,
        "batch_words": batch_words,
        "epochs": training.epochs,
        "minutes": training.minutes,
        "words": training.words,
        "warmup": training.warmup,
        "clip_norm": training.clip_norm,
        "patience": training.patience,
    }
    config = configure_adaptation(start.kind, {name: value for name, value in given.items() if value is not None})
    run = training.run()
    cut = start.splitter
    if cut.name == "whitespace" and splitter is None and run.is_main_process:
        show.note(f"{model} takes words that are divided by blanks, one sentence a line: for raw text add --splitter english")
    text = open_corpus(corpus, cut, sentences, field, workers, skip_bad=skip_bad_lines)
    report(train(start, text, out, config, run, accept_changes=training.accept_changes), run, training.json)  # type: ignore[arg-type]
