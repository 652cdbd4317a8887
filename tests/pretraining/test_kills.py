"""SIGKILL at chosen moments of a pre-training: the run that was killed and started again ends as the one that was not."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import polyseme
from tests.pretraining import program
from tests.training.compare import assert_same_run

LOOP = {"steps": 24, "checkpoint_every": 3, "log_every": 5, "eval_every": 8}
KILLS = [("encode", 1), ("encode", 2), ("loss", 1), ("loss", 8), ("tensors", 2), ("head", 2), ("loss", 5)]
"""While the text is encoded, before a loss, in the middle of the tensors of a checkpoint, between its two files."""


def test_killed_and_started_again(tmp_path: Path, processes: Any) -> None:
    text = program.write_text(tmp_path / "text.txt", lines=5000)

    def start(name: str, at: program.Interrupt | None = None) -> int:
        process = processes.Process(target=program.train_and_exit, args=(text, tmp_path / name, LOOP, at))
        process.start()
        process.join()
        return int(process.exitcode)

    assert start("whole") == 0
    for moment, number in KILLS:
        assert start("cut", ("kill", moment, number)) == -signal.SIGKILL
    assert start("cut", ("stop", "loss", 4)) == 3  # one is asked to stop, and does so after its step
    assert start("cut") == 0
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    for name in ("model.safetensors", "output.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes(), name
    left = [path for path in (tmp_path / "cut").rglob("*") if path.name.startswith(".")]
    assert not left
    polyseme.load(tmp_path / "cut").embed(["et a"])
