"""What a client is told about texts that a model cannot read well: as the command line says it, in the field `warning`.

A service that refused such texts would stop programs that send a few of them among others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from polyseme.encoders.script_check import refusal, sample, task_warnings, warnings
from polyseme.serve.models import ServedModel
from polyseme.text.script import ScriptProfile

if TYPE_CHECKING:
    from polyseme.tasks.base import Task


def warned(model: ServedModel, texts: Sequence[str | list[str]]) -> dict[str, str]:
    """Return `{"warning": ...}` for an answer; nothing if the model reads the script of the texts."""
    seen = sample(texts)
    if seen.isascii() and model.encoder.source != "zh":
        return {}
    profile = ScriptProfile.of(seen)
    why = refusal(model.encoder, profile)
    found = [why] if why else warnings(model.encoder, profile, seen)
    return {"warning": "; ".join(found)} if found else {}


def task_warned(task: Task, texts: Sequence[str]) -> dict[str, str]:
    """Return `{"warning": ...}` for the predictions of a task; nothing if its encoders read the script of the texts."""
    seen, encoders = sample(texts), task.features.contextual
    if seen.isascii() and all(encoder.source != "zh" for encoder in encoders):
        return {}
    profile = ScriptProfile.of(seen)
    found = [why for encoder in encoders for why in task_warnings(encoder, profile, seen)]
    return {"warning": "; ".join(found)} if found else {}
