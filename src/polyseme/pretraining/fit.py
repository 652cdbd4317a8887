"""From a corpus to a trained ELMo: encode the text, build the model, hand both to the loop.

Everything that the result depends on is in `ElmoPretraining`, the corpus and the seed; calling it again with the same folder
goes on where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from torch import nn

from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.progress import Advance
from polyseme.base.run import Run
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES, TRANSFORMERS, ElmoConfig, WordsConfig
from polyseme.encoders.folder import describe
from polyseme.nn.adaptive import AdaptiveSoftmax
from polyseme.nn.output import FullSoftmax
from polyseme.pretraining.card import Story, write_finished
from polyseme.pretraining.elmo import ElmoObjective
from polyseme.pretraining.elmo_lanes import LaneObjective
from polyseme.pretraining.start_vectors import fill_table
from polyseme.text.corpus import Corpus
from polyseme.text.counts import MARKS
from polyseme.text.lanes import LaneBatches
from polyseme.text.shards import Shards
from polyseme.text.stream import SentenceBatches
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.word_vectors import FindVectors, WordVectors
from polyseme.text.words import splitter
from polyseme.training.config import TrainConfig
from polyseme.training.loop import Result, Trainer

WORD_DIM = 100
NEGATIVES = 8192  # as in bilm-tf
DEV_WORDS = 8192  # of a batch in validation
HELD_OUT = 2000  # sentences kept for validation at most; a hundredth of the text where that is less


@dataclass(frozen=True, kw_only=True)
class ElmoPretraining(Config):
    """What is taught, and how."""

    size: Literal["tiny", "small", "medium", "original"] = "small"
    """Sizes of the parts; the last three as published."""
    trunk: Literal["lstm", "transformer"] = "lstm"
    """What reads the words: two stacks of LSTMs, as published, or two causal Transformers of the same width."""
    input: Literal["characters", "words", "both"] = "characters"
    """Words by their characters, by a table, or both side by side."""
    word_dim: int | None = None
    """Size of a row of the word table; None: 100, or what the output needs where it is tied."""
    vocabulary: int = 50_000
    """Words that the model predicts, marks counted: the most frequent ones; all others are `<UNK>` at the output."""
    output: Literal["full", "sampled", "adaptive"] = "full"
    """Train by the full distribution, by a sample of it, or by one whose rare words are in clusters (Grave et al. 2017).

    The last two are for large vocabularies. Validation is always by the full distribution."""
    tied: bool = False
    """The output's weight is the word table itself; not with adaptive."""
    negatives: int = NEGATIVES
    """Words of the sample, where the output is sampled."""
    dropout: float = 0.1
    """On the input of each layer and on the top output."""
    layout: Literal["lanes", "stream", "sentences"] | None = None
    """How sentences are laid into batches; None: lanes, for Transformers sentences.

    - lanes: end to end in rows of one length, each from the learned start state; gradients end at a batch's edge.
    - stream: so too, but a sentence begins with what the one before left, as published; no start state is learned.
    - sentences: whole ones, padded to the longest; gradients go through whole sentences."""
    batch_words: int | None = None
    """Words and marks of a batch, padding counted; None: 2,560, on a GPU 20,480, and less for little text."""
    steps: int = 20
    """Words of a lane in a batch, through which gradients go."""
    train: TrainConfig = field(default_factory=lambda: TrainConfig(epochs=10.0))
    """The budget and the loop."""

    def __post_init__(self) -> None:
        if self.vocabulary < 4:
            raise ConfigError(f"vocabulary is {self.vocabulary}; it counts <S>, </S> and <UNK>, so at least 4")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout is {self.dropout}; allowed: from 0 to below 1")
        problems = self._output_problems()
        if self.trunk == "transformer" and self.layout not in (None, "sentences"):
            problems.append(f"layout is {self.layout!r}, but Transformers carry no state: leave it out, or take sentences")
        if self.steps < 1 or (self.batch_words is not None and self.batch_words < 1):
            problems.append(f"steps is {self.steps} and batch_words {self.batch_words}; both must be at least 1")
        if problems:
            raise ConfigError("; ".join(problems))

    def _output_problems(self) -> list[str]:
        problems, width = [], SIZES[self.size].output
        if self.word_dim is not None and self.word_dim < 1:
            problems.append(f"word_dim is {self.word_dim}; it must be at least 1")
        if self.negatives < 1:
            problems.append(f"negatives is {self.negatives}; a sample has at least 1 word")
        elif self.negatives != NEGATIVES and self.output != "sampled":
            problems.append(f"negatives is {self.negatives}, but output is {self.output!r}: set output to 'sampled'")
        if self.tied and self.output == "adaptive":
            problems.append("tied is true, but an adaptive output has no row for each word: set output to full or sampled")
        if self.tied and self.input == "characters":
            problems.append("tied is true, but input 'characters' has no word table to tie to: set input to words or both")
        elif self.tied and self.word_dim not in (None, width):
            problems.append(
                f"tied is true and word_dim is {self.word_dim}, but the output of size {self.size!r} has {width}: "
                f"leave word_dim out, or set it to {width}"
            )
        return problems

    @property
    def sample(self) -> int | None:
        """Words that the training loss draws; None: it looks at all."""
        return self.negatives if self.output == "sampled" else None

    def elmo(self, words: int) -> ElmoConfig:
        """The encoder's config for a vocabulary of so many words."""
        base = SIZES[self.size]
        word_dim = self.word_dim or (base.output if self.tied else WORD_DIM)
        return base.replace(
            characters=base.characters if self.input != "words" else None,
            words=WordsConfig(size=words, dim=word_dim) if self.input != "characters" else None,
            transformer=TRANSFORMERS[self.size] if self.trunk == "transformer" else None,
            start="zero" if self.trunk == "transformer" else "warm" if self.layout == "stream" else "learned",
        )

    def settled(self, words: int, run: Run) -> ElmoPretraining:
        """With what was left open chosen for a text of so many words and a device."""
        layout = self.layout or ("lanes" if self.trunk == "lstm" else "sentences")
        usual = 20_480 if run.device.type == "cuda" else 2560
        fitting = max(256, words // (100 * run.ranks))  # a hundred steps an epoch, and no more words than fill lanes
        return self.replace(layout=layout, batch_words=self.batch_words or min(usual, fitting))


def pretrain(
    corpus: Corpus,
    out: str | Path,
    config: ElmoPretraining,
    run: Run,
    *,
    vectors: FindVectors | None = None,
    progress: Advance | None = None,
) -> Result:
    """Train an ELMo on a corpus; `out` holds the best model at any moment, and `out/run` what a restart needs.

    `vectors` is asked for vectors of the vocabulary's words, from which the word table starts and takes its size.
    """
    out = Path(out)
    if vectors is not None and config.input == "characters":
        raise UsageError("vectors start a word table, but input is 'characters'; set input to words or both")
    shards = Shards.build(corpus, out / "run", progress)
    train, held_out = _split(shards)
    found = vectors(shards.types[: config.vocabulary]) if vectors is not None else None
    if found is not None:
        config = config.replace(word_dim=found.dim)
    config = config.settled(shards.total, run)
    run.seed_all()
    model = build(shards, config, corpus, found)
    objective, batches = prepare(shards, train, model, config, run)
    dev = list(SentenceBatches(shards, held_out, words=DEV_WORDS).in_order())
    story = Story(
        title=out.resolve().name,
        model=describe(model),
        text=_told(corpus, shards, model, found),
        options=config.to_dict() | {"seed": run.seed},
        run=run,
        words_per_epoch=batches.words_per_epoch,
        held_out=len(held_out),
    )
    objective.card = story.unfinished()
    settings = {"pretraining": config.to_dict(), "corpus": shards.fingerprint}
    if found is not None:
        settings["vectors"] = found.fingerprint()
    result = Trainer(config.train, run).fit(objective, batches, dev, out, settings=settings)
    if run.first:
        write_finished(out, story, result)
    return result


def prepare(
    shards: Shards, sentences: range, model: Elmo, config: ElmoPretraining, run: Run
) -> tuple[ElmoObjective, SentenceBatches | LaneBatches]:
    """The objective around a model and the batches of some sentences: all that a training step needs."""
    config = config.settled(shards.total, run)
    assert config.batch_words is not None
    share: dict[str, Any] = {"seed": run.seed, "rank": run.rank, "ranks": run.ranks}
    options: dict[str, Any] = {"dropout": config.dropout, "negatives": config.sample}
    if config.layout == "sentences":
        objective = ElmoObjective(model, shards.types, **options)
        return objective, SentenceBatches(shards, sentences, words=config.batch_words, **share)
    lanes = max(1, config.batch_words // config.steps)
    objective = LaneObjective(model, shards.types, stream=config.layout == "stream", **options)
    return objective, LaneBatches(shards, sentences, lanes=lanes, steps=config.steps, **share)


def build(shards: Shards, config: ElmoPretraining, corpus: Corpus | None = None, vectors: WordVectors | None = None) -> Elmo:
    """A new model for a corpus: its vocabulary is the most frequent words, its word table starts from `vectors`."""
    vocabulary = Vocabulary(shards.types[: config.vocabulary])
    encoder = config.elmo(len(vocabulary))
    parts: dict[str, Any] = {"splitter": corpus.cutter.words if corpus else splitter("whitespace"), "vocabulary": vocabulary}
    if config.tied:
        model = Elmo(encoder, **parts)
        tied = model.tie_output()
        nn.init.normal_(tied.weight, std=tied.dim**-0.5)  # a table's usual 1.0 would make the first scores too large
    else:
        kind = AdaptiveSoftmax if config.output == "adaptive" else FullSoftmax
        model = Elmo(encoder, output=kind(len(vocabulary), encoder.output), **parts)
    if vectors is not None:
        fill_table(model, vectors)
    return model


def _split(shards: Shards) -> tuple[range, range]:
    """Sentences to train on, and sentences at the end to validate on."""
    held_out = min(HELD_OUT, max(1, len(shards) // 100))
    if len(shards) < 2:
        raise PolysemeError(f"the text has {len(shards)} sentences ({shards.total} words); training needs at least 2")
    return range(len(shards) - held_out), range(len(shards) - held_out, len(shards))


def _told(corpus: Corpus, shards: Shards, model: Elmo, vectors: WordVectors | None) -> dict[str, Any]:
    """What the card tells of the text."""
    assert model.vocabulary is not None
    return {
        "text": corpus.source.names,
        "words_of_text": shards.total,
        "sentences_of_text": len(shards),
        "distinct_words_of_text": len(shards.counts) - len(MARKS),
        "vectors_to_start_from": vectors.told(len(model.vocabulary)) if vectors is not None else None,
    }
