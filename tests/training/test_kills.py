"""SIGKILL at random moments: the run that was killed and started again ends as the one that was not."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.training import program
from tests.training.compare import assert_same_run


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_and_started_again(tmp_path: Path, processes: Any, kills: int) -> None:
    # a checkpoint every few milliseconds, so that some kills hit one half-written
    options = {"config": {"steps": 100 * kills, "checkpoint_every": 3, "eval_every": 40}}
    begun = time.monotonic()
    _train_to_the_end(processes, tmp_path / "whole", options)
    pause = (time.monotonic() - begun) / kills
    chance = random.Random(kills)
    reached = []
    for _ in range(kills):
        process = processes.Process(target=program.train, args=(tmp_path / "cut", options))
        process.start()
        _wait_until_it_trains(tmp_path / "cut", process)
        time.sleep(chance.uniform(0, pause))
        process.kill()
        process.join()
        reached.append(process.exitcode)
    assert reached.count(-9) >= kills // 2  # most were killed on the way, not after the end
    _train_to_the_end(processes, tmp_path / "cut", options)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    assert not [file.name for file in (tmp_path / "cut" / "run").iterdir() if file.name.startswith(".")]


def _train_to_the_end(processes: Any, out: Path, options: dict[str, Any]) -> None:
    """In a fresh process, as the killed ones are: what tests before this one left behind cannot change a bit."""
    process = processes.Process(target=_exit_with, args=(out, options))
    process.start()
    process.join()
    assert process.exitcode == 0


def _exit_with(out: Path, options: dict[str, Any]) -> None:
    sys.exit(program.train(out, options))


def _wait_until_it_trains(out: Path, process: Any) -> None:
    log = out / "run" / "log.jsonl"
    before = log.stat().st_mtime_ns if log.exists() else 0
    while process.is_alive() and (not log.exists() or log.stat().st_mtime_ns == before):
        time.sleep(0.001)
