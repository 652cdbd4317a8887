"""From a corpus to a trained ELMo: encode the text, build the model, hand both to the loop.

Everything that the result depends on is in `ElmoPretraining`, the corpus and the seed; calling it again with the same folder
goes on where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from torch import nn

from polyseme.base.config import ConfigError
from polyseme.base.errors import UsageError
from polyseme.base.progress import Advance
from polyseme.base.run import Run
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES, TRANSFORMERS, ElmoConfig, WordTableConfig
from polyseme.nn.output.adaptive import AdaptiveSoftmax
from polyseme.nn.output.full import FullSoftmax
from polyseme.pretraining.card import CardData, write_finished
from polyseme.pretraining.elmo_training import SKIP_NORM, ElmoTraining, prepare, split, text_facts, validation
from polyseme.pretraining.initial_vectors import initialize_word_table
from polyseme.pretraining.overrides import ArchitectureOverrides
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.word_vectors import VectorLookup, WordVectors
from polyseme.text.words import get_splitter
from polyseme.training.checkpoint import has_checkpoint
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig
from polyseme.training.trainer import Trainer, TrainOutput

WORD_DIM = 100


@dataclass(frozen=True, kw_only=True)
class ElmoPretraining(ElmoTraining):
    """What is taught, and how; batching None: packed, for Transformers sentences."""

    model_type: ClassVar[type[Elmo]] = Elmo
    """What comes of it."""

    size: Literal["tiny", "small", "medium", "original"] = "small"
    """Sizes of the parts; the last three as published."""
    overrides: ArchitectureOverrides = field(default_factory=ArchitectureOverrides)
    """ArchitectureOverrides of other sizes than those."""
    architecture: Literal["lstm", "transformer"] = "lstm"
    """What reads the words: two stacks of LSTMs, as published, or two causal Transformers of the same width."""
    input: Literal["characters", "words", "both"] = "characters"
    """Words by their characters, by a table, or both side by side."""
    word_dim: int | None = None
    """Size of a row of the word table; None: 100, or what the output needs where it is tied."""
    vocabulary_size: int = 50_000
    """Words that the model predicts, marks counted: the most frequent ones; all others are `<UNK>` at the output."""
    tied: bool = False
    """The output's weight is the word table itself; not with adaptive."""
    train: TrainConfig = field(default_factory=lambda: TrainConfig(epochs=10.0, optim=OptimConfig(skip_norm=SKIP_NORM)))
    """The budget and the loop."""

    def __post_init__(self) -> None:
        if self.vocabulary_size < 4:
            raise ConfigError(f"vocabulary_size is {self.vocabulary_size}; it counts <S>, </S> and <UNK>, so at least 4")
        problems = self.problems() + self._output_problems()
        if self.architecture == "transformer" and self.batching not in (None, "sentences"):
            problems.append(f"batching is {self.batching!r}, but Transformers carry no state: leave it out, or take sentences")
        if problems:
            raise ConfigError("; ".join(problems))

    def _output_problems(self) -> list[str]:
        problems, width = [], self._base.output
        if self.word_dim is not None and self.word_dim < 1:
            problems.append(f"word_dim is {self.word_dim}; it must be at least 1")
        if self.tied and self.output == "adaptive":
            problems.append("tied is true, but an adaptive output has no row for each word: set output to full or sampled")
        if self.tied and self.input == "characters":
            problems.append("tied is true, but input 'characters' has no word table to tie to: set input to words or both")
        elif self.tied and self.word_dim not in (None, width):
            problems.append(
                f"tied is true and word_dim is {self.word_dim}, but the output has {width}: "
                f"leave word_dim out, or set it to {width}"
            )
        return problems

    @property
    def _base(self) -> ElmoConfig:
        """The trunk and the characters."""
        transformer = TRANSFORMERS[self.size] if self.architecture == "transformer" else None
        return self.overrides.apply(SIZES[self.size].replace(transformer=transformer))

    def elmo(self, words: int) -> ElmoConfig:
        """The encoder's config for a vocabulary of so many words."""
        base = self._base
        word_dim = self.word_dim or (base.output if self.tied else WORD_DIM)
        return base.replace(
            characters=base.characters if self.input != "words" else None,
            words=WordTableConfig(size=words, dim=word_dim) if self.input != "characters" else None,
            start="zero" if self.architecture == "transformer" else "warm" if self.batching == "stream" else "learned",
        )

    def training_settings(self) -> dict[str, Any]:
        other = {} if self.model_type is Elmo else {"method": self.model_type.kind}
        return super().training_settings() | other

    def resolve_defaults(self, words: int, run: Run) -> ElmoPretraining:
        """With what was left open chosen for a text of so many words and a device."""
        batching = self.batching or ("packed" if self.architecture == "lstm" else "sentences")
        return self.replace(batching=batching, batch_words=self.default_batch_words(words, run))


def pretrain(
    corpus: Corpus,
    out: str | Path,
    config: ElmoPretraining,
    run: Run,
    *,
    vectors: VectorLookup | None = None,
    progress: Advance | None = None,
    accept_changes: bool = False,
) -> TrainOutput:
    """Train an ELMo on a corpus; `out` holds the best model at any moment, and `out/run` what a restart needs.

    A run goes on under the same settings only, unless `accept_changes`.
    `vectors` is asked for vectors of the vocabulary's words, from which the word table starts and takes its size.
    """
    out = Path(out)
    if vectors is not None and config.input == "characters":
        raise UsageError("vectors start a word table, but input is 'characters'; set input to words or both")
    shards = Shards.build(corpus, out / "run", progress, only_known=has_checkpoint(out))
    train, held_out = split(shards)
    found = vectors(shards.most_frequent(config.vocabulary_size)) if vectors is not None else None
    if found is not None:
        config = config.replace(word_dim=found.dim)
    config = config.resolve_defaults(shards.total, run)
    run.seed_all()
    model = build(shards, config, corpus, found)
    objective, batches = prepare(shards, train, model, config, run)
    dev = validation(shards, held_out)
    card = CardData(
        title=out.resolve().name,
        model=model.info(),
        text=text_facts(corpus, shards) | {"vectors_to_start_from": found and found.summary(len(model.vocabulary or ()))},
        options=config.to_dict() | {"seed": run.seed},
        run=run,
        words_per_epoch=batches.words_per_epoch,
        held_out=len(held_out),
    )
    objective.card = card.unfinished()
    settings = {"pretraining": config.training_settings(), "corpus": shards.fingerprint}
    if found is not None:
        settings["vectors"] = found.fingerprint()
    result = Trainer(config.train, run).fit(objective, batches, dev, out, settings=settings, accept_changes=accept_changes)
    if run.is_main_process:
        write_finished(out, card, result)
    return result


def build(shards: Shards, config: ElmoPretraining, corpus: Corpus | None = None, vectors: WordVectors | None = None) -> Elmo:
    """A new model for a corpus: its vocabulary is the most frequent words, its word table starts from `vectors`."""
    vocabulary = Vocabulary(shards.most_frequent(config.vocabulary_size))
    encoder = config.elmo(len(vocabulary)).replace(normalize_quotes=corpus is not None and corpus.normalise_quotes)
    parts: dict[str, Any] = {"splitter": corpus.splitter if corpus else get_splitter("whitespace"), "vocabulary": vocabulary}
    if config.tied:
        model = config.model_type(encoder, **parts)
        tied = model.tie_output()
        nn.init.normal_(tied.weight, std=tied.dim**-0.5)  # a table's usual 1.0 would make the first scores too large
    else:
        kind = AdaptiveSoftmax if config.output == "adaptive" else FullSoftmax
        model = config.model_type(encoder, output=kind(len(vocabulary), encoder.output), **parts)
    if vectors is not None:
        initialize_word_table(model, vectors)
    return model
