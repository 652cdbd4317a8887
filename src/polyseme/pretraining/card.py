"""The card of a pre-trained model: what it was trained on, how, on which machine, and how well it predicts.

During the training, the card of the best model so far says that it is not finished. File names come without their folders,
because cards get published.
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
from polyseme.base.display import format_duration
from polyseme.base.files import read_bytes, write_text
from polyseme.base.run import Run
from polyseme.pretraining.result import OLD_VOCABULARY, format_perplexity
from polyseme.text.files.parallel_map import cpu_count
from polyseme.training.trainer import TrainOutput

UNFINISHED = "**The training of this model is not finished:** it is the best one so far."


@dataclass(frozen=True, kw_only=True)
class CardData:
    """What the card of a model says, but for the result of its training."""

    title: str
    model: Mapping[str, Any]
    """What the model is (`Encoder.info`)."""
    text: Mapping[str, Any]
    """What it is trained on: sources, words, sentences."""
    options: Mapping[str, Any]
    """How it is trained: the config as a nested dictionary."""
    run: Run
    words_per_epoch: int
    held_out: int
    """Sentences (or documents) for validation."""
    repeated: int = 0
    """How many of them are in the training text too."""
    unit: str = "sentence"
    """Or document."""
    before: Mapping[str, float] | None = None
    """For an adaptation: the scores before training."""
    licence: str | None = None
    """For an adaptation: the licence of the model that it started from."""

    def unfinished(self) -> str:
        """Return the card for the time of the training."""
        return write_card(_cell(self.title), self._facts({}), text=UNFINISHED, licence=self.licence)

    def finished(self, result: TrainOutput, verdict: str = "") -> str:
        """Return the card for the end of the training; `verdict`: whether the model is usable."""
        facts: dict[str, Any] = {
            "steps": result.steps,
            "best_model_after_step": f"{result.best_step:,} of {result.steps:,}" if result.best_step is not None else None,
            "words_seen": result.words,
            "epochs": f"{result.words / max(self.words_per_epoch, 1):.4g}",
            "ended_by": result.ended,
            **run_facts(self.run, result.seconds),
        }
        text = ""
        if "perplexity" in result.scores:
            text = (
                f"Perplexity {format_perplexity(result.scores)}, by the full softmax over the vocabulary, on "
                f"{self.held_out:,} held-out {self.unit}s: the end of the text, which was not trained on."
            )
            if self.repeated:
                text += f" {self.repeated:,} of them are in the training text too, word for word."
            if verdict:
                text += f" Beside counted models of the same text: {verdict}."
            if self.before is not None:
                text += f" Before training it was {format_perplexity(self.before)}, on the same sentences and vocabulary."
                if OLD_VOCABULARY in self.before and OLD_VOCABULARY in result.scores:
                    text += (
                        f" With the added words counted as unknown, it is {result.scores[OLD_VOCABULARY]:,.2f}; that of the "
                        f"model it was adapted from is {self.before[OLD_VOCABULARY]:,.2f}."
                    )
        else:
            facts |= {f"held_out_{self.unit}s": self.held_out}
            facts |= {f"held_out_{name}": f"{value:.4f}" for name, value in result.scores.items()}
        return write_card(_cell(self.title), self._facts(facts), text=text, licence=self.licence)

    def _facts(self, result: Mapping[str, Any]) -> dict[str, str]:
        return _cells({**self.model, **self.text, "options": self.options, **result})


def format_card(title: str, facts: Mapping[str, Any]) -> str:
    """Return a card with a table of named values: nested ones on one line, without those that are None.

    >>> "| dim | 1,000 |" in format_card("m", {"dim": 1000, "loss": None})
    True
    """
    return write_card(_cell(title), _cells(facts))


def run_facts(run: Run, seconds: float) -> dict[str, str]:
    """Return what a card says about how, where and when a model was trained."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"training_time": format_duration(seconds), "machine": machine(run), "date": date}


def write_finished(out: Path, card: CardData, result: TrainOutput, verdict: str = "") -> None:
    """Write the finished card into the model's folder; one that is finished already, and perhaps edited, is kept."""
    if result.ended is None:
        return
    path = out / "README.md"
    if path.exists() and UNFINISHED not in read_bytes(path).decode("utf-8", "replace"):
        return
    write_text(path, card.finished(result, verdict))


def machine(run: Run) -> str:
    """Return what computes, without the host name."""
    if run.device.type == "cuda":
        name = torch.cuda.get_device_name(run.device)
    else:
        name = f"{_processor()}, {cpu_count()} cores" + (f", {run.device.type}" if run.device.type != "cpu" else "")
    processes = "1 process" if run.world_size == 1 else f"{run.world_size} processes"
    return f"{name}; {run.precision}, {processes}, PyTorch {torch.__version__}"


def _processor() -> str:
    """Return the model of the processor; Linux has it in a file for x86, other systems say at least its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(filter(None, names), "") or platform.processor() or platform.machine()


def _cells(facts: Mapping[str, Any]) -> dict[str, str]:
    cells = {name: _listed(value) if isinstance(value, Mapping) else value for name, value in facts.items()}
    return {name: _cell(value) for name, value in cells.items() if value is not None}


def _listed(values: Mapping[str, Any], above: str = "") -> str:
    """Return nested options on one line, without those that are None."""
    options = []
    for name, value in values.items():
        if isinstance(value, Mapping | Config):
            options.append(_listed(value if isinstance(value, Mapping) else value.to_dict(), f"{above}{name}."))
        elif value is not None:
            options.append(f"{above}{name}={value}")
    return ", ".join(filter(None, options))


def _cell(value: Any) -> str:
    """Return a value as a cell of a Markdown table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    return " ".join(str(value).split()).replace("|", "\\|")
