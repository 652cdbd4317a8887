"""Options of the verbs that train, and what they mean together."""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.base.errors import UsageError
from polyseme.cli import show
from polyseme.cli.options import Json

if TYPE_CHECKING:
    from polyseme.base.run import Run
    from polyseme.pretraining.method import Method
    from polyseme.pretraining.result import PretrainingResult
    from polyseme.text.corpus import Corpus
    from polyseme.text.word_vectors import VectorLookup
    from polyseme.training.config import TrainConfig
    from polyseme.training.optim_config import OptimConfig


class Layout(StrEnum):
    """How sentences are laid into batches."""

    packed = "packed"
    stream = "stream"
    sentences = "sentences"


class Precision(StrEnum):
    """With which numbers a model is trained."""

    fp32 = "fp32"
    bf16 = "bf16"


CorpusOption = Annotated[
    list[str],
    typer.Option("--corpus", "-c", metavar="SOURCE", help="A text file, folder or glob (may be given again), or - for stdin."),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="Folder for the model, or of a run to go on with.")]
Epochs = Annotated[
    float | None,
    typer.Option(
        "--epochs",
        min=0,
        help="Passes over the text. Without any budget: 10; in pretrain ulmfit 50, in adapt 3.",
        rich_help_panel="Budget",
    ),
]
Minutes = Annotated[float | None, typer.Option("--minutes", min=0, help="Minutes of training.", rich_help_panel="Budget")]
Words = Annotated[int | None, typer.Option("--words", metavar="N", min=1, help="Words to train on.", rich_help_panel="Budget")]
Negatives = Annotated[
    int | None,
    typer.Option("--negatives", min=1, metavar="N", help="Words of the sample; given, the output is sampled."),
]
Dropout = Annotated[float, typer.Option("--dropout", help="Share of numbers dropped in training.", rich_help_panel="Training")]
Rate = Annotated[float, typer.Option("--learning-rate", help="Highest learning rate.", rich_help_panel="Training")]
LayoutOption = Annotated[
    Layout | None,
    typer.Option(
        "--layout",
        help="Sentences end to end in lanes, each from the model's start state; as an endless stream, as published; or whole.",
        rich_help_panel="Training",
    ),
]
BatchWords = Annotated[
    int | None,
    typer.Option(
        "--batch-words",
        min=8,
        help="Words of a batch; not given: 2,560, on a GPU 20,480, less for little text.",
        rich_help_panel="Training",
    ),
]
LaneWords = Annotated[
    int,
    typer.Option(
        "--lane-words", min=1, help="Words of a lane in a batch; gradients reach so far back.", rich_help_panel="Training"
    ),
]
ClipNorm = Annotated[
    float | None,
    typer.Option(
        "--clip-norm",
        help="Longer gradients are shortened to this length. Not given: 1; for ulmfit 0.25.",
        rich_help_panel="Training",
    ),
]
Warmup = Annotated[
    float | None,
    typer.Option(
        "--warmup",
        metavar="SHARE",
        help="Of the run, in which the rate climbs from zero: 0 to below 1. Not given: 0.02; for bert, gpt and ulmfit 0.1.",
        rich_help_panel="Training",
    ),
]
Patience = Annotated[
    int | None,
    typer.Option("--patience", min=1, help="Stop after so many validations without a gain.", rich_help_panel="Training"),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        help="The same seed gives the same model; on a GPU nearly, for its sums come in no fixed order.",
        rich_help_panel="Training",
    ),
]
Device = Annotated[
    str | None,
    typer.Option("--device", help="cpu or cuda; a GPU is taken where there is one.", rich_help_panel="Training"),
]
PrecisionOption = Annotated[
    Precision | None,
    typer.Option("--precision", help="Numbers to compute with; not given: bf16 on a GPU.", rich_help_panel="Training"),
]
AcceptChanges = Annotated[
    bool,
    typer.Option("--accept-changes", help="Go on with a run under other settings than before.", rich_help_panel="Training"),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How long a model is trained, and by what."""

    epochs: Epochs = None
    minutes: Minutes = None
    words: Words = None
    warmup: Warmup = None
    clip_norm: ClipNorm = None
    patience: Patience = None
    seed: Seed = 0
    device: Device = None
    precision: PrecisionOption = None
    accept_changes: AcceptChanges = False
    json: Json = False

    def loop(self, optim: OptimConfig, *, usual: float = 10.0) -> TrainConfig:
        """The settings of the loop; where no budget is given, it is the `usual` number of epochs."""
        from polyseme.training.config import TrainConfig

        epochs, minutes, words = self.epochs, self.minutes, self.words
        if sum(value is not None for value in (epochs, minutes, words)) > 1:
            raise UsageError("give one budget: --epochs, --minutes or --words")
        if epochs is None and minutes is None and words is None:
            epochs = usual
        given = {"warmup": self.warmup, "clip_norm": self.clip_norm}
        optim = optim.replace(**{name: value for name, value in given.items() if value is not None})
        return TrainConfig(epochs=epochs, minutes=minutes, words=words, patience=self.patience, optim=optim)

    def run(self) -> Run:
        """Seed, device and numbers to compute with."""
        from polyseme.base.run import Run

        precision = self.precision.value if self.precision else None
        return Run.from_environment(seed=self.seed, device=self.device, precision=precision)


def large_pages() -> None:
    """Ask the system for memory in large pages, before PyTorch is loaded: on a CPU small ones cost a fifth of a step."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def pretrain(
    method: Method, text: Corpus, run: Run, out: Path, training: TrainingOptions, vectors: VectorLookup | None = None
) -> None:
    """Pre-train a model and print the result."""
    logging.basicConfig(format="polyseme: %(message)s")
    report(method.fit(text, run, out, vectors=vectors, accept_changes=training.accept_changes), run, training.json)


def report(result: PretrainingResult, run: Run, json: bool) -> None:
    """Print a result, and exit as the shell expects of a run that was interrupted by a signal."""
    if not run.is_main_process:
        return  # under torchrun one process speaks
    if json:
        show.as_json(result.to_dict())
    else:
        show.line(str(result))
    leave(result)


def leave(result: Any) -> None:
    """A run that was interrupted ends as the shell expects of a signal: 130 for Ctrl-C, 143 for a kill."""
    if (stopped_by := getattr(result, "stopped_by", None)) is not None:
        raise typer.Exit(128 + signal.Signals[stopped_by])


def sampling(output: StrEnum | None, negatives: int | None) -> dict[str, Any]:
    """The output's kind and sample: to say how large a sample is means to take one."""
    if negatives is None:
        return {"output": output.value} if output else {}
    if output is not None and output.value != "sampled":
        raise UsageError(f"--negatives is for a sampled output; got --output {output}: leave one of them out")
    return {"output": "sampled", "negatives": negatives}
