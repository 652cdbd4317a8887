"""The card of a pre-trained model: what it was taught, by whom it was computed, and how well it predicts.

While the run goes on, the card of the best model so far says that it is not finished; the last one tells the result. Names
of files are told without their folders: a card is published, and a home folder is nobody's business.
"""

from __future__ import annotations

import datetime
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from polyseme.base.card import write_card
from polyseme.base.config import Config
from polyseme.base.files import read_bytes, write_text
from polyseme.base.formatting import format_duration
from polyseme.base.run import Run
from polyseme.pretraining.cost import Cost, write_cost
from polyseme.text.files.parallel_map import cpu_count
from polyseme.training.trainer import TrainOutput

UNFINISHED = "**The training of this model is not finished:** it is the best one so far."


@dataclass(frozen=True, kw_only=True)
class CardData:
    """What there is to tell of a run before its result."""

    title: str
    model: Mapping[str, Any]
    """What the model is (`encoders.folder.describe`)."""
    text: Mapping[str, Any]
    """What it is taught: sources, words, sentences."""
    options: Mapping[str, Any]
    """How it is taught: the config as a nested dictionary."""
    run: Run
    words_per_epoch: int
    held_out: int
    """Sentences of the validation."""
    before: Mapping[str, float] | None = None
    """The perplexities from which it began, where it began from a model."""
    licence: str | None = None
    """That of the model from which it began."""

    def unfinished(self) -> str:
        """The card while the run goes on."""
        return write_card(_cell(self.title), self._facts({}), text=UNFINISHED, licence=self.licence)

    def finished(self, result: TrainOutput) -> str:
        """The card of the run's end."""
        best = f"{result.best_step:,} of {result.steps:,}" if result.best_step is not None else None
        facts = {
            "steps": result.steps,
            "best_model_after_step": best,
            "words_seen": result.words,
            "epochs": f"{result.words / max(self.words_per_epoch, 1):.4g}",
            "ended_by": result.ended,
            "training_time": format_duration(result.seconds),
            "machine": machine(self.run),
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        }
        text = ""
        if "perplexity" in result.scores:
            text = (
                f"Perplexity {format_perplexity(result.scores)}, by the full softmax over the vocabulary, on "
                f"{self.held_out:,} held-out sentences: the end of the text, which training never saw."
            )
            if self.before is not None:
                text += f" Before training it was {format_perplexity(self.before)}, on the same sentences and vocabulary."
        return write_card(_cell(self.title), self._facts(facts), text=text, licence=self.licence)

    def cost(self, result: TrainOutput) -> Cost:
        """What the run cost."""
        return Cost(
            method="adapt" if "adapted_from" in self.text else str(self.model.get("encoder", "")),
            seconds=round(result.seconds, 3),
            words=result.words,
            text_words=int(self.text.get("words_of_text", 0)),
            parameters=int(self.model.get("parameters", 0)),
            scores=result.scores,
            device=self.run.device.type,
        )

    def _facts(self, result: Mapping[str, Any]) -> dict[str, str]:
        facts = {**self.model, **self.text, "options": _listed(self.options), **result}
        return {name: _cell(value) for name, value in facts.items() if value is not None}


def format_card(title: str, facts: Mapping[str, Any]) -> str:
    """The card of a model that has no CardData: named values in a table, nested ones on one line, without those that are None.

    >>> "| dim | 1,000 |" in format_card("m", {"dim": 1000, "loss": None})
    True
    """
    cells = {name: _listed(value) if isinstance(value, Mapping) else value for name, value in facts.items()}
    return write_card(_cell(title), {name: _cell(value) for name, value in cells.items() if value is not None})


def write_finished(out: Path, card: CardData, result: TrainOutput) -> None:
    """Put the finished card into the model's folder, and what the run cost.

    A card that is finished already, and perhaps edited, stays as it is.
    """
    if result.ended is None:
        return
    write_cost(out, card.cost(result))
    path = out / "README.md"
    if path.exists() and UNFINISHED not in read_bytes(path).decode("utf-8", "replace"):
        return
    write_text(path, card.finished(result))


def format_perplexity(scores: Mapping[str, float]) -> str:
    """The numbers of an evaluation as people read them.

    >>> format_perplexity({"perplexity": 20.0, "forward": 16.0, "backward": 25.0})
    '20.00 (forward 16.00, backward 25.00)'
    """
    each = ", ".join(f"{name} {scores[name]:,.2f}" for name in ("forward", "backward") if name in scores)
    return f"{scores['perplexity']:,.2f}" + (f" ({each})" if each else "")


def machine(run: Run) -> str:
    """What computes, without the machine's own name."""
    if run.device.type == "cuda":
        name = torch.cuda.get_device_name(run.device)
    else:
        name = f"{_processor()}, {cpu_count()} cores" + (f", {run.device.type}" if run.device.type != "cpu" else "")
    processes = "1 process" if run.world_size == 1 else f"{run.world_size} processes"
    return f"{name}; {run.precision}, {processes}, PyTorch {torch.__version__}"


def _processor() -> str:
    """The model of the processor; Linux tells it for x86 in a file, others at least tell their kind."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(filter(None, names), "") or platform.processor() or platform.machine()


def _listed(values: Mapping[str, Any], above: str = "") -> str:
    """Nested options on one line; those without a value are left out."""
    found = []
    for name, value in values.items():
        if isinstance(value, Mapping | Config):
            found.append(_listed(value if isinstance(value, Mapping) else value.to_dict(), f"{above}{name}."))
        elif value is not None:
            found.append(f"{above}{name}={value}")
    return ", ".join(filter(None, found))


def _cell(value: Any) -> str:
    """A value as it may stand in a table of Markdown."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    return " ".join(str(value).split()).replace("|", "\\|")
