"""Two processes that pre-train one model in packed rows, on the CPU: they encode once, end alike, and resume."""

from __future__ import annotations

import json
import multiprocessing.connection
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import polyseme
from benchmarks import node_kills
from tests.pretraining import program
from tests.training.compare import assert_same_run, newest

ROOT = Path(__file__).parents[2]


def pair(processes: Any, text: Path, out: Path, loop: dict[str, Any], at: program.Interrupt | None = None) -> list[Any]:
    """Two processes without torchrun, which takes seconds to start; `at` is where they kill themselves."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = [processes.Process(target=program.train_rank, args=((rank, 2, port), text, out, loop, at)) for rank in range(2)]
    for process in made:
        process.start()
    return made


def finish(pair: list[Any]) -> list[int]:
    for process in pair:
        process.join(120)
    return [process.exitcode for process in pair]


@pytest.mark.slow
def test_killed_together_and_started_again(tmp_path: Path, processes: Any) -> None:
    text = program.write_text(tmp_path / "text.txt", lines=2000)
    loop = {"steps": 60, "checkpoint_every": 4, "log_every": 10, "eval_every": 20}
    assert finish(pair(processes, text, tmp_path / "whole", loop)) == [0, 0]
    cut = tmp_path / "cut"
    for at in (("kill", "encode", 1), ("kill", "loss", 23)):
        begun = pair(processes, text, cut, loop, at)
        dead = multiprocessing.connection.wait([process.sentinel for process in begun])
        kill(begun)
        assert [process.exitcode for process in begun if process.sentinel in dead] == [-signal.SIGKILL] * len(dead)
    assert (cut / "run" / "checkpoint-00000020.json").exists()
    assert not (cut / "run" / "checkpoint-00000060.json").exists()
    assert finish(pair(processes, text, cut, loop)) == [0, 0]
    assert_same_run(tmp_path / "whole", cut)
    carried = load_file(newest(cut, "safetensors"))
    assert carried["rank0/hidden"].shape == carried["rank1/hidden"].shape
    assert not torch.equal(carried["rank0/hidden"], carried["rank1/hidden"])  # each has rows of its own
    position = [json.loads(newest(cut, "json").read_text())["values"]["processes"][rank]["position"] for rank in range(2)]
    assert position[0] != position[1]
    polyseme.load(cut).embed(["et a"])


def kill(pair: list[Any]) -> None:
    for process in pair:
        process.kill()
    for process in pair:
        process.join()


@pytest.mark.slow
def test_under_torchrun(tmp_path: Path) -> None:
    """The command that users give; the text is encoded once, and one model comes out."""
    text, out = program.write_text(tmp_path / "text.txt", lines=2000), tmp_path / "m"
    call = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "polyseme"]
    call += ["pretrain", "elmo", "-c", str(text), "-o", str(out), "--size", "tiny", "--words", "8000"]
    call += ["--vocabulary-size", "300"]
    call += ["--splitter", "whitespace", "--sentences", "lines", "--batch-words", "200", "--negatives", "20", "--device", "cpu"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}"}
    done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    head = json.loads(newest(out, "json").read_text())["values"]
    assert head["settings"]["run"]["world_size"] == 2 and head["progress"]["ended"] == "budget"
    assert head["progress"]["words"] >= 8000 and 15 < head["progress"]["step"] < 30  # a step takes the words of both
    assert polyseme.load(out).embed(["et a"])[0].shape == (3, 2, 32)
    assert len(list((out / "run").glob("shards-*"))) == 1
    assert not [path for path in out.rglob("*") if path.name.startswith(".")]


@pytest.mark.slow
@pytest.mark.parametrize("node", ["first", "second"])
def test_two_nodes_of_which_one_is_killed(node: str) -> None:
    """The first node holds the rendezvous; ten kills are `python -m benchmarks.node_kills`."""
    found = node_kills.main(["--kills", "2", "--steps", "60", "--node", node, "--seed", "3"])
    assert found["two_nodes_equal_one"] and found["killed_equal_one"] and len(found["kills"]) == 2
    assert found["starts"][node] == 3


def test_a_benchmark_refuses_fewer_kills_than_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        node_kills.main(["--kills", "-1"])
    assert "--kills: got '-1'; allowed: whole numbers of 0 or more" in capsys.readouterr().err
