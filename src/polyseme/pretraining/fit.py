"""From a corpus to a trained ELMo: encode the text, build the model, hand both to the loop.

Everything that the result depends on is in `ElmoPretraining`, the corpus and the seed; calling it again with the same folder
goes on where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from polyseme.base.card import write_card
from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import PolysemeError
from polyseme.base.progress import Advance
from polyseme.base.run import Run
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES, ElmoConfig, WordsConfig
from polyseme.encoders.folder import describe
from polyseme.nn.output import FullSoftmax
from polyseme.pretraining.elmo import ElmoObjective
from polyseme.text.corpus import Corpus
from polyseme.text.shards import Shards
from polyseme.text.stream import SentenceBatches
from polyseme.text.vocabulary import Vocabulary
from polyseme.training.config import TrainConfig
from polyseme.training.loop import Result, Trainer

HELD_OUT = 2000  # sentences kept for validation at most; a hundredth of the text where that is less


@dataclass(frozen=True, kw_only=True)
class ElmoPretraining(Config):
    """What is taught, and how."""

    size: Literal["tiny", "small", "medium", "original"] = "small"
    """Sizes of the parts; the last three as published."""
    input: Literal["characters", "words", "both"] = "characters"
    """Words by their characters, by a table, or both side by side."""
    word_dim: int = 100
    """Size of a row of the word table."""
    vocabulary: int = 50_000
    """Words that the model predicts, marks counted: the most frequent ones; all others are `<UNK>` at the output."""
    negatives: int | None = None
    """Train with a sampled softmax of so many words; None: the full distribution. Validation is always by the full one."""
    dropout: float = 0.1
    """On the input of each layer and on the top output."""
    batch_words: int = 2048
    """Words and marks of a batch, padding counted."""
    train: TrainConfig = field(default_factory=lambda: TrainConfig(epochs=10.0))
    """The budget and the loop."""

    def __post_init__(self) -> None:
        if self.vocabulary < 4:
            raise ConfigError(f"vocabulary is {self.vocabulary}; it counts <S>, </S> and <UNK>, so at least 4")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout is {self.dropout}; allowed: from 0 to below 1")

    def elmo(self, words: int) -> ElmoConfig:
        """The encoder's config for a vocabulary of so many words."""
        base = SIZES[self.size]
        return base.replace(
            characters=base.characters if self.input != "words" else None,
            words=WordsConfig(size=words, dim=self.word_dim) if self.input != "characters" else None,
            start="learned",
        )


def pretrain(corpus: Corpus, out: str | Path, config: ElmoPretraining, run: Run, *, progress: Advance | None = None) -> Result:
    """Train an ELMo on a corpus; `out` holds the best model at any moment, and `out/run` what a restart needs."""
    out = Path(out)
    shards = Shards.build(corpus, out / "run", progress)
    train, held_out = _split(shards)
    run.seed_all()
    model = build(shards, config, corpus)
    objective = ElmoObjective(model, shards.types, dropout=config.dropout, negatives=config.negatives)
    objective.card = write_card(out.name, describe(model) | {"words_in_corpus": shards.total})
    options: dict[str, Any] = {"words": config.batch_words, "seed": run.seed}
    batches = SentenceBatches(shards, train, rank=run.rank, ranks=run.ranks, **options)
    dev = list(SentenceBatches(shards, held_out, **options).in_order())
    settings = {"pretraining": config.to_dict(), "corpus": shards.fingerprint}
    return Trainer(config.train, run).fit(objective, batches, dev, out, settings=settings)


def build(shards: Shards, config: ElmoPretraining, corpus: Corpus) -> Elmo:
    """A new model for a corpus: its vocabulary is the most frequent words."""
    vocabulary = Vocabulary(shards.types[: config.vocabulary])
    encoder = config.elmo(len(vocabulary))
    output = FullSoftmax(len(vocabulary), encoder.lstm.output)
    return Elmo(encoder, splitter=corpus.cutter.words, vocabulary=vocabulary, output=output)


def _split(shards: Shards) -> tuple[range, range]:
    """Sentences to train on, and sentences at the end to validate on."""
    held_out = min(HELD_OUT, max(1, len(shards) // 100))
    if len(shards) < 2:
        raise PolysemeError(f"the text has {len(shards)} sentences ({shards.total} words); training needs at least 2")
    return range(len(shards) - held_out), range(len(shards) - held_out, len(shards))
