"""Writes the folder of a trained task; `polyseme.tasks.folder` describes and reads it."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

import polyseme
from polyseme.base.files import atomic_folder, write_text
from polyseme.base.tensor_files import write_tensors
from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import known_fingerprint, model_fingerprint
from polyseme.encoders.folder import FORMAT, write_splitter
from polyseme.encoders.shipped import HASH, NAMES
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.features import Features
from polyseme.tasks.folder_check import HEAD
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import Splitter

WEIGHTS, LABELS, WORDS, SPLITTER_WORDS = "model.safetensors", "labels.txt", "words.txt", "splitter.txt"
COPIED = HASH
"""File in an encoder folder inside the task folder: the hash of the model that the encoder is a copy of."""
FINETUNED = "features.tuned."
"""Weights of fine-tuned encoders, which have folders of their own."""


@dataclass(frozen=True)
class TaskFiles:
    """What a task folder holds."""

    kind: str
    config: TaskConfig
    features: Features
    labels: list[str]
    splitter: Splitter
    weights: dict[str, Tensor]
    """The state dict of the task."""


def write_task_folder(task: TaskFiles, folder: Path) -> None:
    """Write a task folder atomically, task.json last; other files there (`run/`) stay."""
    frozen = task.config.features.mode == "frozen"
    loaded = task.features.words.loaded
    encoders = [
        _copied(encoder, f"encoder-{number}", folder)
        if frozen
        else {"folder": f"encoder-{number}", "sha256": model_fingerprint(encoder)}
        for number, encoder in enumerate(task.features.contextual, 1)
    ]
    head = {
        "polyseme_task": FORMAT,
        "polyseme_version": polyseme.__version__,
        "task": task.kind,
        "config": task.config.to_dict(),
        "splitter": task.splitter.name,
        "encoders": encoders,
        "vectors": None if loaded is None else _copied(loaded, "vectors", folder),
    }
    with atomic_folder(folder, last=HEAD) as part:
        for number, encoder in enumerate([] if frozen else task.features.contextual, 1):
            encoder.save_pretrained(part / f"encoder-{number}")
        weights = {name: value for name, value in task.weights.items() if not name.startswith(FINETUNED)}
        write_tensors(weights, part / WEIGHTS)
        write_text(part / LABELS, Vocabulary(task.labels).to_text())
        write_text(part / WORDS, Vocabulary(task.features.words.words).to_text())
        write_splitter(task.splitter, part / SPLITTER_WORDS)
        write_text(part / HEAD, json.dumps(head, indent=2, ensure_ascii=False) + "\n")


def _copied(encoder: Encoder, name: str, folder: Path) -> dict[str, Any]:
    """A frozen encoder: named where it comes with the package, else copied once."""
    content = known_fingerprint(encoder)
    if encoder.source in NAMES and content == _shipped_fingerprint(encoder.source):  # and not with another splitter
        return {"shipped": encoder.source, "sha256": content}
    note = folder / name / COPIED
    if not note.is_file() or note.read_text(encoding="ascii") != content:
        encoder.save_pretrained(folder / name)
        write_text(note, content)
    return {"folder": name, "sha256": content}


@functools.cache
def _shipped_fingerprint(name: str) -> str:
    return model_fingerprint(Encoder.from_pretrained(name))
