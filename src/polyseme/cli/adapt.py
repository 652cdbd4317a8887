"""`polyseme adapt`: from any model and a domain's text to a model of that domain."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.base.errors import UsageError
from polyseme.base.progress import progress
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
    leave,
    sampling,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from polyseme.pretraining.adapt import Adaptation, Adapted
    from polyseme.training.config import TrainConfig
    from polyseme.training.optim_config import OptimConfig


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
    from polyseme.encoders.ulmfit import Ulmfit
    from polyseme.pretraining.adapt import EPOCHS, RATE, ElmoAdaptation
    from polyseme.pretraining.adapt import adapt as train
    from polyseme.pretraining.elmo_training import SKIP_NORM
    from polyseme.training.optim_config import OptimConfig

    logging.basicConfig(format="polyseme: %(message)s")
    given = {"new_words": new_words, "min_count": min_count, "freeze": tuple(freeze or ())}
    start = open_adaptable(model, options=options, vocabulary=vocabulary, splitter=splitter)
    config: Adaptation
    if isinstance(start, Ulmfit):
        _refuse(
            "an ELMo", output=output, layout=layout, batch_words=batch_words, dropout=dropout, vocabulary_size=vocabulary_size
        )
        config = _of_ulmfit(
            given | {"negatives": negatives, "layer_decay": layer_decay},
            dropout_factor,
            lambda optim: training.loop(optim, usual=EPOCHS),
            learning_rate,
        )
    else:
        _refuse("a ulmfit", dropout_factor=dropout_factor, layer_decay=layer_decay)
        optim = OptimConfig(learning_rate=RATE if learning_rate is None else learning_rate, skip_norm=SKIP_NORM)
        config = ElmoAdaptation(
            **given,  # type: ignore[arg-type]
            vocabulary_size=50_000 if vocabulary_size is None else vocabulary_size,
            **sampling(output, negatives),
            dropout=0.1 if dropout is None else dropout,
            batching=layout.value if layout else None,
            batch_words=batch_words,
            train=training.loop(optim, usual=EPOCHS),
        )
    run = training.run()
    cut = start.splitter
    if cut.name == "whitespace" and splitter is None and run.is_main_process:
        show.note(f"{model} takes words that are divided by blanks, one sentence a line: for raw text add --splitter english")
    text = open_corpus(corpus, cut, sentences, field, workers, skip_bad=skip_bad_lines)
    with progress("encoding text", unit="words") as count:
        adapted = train(start, text, out, config, run, progress=count, accept_changes=training.accept_changes)
    if not run.is_main_process:
        return  # under torchrun one process speaks
    if training.json:
        show.as_json(_values(adapted, out))
    else:
        _print(adapted, out)
    leave(adapted.result)


def _of_ulmfit(
    given: dict[str, Any], dropout_factor: float | None, budgeted: Callable[[OptimConfig], TrainConfig], rate: float | None
) -> Adaptation:
    from polyseme.cli.pretrain_language_models import dropout_by
    from polyseme.pretraining.adapt_ulmfit import RATE, UlmfitAdaptation, slanted

    chosen = {name: value for name, value in given.items() if value is not None}
    dropout = dropout_by(1.0 if dropout_factor is None else dropout_factor)
    return UlmfitAdaptation(**chosen, dropout=dropout, train=budgeted(slanted(RATE if rate is None else rate)))


def _refuse(kind: str, **given: object) -> None:
    """Options that only another kind of model has."""
    idle = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is not None]
    if idle:
        raise UsageError(f"{', '.join(idle)}: of {kind}, and this model is none; leave it out")


def _values(adapted: Adapted, out: Path) -> dict[str, object]:
    result = adapted.result
    return {
        "out": str(out),
        "steps": result.steps,
        "words": result.words,
        "added_words": len(adapted.added),
        "before": adapted.before,
        "after": adapted.after,
        "better": adapted.better,
        "ended": result.ended,
    }


def _print(adapted: Adapted, out: Path) -> None:
    from polyseme.pretraining.card import format_perplexity

    result, before = adapted.result, adapted.before
    show.line(f"{out}: {show.count(result.steps, 'step')}, {result.words:,} words, {result.seconds:,.0f} s")
    show.line(f"added {show.count(len(adapted.added), 'word')}")
    told = [f"before {format_perplexity(before)}" if before is not None else "before: no output layer"]
    told += [f"after {format_perplexity(adapted.after)}"] if adapted.after else []
    show.line(f"held-out perplexity: {', '.join(told)}")
    if adapted.better is False:
        show.line(
            f"no better than before: {out} holds the best of what training gave, of step {result.best_step}; "
            "more text, fewer epochs or a lower --learning-rate may help"
        )
