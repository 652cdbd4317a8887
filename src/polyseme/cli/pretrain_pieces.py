"""`polyseme pretrain bert` and `gpt`: from a folder of text to a Transformer over pieces of words."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from polyseme.cli.option_groups import command
from polyseme.cli.text_options import TextOptions
from polyseme.cli.training_options import CorpusOption, Dropout, Out, Rate, TrainingOptions, pretrain


class NetworkSize(StrEnum):
    """How large a network is."""

    tiny = "tiny"
    mini = "mini"
    small = "small"


_MASKING, _TRAINING = "Masking", "Training"
SizeOption = Annotated[NetworkSize, typer.Option("--size", help="2 layers of 128 numbers, 4 of 256, or 4 of 512.")]
WordPieces = Annotated[
    int,
    typer.Option(
        "--pieces", min=10, help="Pieces of the vocabulary, marks counted; all characters of the text are among them."
    ),
]
BytePairs = Annotated[
    int, typer.Option("--pieces", help="Pieces of the vocabulary at most; 256 bytes and a mark are among them.")
]
Cased = Annotated[bool, typer.Option("--cased", help="Tell capitals and accents apart.")]
Length = Annotated[int, typer.Option("--length", min=8, help="Pieces read together at most: positions of the network.")]
WholeWords = Annotated[
    bool, typer.Option("--whole-words", help="Hide all pieces of a word, or none.", rich_help_panel=_MASKING)
]
Static = Annotated[
    bool, typer.Option("--static", help="Draw pairs and masks once, and not in each epoch.", rich_help_panel=_MASKING)
]
Share = Annotated[float, typer.Option("--masked-share", help="Of the pieces, those to be told.", rich_help_panel=_MASKING)]
BatchPieces = Annotated[
    int | None,
    typer.Option(
        "--batch-pieces", min=8, help="Pieces of a batch. Not given: 2,048, on a GPU 32,768.", rich_help_panel=_TRAINING
    ),
]


@command
def bert(
    corpus: CorpusOption,
    out: Out,
    text: TextOptions,
    size: SizeOption = NetworkSize.tiny,
    pieces: WordPieces = 8000,
    cased: Cased = False,
    length: Length = 128,
    whole_words: WholeWords = False,
    static: Static = False,
    masked_share: Share = 0.15,
    learning_rate: Rate = 5e-4,
    dropout: Dropout = 0.1,
    batch_pieces: BatchPieces = None,
    *,
    training: TrainingOptions,
) -> None:
    """Train a BERT on text (extra `transformers`): hidden pieces, and whether a text follows another. A line is a document.

    The folder MODEL holds the best model so far at any moment, which `AutoModel.from_pretrained` opens too, and the same
    command goes on after a stop. `polyseme fill` asks the result for hidden words.

    Example:

        polyseme pretrain bert --corpus texts/ --out my-bert --size mini --pieces 8000
    """
    from polyseme.pretraining.subword_config import BertPretraining, MaskingConfig, default_optim

    config = BertPretraining(
        size=size.value,
        vocabulary_size=pieces,
        cased=cased,
        max_length=length,
        masking=MaskingConfig(mlm_probability=masked_share, whole_word_mask=whole_words, static_masking=static),
        dropout=dropout,
        batch_subwords=batch_pieces,
        train=training.loop(default_optim(learning_rate)),
    )
    pretrain(config, text.open(corpus), training.run(), out, training)


@command
def gpt(
    corpus: CorpusOption,
    out: Out,
    text: TextOptions,
    size: SizeOption = NetworkSize.tiny,
    pieces: BytePairs = 8000,
    length: Length = 128,
    learning_rate: Rate = 5e-4,
    dropout: Dropout = 0.1,
    batch_pieces: BatchPieces = None,
    *,
    training: TrainingOptions,
) -> None:
    """Train a GPT on text (extra `transformers`): each piece from all before it. A line is a document.

    The folder MODEL holds the best model so far at any moment, which `AutoModel.from_pretrained` opens too, and the same
    command goes on after a stop. `polyseme score` and `polyseme perplexity` ask the result how likely words are.

    Example:

        polyseme pretrain gpt --corpus texts/ --out my-gpt --size mini --pieces 8000
    """
    from polyseme.pretraining.subword_config import GptPretraining, default_optim

    config = GptPretraining(
        size=size.value,
        vocabulary_size=pieces,
        max_length=length,
        dropout=dropout,
        batch_subwords=batch_pieces,
        train=training.loop(default_optim(learning_rate)),
    )
    pretrain(config, text.open(corpus), training.run(), out, training)
