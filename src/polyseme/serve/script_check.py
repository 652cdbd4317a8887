"""What a client is told about texts that a model cannot read well, or that have no word: in the field `warning`, as the command
line says it.

A service that refused such texts would stop programs that send a few of them among others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from polyseme.encoders.script_check import refusal, sample, task_warnings, warnings
from polyseme.serve.models import ServedModel
from polyseme.text.empty_texts import PREDICTION, about_empty, has_text
from polyseme.text.script import ScriptProfile

if TYPE_CHECKING:
    from polyseme.tasks.base import Task

_ASCII = ScriptProfile(0, {"Latin": 1.0})
"""Of text without other letters, which need not be looked for: that would take a millisecond."""


def warned(model: ServedModel, texts: Sequence[str | list[str]], *, empty: str | None = None) -> dict[str, str]:
    """Return `{"warning": ...}` for an answer; nothing if the model reads the script of the texts.

    `empty`: what to say of texts without a word, if anything.
    """
    return _told([*_about_script(model, texts), *_about_empty(texts, empty)])


def task_warned(task: Task, texts: Sequence[str | list[str]]) -> dict[str, str]:
    """Return `{"warning": ...}` for the predictions of a task; nothing if its encoders read the script of the texts."""
    empty = None if task.multi_line else PREDICTION
    return _told([*_about_script_of_task(task, texts), *_about_empty(texts, empty)])


def _about_script(model: ServedModel, texts: Sequence[str | list[str]]) -> list[str]:
    seen = sample(texts)
    profile = ScriptProfile.of(seen) if not seen.isascii() or model.encoder.source == "zh" else _ASCII
    why = refusal(model.encoder, profile)
    return [why] if why else warnings(model.encoder, profile, seen)


def _about_script_of_task(task: Task, texts: Sequence[str | list[str]]) -> list[str]:
    seen, encoders = sample(texts), task.features.contextual
    if seen.isascii() and all(encoder.source != "zh" for encoder in encoders):
        return []
    profile = ScriptProfile.of(seen)
    return [why for encoder in encoders for why in task_warnings(encoder, profile, seen)]


def _about_empty(texts: Sequence[str | list[str]], what: str | None) -> list[str]:
    numbers = [] if what is None else [number for number, text in enumerate(texts) if not has_text(text)]
    return [about_empty(numbers, what, "item")] if numbers and what is not None else []


def _told(found: Iterable[str]) -> dict[str, str]:
    text = "; ".join(found)
    return {"warning": text} if text else {}
