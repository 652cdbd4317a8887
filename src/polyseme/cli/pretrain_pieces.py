"""`polyseme pretrain bert` and `gpt`: from a folder of text to a Transformer over pieces of words."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.base.progress import progress
from polyseme.cli.options import Json, Splitter
from polyseme.cli.text_options import Field, Sentences, SentencesOption, SkipBad, TextSplitter, WordList, Workers, open_corpus
from polyseme.cli.training_options import (
    AcceptChanges,
    CorpusOption,
    Device,
    Dropout,
    Epochs,
    Minutes,
    Out,
    Patience,
    PrecisionOption,
    Seed,
    Words,
    budget,
    finish,
)

if TYPE_CHECKING:
    from pathlib import Path

    from polyseme.base.run import Run
    from polyseme.pretraining.piece_teaching import PieceTeaching
    from polyseme.text.corpus import Corpus


class NetworkSize(StrEnum):
    """How large a network is."""

    tiny = "tiny"
    mini = "mini"
    small = "small"


_MASKING, _TRAINING = "Masking", "Training"
SizeOption = Annotated[NetworkSize, typer.Option("--size", help="2 layers of 128 numbers, 4 of 256, or 4 of 512.")]
PiecesOption = Annotated[int, typer.Option("--pieces", min=10, help="Pieces of the vocabulary at most, marks counted.")]
Cased = Annotated[bool, typer.Option("--cased", help="Tell capitals and accents apart.")]
Length = Annotated[int, typer.Option("--length", min=8, help="Pieces read together at most: positions of the network.")]
WholeWords = Annotated[
    bool, typer.Option("--whole-words", help="Hide all pieces of a word, or none.", rich_help_panel=_MASKING)
]
Static = Annotated[
    bool, typer.Option("--static", help="Draw pairs and masks once, and not in each epoch.", rich_help_panel=_MASKING)
]
Share = Annotated[float, typer.Option("--masked-share", help="Of the pieces, those to be told.", rich_help_panel=_MASKING)]
Rate = Annotated[float, typer.Option("--learning-rate", help="The highest of the run.", rich_help_panel=_TRAINING)]
BatchPieces = Annotated[
    int | None,
    typer.Option(
        "--batch-pieces", min=8, help="Pieces of a batch. Not given: 2,048, on a GPU 32,768.", rich_help_panel=_TRAINING
    ),
]


def bert(
    corpus: CorpusOption,
    out: Out,
    size: SizeOption = NetworkSize.tiny,
    pieces: PiecesOption = 8000,
    cased: Cased = False,
    length: Length = 128,
    whole_words: WholeWords = False,
    static: Static = False,
    masked_share: Share = 0.15,
    splitter: TextSplitter = Splitter.english,
    word_list: WordList = None,
    sentences: SentencesOption = Sentences.english,
    field: Field = "text",
    workers: Workers = None,
    skip_bad_lines: SkipBad = False,
    epochs: Epochs = None,
    minutes: Minutes = None,
    words: Words = None,
    learning_rate: Rate = 5e-4,
    dropout: Dropout = 0.1,
    batch_pieces: BatchPieces = None,
    patience: Patience = None,
    seed: Seed = 0,
    device: Device = None,
    precision: PrecisionOption = None,
    accept_changes: AcceptChanges = False,
    json: Json = False,
) -> None:
    """Train a BERT on text (extra `transformers`): hidden pieces, and whether a text follows another. A line is a document.

    The folder MODEL holds the best model so far at any moment, which `AutoModel.from_pretrained` opens too, and the same
    command goes on after a stop. `polyseme fill` asks the result for hidden words.

    Example:

        polyseme pretrain bert --corpus texts/ --out my-bert --size mini --pieces 8000
    """
    from polyseme.base.run import Run
    from polyseme.pretraining.bert import BertPretraining
    from polyseme.pretraining.bert_batches import MaskingConfig
    from polyseme.pretraining.piece_teaching import usual_optim

    config = BertPretraining(
        size=size.value,
        pieces=pieces,
        lowercase=not cased,
        length=length,
        masking=MaskingConfig(share=masked_share, whole_words=whole_words, kind="static" if static else "dynamic"),
        dropout=dropout,
        batch_pieces=batch_pieces,
        train=budget(epochs, minutes, words, patience, usual_optim(learning_rate), usual=10.0),
    )
    text = open_corpus(corpus, splitter, sentences, field, workers, word_list=word_list, skip_bad=skip_bad_lines)
    run = Run.from_environment(seed=seed, device=device, precision=precision.value if precision else None)
    _teach(config, text, run, out, accept_changes=accept_changes, json=json)


def gpt(
    corpus: CorpusOption,
    out: Out,
    size: SizeOption = NetworkSize.tiny,
    pieces: PiecesOption = 8000,
    length: Length = 128,
    splitter: TextSplitter = Splitter.english,
    word_list: WordList = None,
    sentences: SentencesOption = Sentences.english,
    field: Field = "text",
    workers: Workers = None,
    skip_bad_lines: SkipBad = False,
    epochs: Epochs = None,
    minutes: Minutes = None,
    words: Words = None,
    learning_rate: Rate = 5e-4,
    dropout: Dropout = 0.1,
    batch_pieces: BatchPieces = None,
    patience: Patience = None,
    seed: Seed = 0,
    device: Device = None,
    precision: PrecisionOption = None,
    accept_changes: AcceptChanges = False,
    json: Json = False,
) -> None:
    """Train a GPT on text (extra `transformers`): each piece from all before it. A line is a document.

    The folder MODEL holds the best model so far at any moment, which `AutoModel.from_pretrained` opens too, and the same
    command goes on after a stop. `polyseme score` and `polyseme perplexity` ask the result how likely words are.

    Example:

        polyseme pretrain gpt --corpus texts/ --out my-gpt --size mini --pieces 8000
    """
    from polyseme.base.run import Run
    from polyseme.pretraining.gpt import GptPretraining
    from polyseme.pretraining.piece_teaching import usual_optim

    config = GptPretraining(
        size=size.value,
        pieces=pieces,
        length=length,
        dropout=dropout,
        batch_pieces=batch_pieces,
        train=budget(epochs, minutes, words, patience, usual_optim(learning_rate), usual=10.0),
    )
    text = open_corpus(corpus, splitter, sentences, field, workers, word_list=word_list, skip_bad=skip_bad_lines)
    run = Run.from_environment(seed=seed, device=device, precision=precision.value if precision else None)
    _teach(config, text, run, out, accept_changes=accept_changes, json=json)


def _teach(config: PieceTeaching, text: Corpus, run: Run, out: Path, *, accept_changes: bool, json: bool) -> None:
    logging.basicConfig(format="polyseme: %(message)s")
    with progress("encoding text", unit="words") as count:
        result = config.fit(text, run, out, progress=count, accept_changes=accept_changes)
    finish(result, run, out, json)
