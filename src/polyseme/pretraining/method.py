"""What every pre-training method is: a config with `fit`, which trains a model on a corpus and returns a result.

Configs import no torch, so that the command line can read their settings for `--help`; what trains a model is a `Job`
(`polyseme.pretraining.job`) in another module, which is imported by `fit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from polyseme.base.config import Config, setting
from polyseme.base.errors import UsageError, arg
from polyseme.base.imports import import_object
from polyseme.training.config import TrainConfig

if TYPE_CHECKING:
    from polyseme.base.run import Run
    from polyseme.pretraining.result import PretrainingResult
    from polyseme.text.corpus import Corpus
    from polyseme.text.word_vectors import VectorLookup

SKIP_NORM = 10.0
"""Gradients longer than this are skipped: their norm is normally below 1, because the loss is a mean over predictions."""
MIN_VOCABULARY = 4
"""Begin, end and unknown token, and a word."""


@dataclass(frozen=True, kw_only=True)
class Method(Config):
    """A pre-training method and its settings."""

    name: ClassVar[str]
    """As in `polyseme.pretrain(name, ...)`."""
    job: ClassVar[str]
    """What trains the model: the `module:name` of a `Job`."""
    call_options: ClassVar[tuple[str, ...]] = ("seed", "device", "precision", "accept_changes")
    """Arguments of `polyseme.pretrain` besides the settings that apply to this method."""

    def fit(
        self,
        corpus: Corpus,
        run: Run,
        out: str | Path,
        *,
        vectors: VectorLookup | None = None,
        accept_changes: bool = False,
    ) -> PretrainingResult:
        """Train on a corpus and write the model to the folder `out`.

        `out/run` holds what a restart needs: the same call resumes an interrupted run. It refuses other settings than before,
        unless `accept_changes`. `vectors` initializes the word table of an ELMo.
        """
        for name, given in (("vectors", vectors is not None), ("accept_changes", accept_changes)):
            if given and name not in self.call_options:
                raise UsageError(f"{arg(name)} does not apply to {self.name}: leave it out")
        result: PretrainingResult = import_object(self.job)(self, corpus, run, Path(out), vectors, accept_changes).fit()
        return result

    @classmethod
    def implied_options(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Options that follow from those that a user gives: defaults that depend on other options."""
        return {}


@dataclass(frozen=True, kw_only=True)
class NeuralMethod(Method):
    """A method under the training loop, with a budget and an optimizer."""

    batch_setting: ClassVar[str | None] = None
    """The setting of the batch size, which may be smaller where little time is given."""
    smallest_batch: ClassVar[int] = 1
    """To which it is divided, at most."""

    dev_size: int | None = setting(
        None,
        "Size of the validation set, held out at the end of the text: sentences, or documents for BERT and GPT.",
        min=1,
        metavar="N",
        default_text="a hundredth, at most 2,000 sentences or 1,000 documents; of little text 50 sentences or a tenth",
        group="Training",
    )
    train: TrainConfig = setting(help="Budget, optimizer and training loop.", factory=lambda: TrainConfig(epochs=10.0))

    @property
    def default_learning_rate(self) -> float:
        """The learning rate where none is given."""
        return type(self)().train.optim.learning_rate

    def with_smaller_batch(self, divisor: int) -> Self:
        """Return a copy whose batch is divided by a number."""
        name = str(self.batch_setting)
        return self.replace(**{name: max(min(self.smallest_batch, getattr(self, name)), getattr(self, name) // divisor)})

    def resume_settings(self) -> dict[str, Any]:
        """The settings that must stay the same when a run is resumed, without those of the loop, which adds its own."""
        return {name: value for name, value in self.to_dict().items() if name != "train"}
