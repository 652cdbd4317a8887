"""`polyseme pretrain`: from a folder of text to a model."""

from __future__ import annotations

import logging
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.base.errors import UsageError
from polyseme.base.progress import progress
from polyseme.cli import show
from polyseme.cli.options import Json

if TYPE_CHECKING:
    from polyseme.training.config import TrainConfig

app = typer.Typer(help="Teach a model your own text.", no_args_is_help=True)


class Size(StrEnum):
    """Sizes of a model."""

    tiny = "tiny"
    small = "small"
    medium = "medium"
    original = "original"


class Form(StrEnum):
    """What a model reads of a word."""

    characters = "characters"
    words = "words"
    both = "both"


CorpusOption = Annotated[
    list[str],
    typer.Option("--corpus", "-c", metavar="SOURCE", help="A text file, folder or glob (may be given again), or - for stdin."),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="Folder for the model, or of a run to go on with.")]
SizeOption = Annotated[Size, typer.Option("--size", help="tiny for a first try; small, medium and original as published.")]
Input = Annotated[Form, typer.Option("--input", help="Read words by their characters, by a table, or by both.")]
Vocabulary = Annotated[int, typer.Option("--vocabulary", min=4, help="Most frequent words that the model predicts.")]
Words = Annotated[str, typer.Option("--words", help="How text is split: english, chinese, whitespace or characters.")]
Sentences = Annotated[str, typer.Option("--sentences", help="How sentences are found: english, chinese or lines.")]
Epochs = Annotated[float | None, typer.Option("--epochs", min=0, help="Passes over the text.", rich_help_panel="Budget")]
Minutes = Annotated[float | None, typer.Option("--minutes", min=0, help="Minutes of training.", rich_help_panel="Budget")]
TotalWords = Annotated[int | None, typer.Option("--total-words", min=1, help="Words to train on.", rich_help_panel="Budget")]
Negatives = Annotated[
    int | None,
    typer.Option("--negatives", min=1, help="Train by a sample of so many words; not given: the full vocabulary."),
]
Rate = Annotated[float, typer.Option("--learning-rate", help="Highest learning rate.", rich_help_panel="Training")]
Dropout = Annotated[float, typer.Option("--dropout", help="Share of numbers dropped in training.", rich_help_panel="Training")]
BatchWords = Annotated[int, typer.Option("--batch-words", min=8, help="Words of a batch.", rich_help_panel="Training")]
Patience = Annotated[
    int | None,
    typer.Option("--patience", min=1, help="Stop after so many validations without a gain.", rich_help_panel="Training"),
]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same model.", rich_help_panel="Training")]
Device = Annotated[str | None, typer.Option("--device", help="cpu or cuda; a GPU is taken where there is one.")]


@app.callback()
def about() -> None:
    """Teach a model your own text."""


@app.command()
def elmo(
    corpus: CorpusOption,
    out: Out,
    size: SizeOption = Size.small,
    input: Input = Form.characters,
    vocabulary: Vocabulary = 50_000,
    words: Words = "english",
    sentences: Sentences = "english",
    epochs: Epochs = None,
    minutes: Minutes = None,
    total_words: TotalWords = None,
    negatives: Negatives = None,
    learning_rate: Rate = 1e-3,
    dropout: Dropout = 0.1,
    batch_words: BatchWords = 2048,
    patience: Patience = None,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
) -> None:
    """Train an ELMo on text: files, folders or globs of plain or packed text.

    The folder MODEL holds the best model so far at any moment, and the same command goes on after a stop, a crash or a
    power cut. Validation is by the full vocabulary on the last hundredth of the text.

    Example:

        polyseme pretrain elmo --corpus texts/ --out my-model --size tiny --epochs 5
    """
    from polyseme.base.run import Run
    from polyseme.pretraining.fit import ElmoPretraining, pretrain
    from polyseme.text.corpus import Corpus

    logging.basicConfig(format="polyseme: %(message)s")
    config = ElmoPretraining(
        size=size.value,
        input=input.value,
        vocabulary=vocabulary,
        negatives=negatives,
        dropout=dropout,
        batch_words=batch_words,
        train=_budget(epochs, minutes, total_words, learning_rate, patience),
    )
    run = Run.from_environment(seed=seed, device=device, precision="fp32")
    text = Corpus(corpus, words=words, sentences=sentences)
    with progress("encoding text", unit="words") as count:
        result = pretrain(text, out, config, run, progress=count)
    if json:
        show.as_json({"out": str(out), "steps": result.steps, "words": result.words, **result.scores, "ended": result.ended})
    else:
        show.line(f"{out}: {show.count(result.steps, 'step')}, {result.words:,} words, {result.seconds:,.0f} s")
        show.line("held-out perplexity: " + ", ".join(f"{name} {value:,.2f}" for name, value in result.scores.items()))


def _budget(epochs: float | None, minutes: float | None, words: int | None, rate: float, patience: int | None) -> TrainConfig:
    from polyseme.training.config import TrainConfig
    from polyseme.training.optim import OptimConfig

    if sum(value is not None for value in (epochs, minutes, words)) > 1:
        raise UsageError("give one budget: --epochs, --minutes or --total-words")
    if epochs is None and minutes is None and words is None:
        epochs = 10.0
    optim = OptimConfig(learning_rate=rate)
    return TrainConfig(epochs=epochs, minutes=minutes, words=words, patience=patience, optim=optim)
