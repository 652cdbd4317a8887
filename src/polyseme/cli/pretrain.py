"""`polyseme pretrain`: from a folder of text to a model."""

from __future__ import annotations

import logging
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.base.errors import UsageError
from polyseme.base.progress import progress
from polyseme.cli import show
from polyseme.cli.options import Json, Size, Splitter
from polyseme.cli.text_options import Field, Sentences, SentencesOption, SkipBad, TextSplitter, Workers, open_corpus

if TYPE_CHECKING:
    from polyseme.base.run import Run
    from polyseme.text.word_vectors import FindVectors, WordVectors
    from polyseme.training.config import TrainConfig
    from polyseme.training.optim import OptimConfig

app = typer.Typer(help="Teach a model your own text.", no_args_is_help=True)


class Trunk(StrEnum):
    """What reads the words of a sentence."""

    lstm = "lstm"
    transformer = "transformer"


class Form(StrEnum):
    """What a model reads of a word."""

    characters = "characters"
    words = "words"
    both = "both"


class Output(StrEnum):
    """How a model predicts words."""

    full = "full"
    sampled = "sampled"
    adaptive = "adaptive"


class Layout(StrEnum):
    """How sentences are laid into batches."""

    lanes = "lanes"
    stream = "stream"
    sentences = "sentences"


class Optimizer(StrEnum):
    """How the weights move."""

    adamw = "adamw"
    adagrad = "adagrad"


class Precision(StrEnum):
    """With which numbers a model is trained."""

    fp32 = "fp32"
    bf16 = "bf16"


CorpusOption = Annotated[
    list[str],
    typer.Option("--corpus", "-c", metavar="SOURCE", help="A text file, folder or glob (may be given again), or - for stdin."),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="Folder for the model, or of a run to go on with.")]
SizeOption = Annotated[Size, typer.Option("--size", help="tiny for a first try; small, medium and original as published.")]
TrunkOption = Annotated[
    Trunk, typer.Option("--trunk", help="What reads the words: lstm as published, or transformer, causal in each direction.")
]
Input = Annotated[Form, typer.Option("--input", help="Read words by their characters, by a table, or by both.")]
Vocabulary = Annotated[int, typer.Option("--vocabulary", min=4, help="Most frequent words that the model predicts.")]
Vectors = Annotated[
    Path | None,
    typer.Option(
        "--vectors", metavar="FILE", help="Start the word table from these vectors: word2vec (text, binary) or GloVe."
    ),
]
Epochs = Annotated[float | None, typer.Option("--epochs", min=0, help="Passes over the text.", rich_help_panel="Budget")]
Minutes = Annotated[float | None, typer.Option("--minutes", min=0, help="Minutes of training.", rich_help_panel="Budget")]
Words = Annotated[int | None, typer.Option("--words", metavar="N", min=1, help="Words to train on.", rich_help_panel="Budget")]
OutputOption = Annotated[
    Output | None,
    typer.Option("--output", help="Train by all words; for large vocabularies by a sample, or with rare words in clusters."),
]
Negatives = Annotated[
    int | None,
    typer.Option("--negatives", min=1, metavar="N", help="Words of the sample; given, the output is sampled."),
]
Tied = Annotated[bool, typer.Option("--tied", help="Predict words by the rows of the table that reads them.")]
OptimizerOption = Annotated[
    Optimizer, typer.Option("--optimizer", help="adamw, or the paper's adagrad.", rich_help_panel="Training")
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--learning-rate", help="Highest learning rate; not given: 0.001, for Adagrad 0.2.", rich_help_panel="Training"
    ),
]
Dropout = Annotated[float, typer.Option("--dropout", help="Share of numbers dropped in training.", rich_help_panel="Training")]
LayoutOption = Annotated[
    Layout | None,
    typer.Option(
        "--layout",
        help="Sentences end to end in lanes, each from the learned start state; as an endless stream, as published; or whole.",
        rich_help_panel="Training",
    ),
]
BatchWords = Annotated[
    int | None,
    typer.Option(
        "--batch-words",
        min=8,
        help="Words of a batch; not given: 2,560, on a GPU 20,480, less for little text.",
        rich_help_panel="Training",
    ),
]
Patience = Annotated[
    int | None,
    typer.Option("--patience", min=1, help="Stop after so many validations without a gain.", rich_help_panel="Training"),
]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same model.", rich_help_panel="Training")]
Device = Annotated[
    str | None,
    typer.Option("--device", help="cpu or cuda; a GPU is taken where there is one.", rich_help_panel="Training"),
]
PrecisionOption = Annotated[
    Precision | None,
    typer.Option("--precision", help="Numbers to compute with; not given: bf16 on a GPU.", rich_help_panel="Training"),
]


@app.callback()
def about() -> None:
    """Teach a model your own text."""


@app.command()
def elmo(
    corpus: CorpusOption,
    out: Out,
    size: SizeOption = Size.small,
    trunk: TrunkOption = Trunk.lstm,
    input: Input = Form.characters,
    vocabulary: Vocabulary = 50_000,
    vectors: Vectors = None,
    splitter: TextSplitter = Splitter.english,
    sentences: SentencesOption = Sentences.english,
    field: Field = "text",
    workers: Workers = None,
    skip_bad_lines: SkipBad = False,
    epochs: Epochs = None,
    minutes: Minutes = None,
    words: Words = None,
    output: OutputOption = None,
    tied: Tied = False,
    negatives: Negatives = None,
    optimizer: OptimizerOption = Optimizer.adamw,
    learning_rate: Rate = None,
    dropout: Dropout = 0.1,
    layout: LayoutOption = None,
    batch_words: BatchWords = None,
    patience: Patience = None,
    seed: Seed = 0,
    device: Device = None,
    precision: PrecisionOption = None,
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

    logging.basicConfig(format="polyseme: %(message)s")
    config = ElmoPretraining(
        size=size.value,
        trunk=trunk.value,
        input=input.value,
        vocabulary=vocabulary,
        tied=tied,
        **_output(output, negatives),
        dropout=dropout,
        layout=layout.value if layout else None,
        batch_words=batch_words,
        train=_budget(epochs, minutes, words, patience, _optim(optimizer, learning_rate)),
    )
    run = Run.from_environment(seed=seed, device=device, precision=precision.value if precision else None)
    text = open_corpus(corpus, splitter, sentences, field, workers, skip_bad=skip_bad_lines)
    with progress("encoding text", unit="words") as count:
        result = pretrain(text, out, config, run, vectors=_vectors(vectors, run), progress=count)
    if json:
        show.as_json({"out": str(out), "steps": result.steps, "words": result.words, **result.scores, "ended": result.ended})
    else:
        show.line(f"{out}: {show.count(result.steps, 'step')}, {result.words:,} words, {result.seconds:,.0f} s")
        show.line("held-out perplexity: " + ", ".join(f"{name} {value:,.2f}" for name, value in result.scores.items()))


def _output(output: Output | None, negatives: int | None) -> dict[str, Any]:
    """The output's kind and sample: to say how large a sample is means to take one."""
    if negatives is None:
        return {"output": output.value} if output else {}
    if output not in (None, Output.sampled):
        raise UsageError(f"--negatives is for a sampled output; got --output {output}: leave one of them out")
    return {"output": "sampled", "negatives": negatives}


def _vectors(path: Path | None, run: Run) -> FindVectors | None:
    """How the vectors of a vocabulary are found in a file; the person is told how many there were."""
    if path is None:
        return None
    from polyseme.formats.word_vectors import read_vectors

    def find(words: list[str]) -> WordVectors:
        found = read_vectors(path, words)
        if run.first:
            show.note(f"{path}: {found.told(len(words))}")
        return found

    return find


def _budget(
    epochs: float | None, minutes: float | None, words: int | None, patience: int | None, optim: OptimConfig
) -> TrainConfig:
    from polyseme.training.config import TrainConfig

    if sum(value is not None for value in (epochs, minutes, words)) > 1:
        raise UsageError("give one budget: --epochs, --minutes or --words")
    if epochs is None and minutes is None and words is None:
        epochs = 10.0
    return TrainConfig(epochs=epochs, minutes=minutes, words=words, patience=patience, optim=optim)


def _optim(optimizer: Optimizer, rate: float | None) -> OptimConfig:
    """The paper's Adagrad keeps its rate; AdamW's falls to zero."""
    from polyseme.training.optim import OptimConfig

    if optimizer is Optimizer.adagrad:
        return OptimConfig(optimizer="adagrad", learning_rate=0.2 if rate is None else rate, decay="constant")
    return OptimConfig(learning_rate=1e-3 if rate is None else rate)
