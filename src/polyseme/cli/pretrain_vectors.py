"""`polyseme pretrain word2vec`, `fasttext` and `glove`: from a folder of text to a vector for each word."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.cli.option_groups import command
from polyseme.cli.options import Json
from polyseme.cli.text_options import TextOptions
from polyseme.cli.training_options import CorpusOption, Device, Out, Seed, report

if TYPE_CHECKING:
    from polyseme.base.run import Run


class Architecture(StrEnum):
    """What is predicted from what."""

    cbow = "cbow"
    skip_gram = "skip-gram"


_TRAINING, _SUBWORDS = "Training", "Subwords"

Dim = Annotated[int, typer.Option("--dim", min=1, help="Size of a vector.")]
ArchitectureOption = Annotated[
    Architecture,
    typer.Option(
        "--architecture", help="Predict a word from its neighbours, or each neighbour from the word (better, slower)."
    ),
]
Window = Annotated[int, typer.Option("--window", min=1, help="How far away a neighbour may stand.")]
MinCount = Annotated[int, typer.Option("--min-count", min=1, help="Words that come less often are left out.")]
Vocabulary = Annotated[
    int | None, typer.Option("--vocabulary", min=1, help="The most frequent words, so many at most. Not given: all.")
]
Epochs = Annotated[int, typer.Option("--epochs", min=1, help="Passes over the text.", rich_help_panel=_TRAINING)]
PairEpochs = Annotated[int, typer.Option("--epochs", min=1, help="Passes over the pairs.", rich_help_panel=_TRAINING)]
Negative = Annotated[
    int | None,
    typer.Option(
        "--negative",
        min=0,
        help="Words drawn to be told from the right one. Not given: 5, or none with --hierarchical.",
        rich_help_panel=_TRAINING,
    ),
]
Hierarchical = Annotated[
    bool,
    typer.Option("--hierarchical", help="Predict words by their way through a Huffman tree.", rich_help_panel=_TRAINING),
]
Sample = Annotated[
    float,
    typer.Option(
        "--sample", min=0, help="Words with a larger share of the text are passed over at times.", rich_help_panel=_TRAINING
    ),
]
PairSample = Annotated[
    float | None,
    typer.Option(
        "--sample",
        min=0,
        help="Words with a larger share of the text are passed over at times; 0: never, as published. Not given: 0.0001, "
        "and 0 for less than a million words.",
        rich_help_panel=_TRAINING,
    ),
]
Rate = Annotated[float, typer.Option("--learning-rate", help="The first; it falls to 0.0001.", rich_help_panel=_TRAINING)]
AdaGradRate = Annotated[float, typer.Option("--learning-rate", help="AdaGrad's.", rich_help_panel=_TRAINING)]
Threads = Annotated[
    int,
    typer.Option(
        "--threads", min=1, help="With more than 1 it is faster, and differs from run to run.", rich_help_panel=_TRAINING
    ),
]
Shortest = Annotated[
    int, typer.Option("--shortest", min=1, help="Letters of the shortest subwords, edges counted.", rich_help_panel=_SUBWORDS)
]
Longest = Annotated[int, typer.Option("--longest", min=1, help="Letters of the longest subwords.", rich_help_panel=_SUBWORDS)]
Buckets = Annotated[
    int,
    typer.Option(
        "--buckets", min=1, help="Rows that subwords share by their hash; published: 2,000,000.", rich_help_panel=_SUBWORDS
    ),
]
XMax = Annotated[
    float,
    typer.Option(
        "--x-max", help="Pairs that come more often weigh the same; 100 for billions of words.", rich_help_panel=_TRAINING
    ),
]
Alpha = Annotated[float, typer.Option("--alpha", help="How fast the weight of rarer pairs falls.", rich_help_panel=_TRAINING)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GensimOptions:
    """What word2vec and fastText share."""

    dim: Dim = 100
    architecture: ArchitectureOption = Architecture.cbow
    window: Window = 5
    min_count: MinCount = 5
    epochs: Epochs = 5
    negative: Negative = None
    hierarchical: Hierarchical = False
    sample: Sample = 1e-3
    learning_rate: Rate = 0.025
    threads: Threads = 1

    def settings(self) -> dict[str, Any]:
        """As the methods take them."""
        given = {name: value for name, value in vars(self).items() if name != "hierarchical"}
        return {
            **given,
            "architecture": self.architecture.value,
            "hierarchical_softmax": self.hierarchical,
        }


@command
def word2vec(
    corpus: CorpusOption,
    out: Out,
    text: TextOptions,
    given: GensimOptions,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Train word2vec on text, by gensim (extra `vectors`): one vector for each word.

    The folder MODEL holds the model at the end; the same command goes on after the last whole epoch if it was stopped.
    `polyseme similar` and `polyseme analogy` look at the result, `polyseme convert MODEL vectors.bin` writes it for other
    programs.

    Example:

        polyseme pretrain word2vec --corpus texts/ --out my-vectors --architecture skip-gram
    """
    from polyseme.pretraining.word2vec_config import Word2VecPretraining

    config = Word2VecPretraining(**given.settings())
    run = _run(seed, "cpu")
    report(config.fit(text.open(corpus), run, out), run, json)


@command
def fasttext(
    corpus: CorpusOption,
    out: Out,
    text: TextOptions,
    given: GensimOptions,
    shortest: Shortest = 3,
    longest: Longest = 6,
    buckets: Buckets = 200_000,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Train fastText on text, by gensim (extra `vectors`): words and their subwords, so that unknown words have vectors too.

    The folder MODEL holds the model at the end; the same command goes on after the last whole epoch if it was stopped.

    Example:

        polyseme pretrain fasttext --corpus texts/ --out my-vectors
    """
    from polyseme.pretraining.word2vec_config import FastTextPretraining

    config = FastTextPretraining(**given.settings(), min_n=shortest, max_n=longest, buckets=buckets)
    run = _run(seed, "cpu")
    report(config.fit(text.open(corpus), run, out), run, json)


@command
def glove(
    corpus: CorpusOption,
    out: Out,
    text: TextOptions,
    dim: Dim = 100,
    window: Window = 10,
    min_count: MinCount = 5,
    vocabulary: Vocabulary = None,
    sample: PairSample = None,
    epochs: PairEpochs = 12,
    x_max: XMax = 10.0,
    alpha: Alpha = 0.75,
    learning_rate: AdaGradRate = 0.2,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
) -> None:
    """Train GloVe on text: vectors whose products tell how often words stand near each other.

    Pairs of words are counted first, in memory. The folder MODEL holds the model at the end; the same command goes on after
    the last whole epoch if it was stopped.

    Example:

        polyseme pretrain glove --corpus texts/ --out my-vectors
    """
    from polyseme.pretraining.glove_config import GlovePretraining

    config = GlovePretraining(
        dim=dim,
        window=window,
        min_count=min_count,
        vocabulary_size=vocabulary,
        sample=sample,
        epochs=epochs,
        x_max=x_max,
        alpha=alpha,
        learning_rate=learning_rate,
    )
    run = _run(seed, device)
    report(config.fit(text.open(corpus), run, out), run, json)


def _run(seed: int, device: str | None) -> Run:
    from polyseme.base.run import Run

    return Run.from_environment(seed=seed, device=device, precision="fp32")
