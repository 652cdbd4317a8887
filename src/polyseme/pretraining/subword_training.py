"""What the training of a BERT and of a GPT share: pieces learned from the text, documents as pieces, a new network, the loop.

The networks are those of the transformers library (extra `transformers`); batches, objectives and the loop are ours. Calling
`fit` again with the same folder goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import PolysemeError
from polyseme.base.progress import Advance
from polyseme.base.run import Run
from polyseme.encoders.subword_library import library
from polyseme.encoders.subword_model import SubwordModel
from polyseme.pretraining.card import CardData, write_finished
from polyseme.pretraining.subword_tokenizer import train_tokenizer
from polyseme.text.corpus import Corpus
from polyseme.text.shards.subwords import SubwordShards
from polyseme.text.subwords import SubwordTokenizer
from polyseme.text.words import Splitter
from polyseme.training.base import Batches, Learner
from polyseme.training.checkpoint import has_checkpoint
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig
from polyseme.training.trainer import Trainer, TrainOutput

_log = logging.getLogger(__name__)

SIZES = {"tiny": (2, 128), "mini": (4, 256), "small": (4, 512)}
"""Layers and width, as Turc et al. 2019 have them for BERT; a head for each 64 numbers."""
HELD_OUT = 1000  # documents kept for validation at most; a hundredth of the text where that is less
BATCH_CPU, BATCH_CUDA = 2048, 32768  # pieces of a batch


def default_optim(learning_rate: float = 5e-4) -> OptimConfig:
    """AdamW with a long warm-up: without it BERT learns the frequencies of pieces and stays there."""
    return OptimConfig(learning_rate=learning_rate, warmup=0.1)


class SubwordObjective(Learner):
    """An objective around a model, which it keeps in a folder."""

    score_name = "loss"

    def __init__(self, model: SubwordModel) -> None:
        super().__init__()
        self.model = model
        self.card: str | None = None

    def save(self, folder: Path) -> None:
        self.model.save_pretrained(folder, card=self.card)


class PieceBatches(Batches, Protocol):
    """Batches of documents, for training and for evaluation."""

    def once(self) -> list[Any]:
        """All documents once, always the same."""


@dataclass(frozen=True, kw_only=True)
class SubwordPretraining(Config):
    """What is taught, and how."""

    least: ClassVar[int] = 10
    """Pieces, for the reason that `always` says."""
    always: ClassVar[str] = "some are marks"
    size: Literal["tiny", "mini", "small"] = "tiny"
    """2 layers of 128, 4 of 256, 4 of 512."""
    vocabulary_size: int = 8000
    """Pieces of the vocabulary, marks counted: fewer where the text gives no more, and more where its characters, which are
    always among a BERT's pieces, are more."""
    max_length: int = 128
    """Pieces that are read together, marks counted: the positions of the network."""
    dropout: float = 0.1
    """Share of numbers dropped in training."""
    batch_subwords: int | None = None
    """Pieces of a batch, padding counted; None: 2,048, on a GPU 32,768."""
    train: TrainConfig = field(default_factory=lambda: TrainConfig(epochs=10.0, optim=default_optim()))
    """The budget and the loop."""

    def __post_init__(self) -> None:
        problems = []
        if self.vocabulary_size < self.least:
            problems.append(f"vocabulary_size is {self.vocabulary_size}; {self.always}, so at least {self.least}")
        if self.max_length < 8:
            problems.append(f"max_length is {self.max_length}; some are marks, so at least 8")
        if not 0 <= self.dropout < 1:
            problems.append(f"dropout is {self.dropout}; allowed: from 0 to below 1")
        if self.batch_subwords is not None and self.batch_subwords < 1:
            problems.append(f"batch_subwords is {self.batch_subwords}; it must be at least 1")
        if problems:
            raise ConfigError("; ".join(problems))

    # ---- what each system says

    def learn(self, sentences: Iterable[Sequence[str]]) -> Any:
        """A tokenizer from sentences of words."""
        raise NotImplementedError

    def tokenizer_settings(self) -> dict[str, Any]:
        """What decides the tokenizer besides the text."""
        raise NotImplementedError

    def build(self, tokenizer: Any, splitter: Splitter) -> SubwordModel:
        """A new model."""
        raise NotImplementedError

    def objective(self, model: Any) -> SubwordObjective:
        """What it learns."""
        raise NotImplementedError

    def batches(
        self, shards: SubwordShards, documents: range, pieces: SubwordTokenizer, size: int, run: Run | None
    ) -> PieceBatches:
        """What it learns from; without a run the batches of evaluation."""
        raise NotImplementedError

    # ---- what they share

    def fit(
        self, corpus: Corpus, run: Run, out: str | Path, *, progress: Advance | None = None, accept_changes: bool = False
    ) -> TrainOutput:
        """Train on a corpus, whose lines are documents; `out` holds the best model at any moment, `out/run` the rest."""
        out = Path(out)
        library()  # a missing extra is told now
        begun = has_checkpoint(out)  # or the model of another run is told
        tokenizer = train_tokenizer(corpus, out / "run", self.tokenizer_settings(), self.learn)
        tokenizer.model_max_length = self.max_length
        if run.is_main_process and not begun and len(tokenizer) > self.vocabulary_size:
            message = "%d subwords: the characters of the text alone are more than vocabulary_size (%d)"
            _log.warning(message, len(tokenizer), self.vocabulary_size)
        shards = SubwordShards.build(corpus, SubwordTokenizer(tokenizer), out / "run", progress)
        train, held_out = _split(shards)
        run.seed_all()
        model = self.build(tokenizer, corpus.splitter)
        size = self.batch_subwords or (BATCH_CUDA if run.device.type == "cuda" else BATCH_CPU)
        batches = self.batches(shards, train, model.subwords, size, run)
        dev = self.batches(shards, held_out, model.subwords, size, None).once()
        text = {"documents_of_text": len(shards), "words_of_text": shards.words(range(len(shards)))}
        card = CardData(
            title=out.resolve().name,
            model=model.info(),
            text={"text": corpus.source.names, **text},
            options=self.to_dict() | {"seed": run.seed},
            run=run,
            words_per_epoch=batches.words_per_epoch,
            held_out=len(held_out),
        )
        objective = self.objective(model)
        objective.card = card.unfinished()
        taught = {name: value for name, value in self.to_dict().items() if name != "train"} | {"batch_subwords": size}
        settings = {"pretraining": taught, "corpus": corpus.fingerprint(), "vocabulary": model.subwords.fingerprint}
        result = Trainer(self.train, run).fit(objective, batches, dev, out, settings=settings, accept_changes=accept_changes)
        if run.is_main_process:
            told = {f"held_out_{name}": f"{value:.4f}" for name, value in result.scores.items()}
            card = dataclasses.replace(card, text={**card.text, "held_out_documents": len(held_out), **told})
            write_finished(out, card, result)
        return result


def _split(shards: SubwordShards) -> tuple[range, range]:
    """Documents to train on, and documents at the end to validate on."""
    if len(shards) < 2:
        raise PolysemeError(f"the text has {len(shards)} document; a line is one, and training needs at least 2")
    held_out = min(HELD_OUT, max(1, len(shards) // 100))
    return range(len(shards) - held_out), range(len(shards) - held_out, len(shards))
