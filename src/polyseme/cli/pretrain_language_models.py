"""`polyseme pretrain nnlm` and `ulmfit`: from a folder of text to a neural language model that reads from left to right."""

from __future__ import annotations

from typing import Annotated

import typer

from polyseme.cli.option_groups import command
from polyseme.cli.pretrain_ngram import MinCount, Vocabulary
from polyseme.cli.text_options import TextOptions
from polyseme.cli.training_options import (
    CorpusOption,
    Dropout,
    Negatives,
    Out,
    Rate,
    TrainingOptions,
    large_pages,
    pretrain,
)

_TRAINING = "Training"
Order = Annotated[int, typer.Option("--order", min=2, help="Words of an n-gram: a word depends on one less.")]
Dim = Annotated[int, typer.Option("--dim", min=1, help="Size of a word's vector.")]
Hidden = Annotated[int, typer.Option("--hidden", min=1, help="Units of a hidden layer.")]
Direct = Annotated[bool, typer.Option("--direct", help="Connect the words' vectors with the output directly, too.")]
BatchWords = Annotated[
    int | None,
    typer.Option(
        "--batch-words", min=8, help="Words of a batch; not given: 1,024, less for little text.", rich_help_panel=_TRAINING
    ),
]
Decay = Annotated[
    float, typer.Option("--weight-decay", help="How fast AdamW draws weights towards zero.", rich_help_panel=_TRAINING)
]
LstmLayers = Annotated[int, typer.Option("--layers", min=1, help="LSTM layers.")]
DropoutFactor = Annotated[
    float,
    typer.Option(
        "--dropout-factor",
        min=0,
        help="All published shares of dropout times this: less for much text, more for little.",
        rich_help_panel=_TRAINING,
    ),
]
Activation = Annotated[
    float,
    typer.Option("--activation", min=0, help="Cost of large activations (AR).", rich_help_panel=_TRAINING),
]
Change = Annotated[
    float,
    typer.Option(
        "--activation-change",
        min=0,
        help="Cost of activations that change from word to word (TAR).",
        rich_help_panel=_TRAINING,
    ),
]
Rows = Annotated[
    int | None,
    typer.Option(
        "--rows",
        min=1,
        help="Passages that are read side by side; not given: 40, fewer for little text.",
        rich_help_panel=_TRAINING,
    ),
]
RowWords = Annotated[
    int,
    typer.Option(
        "--row-words", min=1, help="Words of a passage in a batch, about: gradients reach so far.", rich_help_panel=_TRAINING
    ),
]


@command
def nnlm(
    corpus: CorpusOption,
    out: Out,
    text: TextOptions,
    order: Order = 5,
    dim: Dim = 100,
    hidden: Hidden = 500,
    direct: Direct = False,
    vocabulary: Vocabulary = None,
    min_count: MinCount = 1,
    negatives: Negatives = None,
    learning_rate: Rate = 1e-3,
    weight_decay: Decay = 0.01,
    dropout: Dropout = 0.25,
    batch_words: BatchWords = None,
    *,
    training: TrainingOptions,
) -> None:
    """Train a feed-forward language model on text (Bengio et al. 2003): an n-gram model that learns which words are alike.

    The folder MODEL holds the best model so far at any moment, and the same command goes on after a stop. Its table is word
    vectors: `polyseme embed` and `polyseme similar` look at them, `polyseme perplexity` at how well it predicts.

    Example:

        polyseme pretrain nnlm --corpus texts/ --out my-nnlm --order 5 --vocabulary 10000
    """
    large_pages()
    from polyseme.pretraining.nnlm_config import NnlmPretraining
    from polyseme.training.optim_config import OptimConfig

    optim = OptimConfig(learning_rate=learning_rate, weight_decay=weight_decay)
    config = NnlmPretraining(
        order=order,
        dim=dim,
        hidden_size=hidden,
        direct_connections=direct,
        vocabulary_size=vocabulary,
        min_count=min_count,
        negatives=negatives,
        dropout=dropout,
        batch_words=batch_words,
        train=training.loop(optim),
    )
    run = training.run()
    pretrain(config, text.open(corpus), run, out, training)


@command
def ulmfit(
    corpus: CorpusOption,
    out: Out,
    text: TextOptions,
    dim: Dim = 400,
    hidden: Hidden = 1150,
    layers: LstmLayers = 3,
    vocabulary: Vocabulary = None,
    min_count: MinCount = 1,
    negatives: Negatives = None,
    learning_rate: Rate = 3e-3,
    weight_decay: Decay = 0.1,
    dropout_factor: DropoutFactor = 1.0,
    activation: Activation = 2.0,
    activation_change: Change = 1.0,
    rows: Rows = None,
    row_words: RowWords = 70,
    *,
    training: TrainingOptions,
) -> None:
    """Train the language model of ULMFiT on text: an AWD-LSTM (Merity et al. 2017).

    Text is read in its own order. The folder MODEL holds the best model so far at any moment, and the same command goes on
    after a stop. `polyseme perplexity --carry` measures it as published.

    Example:

        polyseme pretrain ulmfit --corpus texts/ --out my-ulmfit --vocabulary 30000 --epochs 20
    """
    large_pages()
    from polyseme.pretraining.ulmfit_config import UlmfitPretraining, default_optim

    config = UlmfitPretraining(
        dim=dim,
        hidden_size=hidden,
        layers=layers,
        vocabulary_size=vocabulary,
        min_count=min_count,
        negatives=negatives,
        dropout_multiplier=dropout_factor,
        activation_regularization=activation,
        temporal_regularization=activation_change,
        batch_size=rows,
        bptt=row_words,
        train=training.loop(default_optim(learning_rate, weight_decay), usual=50.0),
    )
    run = training.run()
    pretrain(config, text.open(corpus), run, out, training)
