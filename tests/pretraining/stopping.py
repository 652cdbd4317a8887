"""A run that is asked to stop on the way, as by a scheduler's SIGTERM."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from polyseme.training.base import Learner


@contextlib.contextmanager
def stopped_after(steps: int, learner: type[Learner], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within this block the learner's loss number `steps` raises the signal."""
    plain, done = learner.loss, 0

    def loss(self: Learner, batch: Any) -> Any:
        nonlocal done
        done += 1
        if done == steps:
            signal.raise_signal(signal.SIGTERM)
        return plain(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(learner, "loss", loss)
        yield
