"""SIGKILL at random moments of a pre-training, from the first word encoded on: it ends as the one that was not killed."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

import polyseme
from tests.pretraining import program
from tests.training.compare import assert_same_run


def wait_for_checkpoints(process: Any, run: Path, count: int) -> None:
    """Until the process has written so many checkpoints, or is dead."""
    known = {path.name for path in run.glob("checkpoint-*.json")}
    new: set[str] = set()
    while len(new) < count and process.is_alive():
        new |= {path.name for path in run.glob("checkpoint-*.json")} - known
        time.sleep(0.001)


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_and_started_again(tmp_path: Path, processes: Any, kills: int) -> None:
    text = program.write_text(tmp_path / "text.txt", lines=5000)
    loop = {"steps": 40 * kills, "checkpoint_every": 3, "log_every": 5, "eval_every": 10}

    def begin(name: str) -> Any:
        process = processes.Process(target=program.train_and_exit, args=(text, tmp_path / name, loop))
        process.start()
        return process

    begun = time.monotonic()
    whole, encoding = begin("whole"), 0.0
    while whole.is_alive():
        if not encoding and any((tmp_path / "whole" / "run").glob("shards-*")):
            encoding = time.monotonic() - begun
        time.sleep(0.001)
    assert whole.exitcode == 0
    chance, codes = random.Random(kills), []
    for number in range(kills + 1):
        process = begin("cut")
        if number >= max(1, kills // 5):  # the first ones are killed while the text is encoded
            wait_for_checkpoints(process, tmp_path / "cut" / "run", chance.randint(1, 4))
        time.sleep(chance.uniform(0, encoding if number < max(1, kills // 5) else 0.02))
        if number == kills:
            process.terminate()  # one is asked to stop, and does so after its step
        else:
            process.kill()
        process.join()
        codes.append(process.exitcode)
    assert codes[:-1] == [-9] * kills and codes[-1] == 3  # killed on the way, not after the end; and stopped on the way
    last = begin("cut")
    last.join()
    assert last.exitcode == 0
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    for name in ("model.safetensors", "output.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes(), name
    left = [path for path in (tmp_path / "cut").rglob("*") if path.name.startswith(".")]
    assert not left
    polyseme.load(tmp_path / "cut").embed(["et a"])
