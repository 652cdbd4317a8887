"""Two processes under torchrun on the CPU, against one with the same global batch."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.training.distributed import process_group
from tests.training import program
from tests.training.compare import assert_same_run, log, newest

ROOT = Path(__file__).parents[2]


def torchrun(out: Path, options: dict[str, Any]) -> subprocess.Popen[str]:
    program = ["-m", "tests.training.program", str(out), json.dumps(options)]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *program]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def pair(processes: Any, out: Path, options: dict[str, Any]) -> list[Any]:
    """Two processes without torchrun, which takes seconds to start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = [processes.Process(target=program.train_rank, args=(rank, 2, port, out, options)) for rank in range(2)]
    for process in made:
        process.start()
    return made


def test_two_processes_train_as_one(tmp_path: Path, processes: Any) -> None:
    options = {"learner": {"dropout": 0.0}, "config": {"gradient_accumulation_steps": 2, "steps": 30}}
    both = pair(processes, tmp_path / "two", options)
    program.train(tmp_path / "one", options)
    assert finish(both) == [0, 0]
    one, two = (load_file(newest(tmp_path / name, "safetensors")) for name in ("one", "two"))
    for name, value in one.items():
        if name.startswith(("model/", "optimizer/")):
            torch.testing.assert_close(value, two[name], rtol=1e-4, atol=1e-6)
    halves = [two["rank0/hidden"], two["rank1/hidden"]]  # each process carries its own lanes
    torch.testing.assert_close(one["rank0/hidden"], torch.cat(halves, 1), rtol=1e-4, atol=1e-5)
    for single, double in zip(log(tmp_path / "one"), log(tmp_path / "two"), strict=True):
        assert single.pop("kind") == double.pop("kind")
        assert single == pytest.approx(double, rel=1e-4)


def test_two_processes_stopped_and_resumed(tmp_path: Path, processes: Any) -> None:
    """A signal to one stops both after the same step; dropout differs in the two, and is restored in both."""
    options = {"config": {"steps": 40, "checkpoint_every": 1000, "log_every": 5, "eval_every": 15}}
    assert finish(pair(processes, tmp_path / "cut", {**options, "interrupt": ("stop", "loss", 17)})) == [0, 0]
    assert json.loads(newest(tmp_path / "cut", "json").read_text())["step"] == 17
    assert finish(pair(processes, tmp_path / "cut", options)) == [0, 0]
    assert finish(pair(processes, tmp_path / "whole", options)) == [0, 0]
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


def test_a_lost_process_is_reported(tmp_path: Path, processes: Any) -> None:
    options = {"config": {"steps": 40, "checkpoint_every": 10}}
    lost = pair(processes, tmp_path / "cut", {**options, "interrupt": ("kill", "loss", 17)})
    assert finish(lost) == [1, -9]
    assert (tmp_path / "error-0.txt").read_text().startswith("lost another process of this run (")
    assert json.loads(newest(tmp_path / "cut", "json").read_text())["step"] == 10


def finish(pair: list[Any]) -> list[int]:
    for process in pair:
        process.join(120)
    return [process.exitcode for process in pair]


@pytest.mark.slow
def test_torchrun_stopped_and_resumed(tmp_path: Path) -> None:
    """SIGTERM to torchrun, as a cluster stops a job."""
    options = {"config": {"steps": 40, "checkpoint_every": 1000, "log_every": 5, "eval_every": 15}}
    process = torchrun(tmp_path, {**options, "interrupt": ("stop torchrun", "loss", 17)})
    process.communicate(timeout=120)
    assert json.loads(newest(tmp_path, "json").read_text())["step"] == 17
    again = torchrun(tmp_path, options)
    said, error = again.communicate(timeout=120)
    assert again.returncode == 0, error
    assert all(f"rank {rank} ended by budget after 40" in said for rank in range(2))


def test_processes_that_nobody_joins_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    told = "WORLD_SIZE is 2, but MASTER_ADDR and MASTER_PORT are not set: start the processes with torchrun"
    with pytest.raises(PolysemeError, match=told), process_group(Run(rank=0, world_size=2)):
        pass
