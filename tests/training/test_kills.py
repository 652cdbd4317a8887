"""SIGKILL at chosen moments: the run that was killed and started again ends as the one that was not."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from tests.training import program
from tests.training.compare import assert_same_run

OPTIONS = {"config": {"steps": 60, "checkpoint_every": 3, "eval_every": 10}}
KILLS = [("loss", 2), ("tensors", 4), ("head", 3), ("loss", 7), ("tensors", 1), ("head", 1), ("loss", 12)]
"""Before a loss, in the middle of the tensors of a checkpoint, between its two files."""


def start(processes: Any, out: Path, options: dict[str, Any]) -> int:
    process = processes.Process(target=program.train_and_exit, args=(out, options))
    process.start()
    process.join()
    return int(process.exitcode)


def test_killed_and_started_again(tmp_path: Path, processes: Any) -> None:
    assert start(processes, tmp_path / "whole", OPTIONS) == 0
    for moment, number in KILLS:
        killed = {**OPTIONS, "interrupt": ("kill", moment, number)}
        assert start(processes, tmp_path / "cut", killed) == -signal.SIGKILL
    assert start(processes, tmp_path / "cut", OPTIONS) == 0
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    assert not [file.name for file in (tmp_path / "cut" / "run").iterdir() if file.name.startswith(".")]
