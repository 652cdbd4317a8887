"""`polyseme pretrain`: from a folder of text to a model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli import show
from polyseme.cli.option_groups import command
from polyseme.cli.options import Size
from polyseme.cli.part_options import Cell, Filters, Highways, MaxCharacters, Projection, TrunkLayers, WordDim, parse_filters
from polyseme.cli.pretrain_language_models import nnlm, ulmfit
from polyseme.cli.pretrain_ngram import ngram
from polyseme.cli.pretrain_pieces import bert, gpt
from polyseme.cli.pretrain_vectors import fasttext, glove, word2vec
from polyseme.cli.text_options import TextOptions
from polyseme.cli.training_options import (
    BatchWords,
    CorpusOption,
    Dropout,
    LaneWords,
    LayoutOption,
    Negatives,
    Out,
    TrainingOptions,
    large_pages,
)
from polyseme.cli.training_options import pretrain as run_pretraining

if TYPE_CHECKING:
    from polyseme.base.run import Run
    from polyseme.text.word_vectors import VectorLookup, WordVectors
    from polyseme.training.optim_config import OptimConfig

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


class Optimizer(StrEnum):
    """How the weights move."""

    adamw = "adamw"
    adagrad = "adagrad"


SizeOption = Annotated[Size, typer.Option("--size", help="tiny for a first try; small, medium and original as published.")]
TrunkOption = Annotated[
    Trunk, typer.Option("--trunk", help="What reads the words: lstm as published, or transformer, causal in each direction.")
]
Input = Annotated[Form, typer.Option("--input", help="Read words by their characters, by a table, or by both.")]
Vocabulary = Annotated[
    int, typer.Option("--vocabulary", min=4, help="Most frequent words that the model predicts, three marks counted.")
]
Vectors = Annotated[
    Path | None,
    typer.Option(
        "--vectors", metavar="FILE", help="Start the word table from these vectors: word2vec (text, binary) or GloVe."
    ),
]
OutputOption = Annotated[
    Output | None,
    typer.Option("--output", help="Train by all words; for large vocabularies by a sample, or with rare words in clusters."),
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


TAGLM = """Train a TagLM on text (Peters et al. 2017): the language models of an ELMo, of which a word has the top layers alone.

    All is as for `polyseme pretrain elmo`. In a tagger its vectors stand between the layers.

    Example:

        polyseme pretrain taglm --corpus texts/ --out my-taglm --size tiny --epochs 5
    """


@app.callback()
def about() -> None:
    """Teach a model your own text."""


app.command()(ngram)
app.command()(bert)
app.command()(gpt)
for method in (nnlm, word2vec, fasttext, glove, ulmfit):
    app.command()(method)


@app.command("taglm", help=TAGLM)
@app.command()
@command
def elmo(
    context: typer.Context,
    corpus: CorpusOption,
    out: Out,
    text: TextOptions,
    size: SizeOption = Size.small,
    trunk: TrunkOption = Trunk.lstm,
    input: Input = Form.characters,
    vocabulary: Vocabulary = 50_000,
    vectors: Vectors = None,
    output: OutputOption = None,
    tied: Tied = False,
    negatives: Negatives = None,
    optimizer: OptimizerOption = Optimizer.adamw,
    learning_rate: Rate = None,
    dropout: Dropout = 0.1,
    layout: LayoutOption = None,
    batch_words: BatchWords = None,
    lane_words: LaneWords = 20,
    cell: Cell = None,
    projection: Projection = None,
    layers: TrunkLayers = None,
    filters: Filters = None,
    highways: Highways = None,
    word_dim: WordDim = None,
    max_characters: MaxCharacters = None,
    *,
    training: TrainingOptions,
) -> None:
    """Train an ELMo on text: files, folders or globs of plain or packed text.

    The folder MODEL holds the best model so far at any moment, and the same command goes on after a stop, a crash or a
    power cut. Validation is by the full vocabulary on the last hundredth of the text.

    Example:

        polyseme pretrain elmo --corpus texts/ --out my-model --size tiny --epochs 5
    """
    large_pages()
    from polyseme.pretraining.elmo_config import ArchitectureOverrides, ElmoPretraining, TagLmPretraining

    config = (TagLmPretraining if context.info_name == "taglm" else ElmoPretraining)(
        size=size.value,
        overrides=ArchitectureOverrides(
            cell_size=cell,
            projection_size=projection,
            layers=layers,
            filters=parse_filters(filters),
            highway_layers=highways,
            max_characters=max_characters,
        ),
        architecture=trunk.value,
        input=input.value,
        word_dim=word_dim,
        vocabulary_size=vocabulary,
        tied=tied,
        output=output.value if output else None,
        negatives=negatives,
        dropout=dropout,
        batching=layout.value if layout else None,
        batch_words=batch_words,
        bptt=lane_words,
        train=training.loop(_optim(optimizer, learning_rate)),
    )
    run, opened = training.run(), text.open(corpus)
    run_pretraining(config, opened, run, out, training, _vectors(vectors, run))


def _vectors(path: Path | None, run: Run) -> VectorLookup | None:
    """How the vectors of a vocabulary are found in a file; the person is told how many there were."""
    if path is None:
        return None
    from polyseme.formats.word_vectors import read_vectors

    def find(words: list[str]) -> WordVectors:
        found = read_vectors(path, words)
        if run.is_main_process:
            show.note(f"{path}: {found.summary(len(words))}")
        return found

    return find


def _optim(optimizer: Optimizer, rate: float | None) -> OptimConfig:
    """The paper's Adagrad keeps its rate; AdamW's falls to zero."""
    from polyseme.pretraining.method import SKIP_NORM
    from polyseme.training.optim_config import OptimConfig

    adagrad = optimizer is Optimizer.adagrad
    usual = 0.2 if adagrad else 1e-3
    return OptimConfig(
        optimizer=optimizer.value,
        learning_rate=usual if rate is None else rate,
        decay="constant" if adagrad else "linear",
        skip_norm=SKIP_NORM,
    )
