"""A model by name and hash: what estimators and pipeline components keep in place of its weights.

Pickles and saved pipelines stay small, and hold nothing that is already on disk. The hash is of all that decides the vectors
(`model_fingerprint`), so another model of the same name is refused instead of giving other vectors.

Models that are loaded by name are shared: ten clones of an estimator, as a grid search makes them, hold one copy of the
weights. So do not train a model that you get from here.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

import torch

from polyseme.api.models import load
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import known_fingerprint
from polyseme.encoders.shipped import resolve_path

AnyModel = str | Path | Encoder
_KEPT = 4  # models that stay loaded
_process = os.getpid()


@dataclass(frozen=True)
class ModelReference:
    """The name and the hash of a model.

    >>> reference = ModelReference.of("en")
    >>> reference.name, len(reference.sha256)
    ('en', 64)
    """

    name: str
    """What `polyseme.load` takes: a shipped name, a path or a Hub id."""
    sha256: str
    """`model_fingerprint` of the model."""

    @classmethod
    def of(cls, model: AnyModel) -> ModelReference:
        """Return the reference of a model, or of a name."""
        if not isinstance(model, Encoder):
            return cls(str(model), known_fingerprint(shared_model(model)))
        if model.source is None:
            raise UsageError(
                "this model has no name to keep in place of its weights: save it with save_pretrained, and give that folder"
            )
        return cls(model.source, known_fingerprint(model))

    def load(self, device: str | None = None) -> Encoder:
        """Load the model; another one of that name is an error."""
        return self.check(shared_model(self.name, device))

    def check(self, model: Encoder) -> Encoder:
        """Return the model if it is the one that is meant."""
        if known_fingerprint(model) != self.sha256:
            raise PolysemeError(
                f"{self.name} is not the model that was used before (sha256 {self.sha256[:12]}...): restore that model; if you "
                "trained it further, save it with save_pretrained and give that folder"
            )
        return model


def one_thread_after_fork() -> None:
    """Use one thread in a forked process: it has the state of its parent's OpenMP, and none of its threads."""
    global _process
    if os.getpid() != _process:
        torch.set_num_threads(1)
        _process = os.getpid()


def shared_model(model: AnyModel, device: str | None = None) -> Encoder:
    """Return a loaded model as it is, and a name as a model that everyone who asks for the name shares."""
    if isinstance(model, Encoder):
        return model
    name = str(model)
    return _load(name, device, _changed(resolve_path(name)))


@functools.lru_cache(maxsize=_KEPT)
def _load(name: str, device: str | None, changed: float) -> Encoder:
    return load(name, device=device)


def _changed(path: Path) -> float:
    """When a file, or the last written file of a folder, was written."""
    files = [each for each in path.iterdir() if each.is_file()] if path.is_dir() else [path]
    return max((each.stat().st_mtime for each in files if each.exists()), default=0.0)
