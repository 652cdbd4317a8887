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


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_and_started_again(tmp_path: Path, processes: Any, kills: int) -> None:
    text = program.write_text(tmp_path / "text.txt", lines=5000)
    loop = {"steps": 20 * kills, "checkpoint_every": 3, "log_every": 5, "eval_every": 10}

    def begin(name: str) -> Any:
        process = processes.Process(target=program.train_and_exit, args=(text, tmp_path / name, loop))
        process.start()
        return process

    begun = time.monotonic()
    whole, took = begin("whole"), {}
    while whole.is_alive():
        for what, pattern in {"encoding": "shards-*", "training": "checkpoint-00000000.json"}.items():
            if what not in took and any((tmp_path / "whole" / "run").glob(pattern)):
                took[what] = time.monotonic() - begun
        time.sleep(0.001)
    assert whole.exitcode == 0
    seconds = time.monotonic() - begun - took["training"]
    chance, codes = random.Random(kills), []
    for number in range(kills + 1):
        process = begin("cut")
        if number < max(1, kills // 5):
            time.sleep(chance.uniform(0, took["encoding"]))
        else:
            time.sleep(took["training"] - took["encoding"] + chance.uniform(0, 2 * seconds / kills))
        if number == kills:
            process.terminate()  # one is asked to stop, and does so after its step
        else:
            process.kill()
        process.join()
        codes.append(process.exitcode)
    assert codes.count(-9) >= kills // 2  # most were killed on the way, not after the end
    last = begin("cut")
    last.join()
    assert last.exitcode == 0
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    for name in ("model.safetensors", "output.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes(), name
    left = [path for path in (tmp_path / "cut").rglob("*") if path.name.startswith(".")]
    assert not left
    polyseme.load(tmp_path / "cut").embed(["et a"])
