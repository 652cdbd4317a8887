"""Processes that die, fail or cannot start."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from polyseme.base.errors import PolysemeError
from polyseme.scale.engines.local import LocalEngine


@dataclass(frozen=True)
class Halve:
    """Halves even numbers; 7 kills its worker once, 9 always."""

    marks: Path
    starts: bool = True

    def start(self) -> Callable[[int], float]:
        if not self.starts:
            raise PolysemeError("no model here")
        return self

    def __call__(self, number: int) -> float:
        if number == 9 or (number == 7 and not (self.marks / "seven").exists()):
            (self.marks / "seven").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if number % 2 and number != 7:
            raise ValueError("odd")
        return number / 2


def test_deaths_and_errors(tmp_path: Path) -> None:
    outcomes = {each.number: each for each in LocalEngine(2).map(Halve(tmp_path), [2, 7, 3, 4, 9, 6])}
    assert {number: each.result for number, each in outcomes.items()} == {0: 1, 1: 3.5, 2: None, 3: 2, 4: None, 5: 3}
    assert outcomes[2].error == "ValueError: odd"
    assert "died 3 times, last with signal SIGKILL" in str(outcomes[4].error)


def test_a_worker_that_cannot_start(tmp_path: Path) -> None:
    with pytest.raises(PolysemeError, match="no model here"):
        list(LocalEngine(1).map(Halve(tmp_path, starts=False), [2]))
