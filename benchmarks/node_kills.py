"""Training on two nodes under SIGKILL: `python -m benchmarks.node_kills [--kills 10] [--node second] [--steps 600]`.

A tiny ELMo is trained three times: on one node with two processes, on two nodes with one process each, and on two nodes of
which one is killed again and again, with all its processes, and started again. All three must give the same weights, and the
last checkpoints must have the same positions in the text. A node is a torchrun with the c10d rendezvous, on loopback; rank 0
is wherever the rendezvous puts it, so it moves. `--node`: `first` holds the rendezvous (without it torchrun ends on the other
node too, and this program starts both again, as a scheduler does), `second` does not, `either` is one or the other.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from benchmarks.arguments import at_least
from benchmarks.memory import write_text

NODES = ("first", "second")
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""Without the latter, torchrun (of PyTorch 2.13) waits a minute for a node that comes back, then ends on all nodes: the node
that stayed does not tell it again where rank 0 is."""


def descendants(process: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [each for child in map(int, children) for each in (child, *descendants(child))]


class Node:
    """One torchrun, and what it started."""

    def __init__(self, call: list[str], log: Path) -> None:
        self.call, self.log, self.starts = call, log, 0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.starts += 1
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.call, stdout=log, stderr=log, env=os.environ | ENVIRONMENT)

    def kill(self) -> None:
        """Kill all of it at once, as a power cut does."""
        if self.process is None or self.process.poll() is not None:
            return
        os.kill(self.process.pid, signal.SIGSTOP)  # so that it starts no more
        everything = [*descendants(self.process.pid), self.process.pid]
        for each in everything:
            os.kill(each, signal.SIGKILL)
        self.process.wait()

    def result(self) -> int | None:
        """Return the exit code; None: it runs."""
        return None if self.process is None else self.process.poll()


def training(text: Path, out: Path, split: list[str], steps: int) -> list[str]:
    """Return the command that trains, without torchrun."""
    call = ["-m", "polyseme", "pretrain", "elmo", "--corpus", text, "--out", out, *split, "--size", "tiny", "--device", "cpu"]
    call += ["--vocabulary-size", 500, "--output", "sampled", "--negatives", 20, "--dropout", 0.2, "--batch-words", 200]
    call += ["--steps", steps, "--checkpoint-every", 10, "--eval-every", max(steps // 4, 1), "--log-every", 20, "--workers", 0]
    return list(map(str, call))


def torchrun(*options: object, processes: int = 1) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", *map(str, options), f"--nproc-per-node={processes}"]


def two_nodes(folder: Path, out: Path, command: list[str]) -> dict[str, Node]:
    """Return two nodes that meet on a free port; neither is started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = ["--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-id", out.name, "--rdzv-endpoint", f"127.0.0.1:{port}"]
    meeting += ["--local-addr", "127.0.0.1", "--max-restarts", 100]
    hosts = {name: ["--rdzv-conf", f"is_host={int(name == 'first')}"] for name in NODES}
    return {name: Node([*torchrun(*meeting, *hosts[name]), *command], folder / f"{out.name}-{name}.log") for name in NODES}


def step_of(out: Path) -> int:
    """Return the step of the last checkpoint."""
    steps = (path.stem.removeprefix("checkpoint-") for path in (out / "run").glob("checkpoint-*.json"))
    return max(map(int, steps), default=0)


class Killer:
    """Trains on two nodes and kills one of them at random moments."""

    def __init__(self, nodes: dict[str, Node], out: Path, seed: int) -> None:
        self.nodes, self.out, self.draw = nodes, out, random.Random(seed)
        self.kills: list[tuple[str, int]] = []
        """Which node, and the step of the last checkpoint then."""

    def run(self, victims: tuple[str, ...], kills: int, steps: int) -> None:
        """Train to the end; a node that was killed or failed is started again."""
        moments = self._moments(kills, steps)
        try:
            for node in self.nodes.values():
                node.start()
            while not all(node.result() == 0 for node in self.nodes.values()):
                self._restart()
                if moments and step_of(self.out) >= moments[0]:
                    moments.pop(0)
                    time.sleep(self.draw.uniform(0, 1))
                    victim = self.draw.choice(victims)
                    if self.nodes[victim].result() is None:
                        self.kills.append((victim, step_of(self.out)))
                        self.nodes[victim].kill()
                        print(f"killed the {victim} node after the checkpoint of step {self.kills[-1][1]}", flush=True)
                time.sleep(0.05)
        finally:
            for node in self.nodes.values():
                node.kill()

    def _moments(self, kills: int, steps: int) -> list[int]:
        """Return the steps after whose checkpoints a node is killed; now and then twice in a row, before it trains again."""
        return sorted(self.draw.choices(range(0, max(steps - 20, 1), 10), k=kills))

    def _restart(self) -> None:
        for name, node in self.nodes.items():
            if node.result() not in (None, 0):
                if node.starts > 100:
                    raise SystemExit(f"the {name} node fails again and again: {node.log.read_text()[-3000:]}")
                node.start()


def weights(out: Path) -> dict[str, torch.Tensor]:
    """Return the weights of the best model and all tensors of the last checkpoint."""
    last = max((out / "run").glob("checkpoint-*.safetensors"))
    files = {"model": out / "model.safetensors", "output": out / "output.safetensors", "checkpoint": last}
    return {f"{kind}/{name}": value for kind, path in files.items() for name, value in load_file(path).items()}


def positions(out: Path) -> list[Any]:
    """Return where each process is in the text."""
    values = json.loads(max((out / "run").glob("checkpoint-*.json")).read_text())["values"]
    return [process["position"] for process in values["processes"]] + [values["progress"]["words"]]


def equal(first: Path, second: Path) -> bool:
    """Whether two runs have the same weights, optimizer state, carried state and positions, to the bit."""
    one, two = weights(first), weights(second)
    same = one.keys() == two.keys() and all(torch.equal(value, two[name]) for name, value in one.items())
    return same and positions(first) == positions(second)


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=at_least(0), default=10)
    parser.add_argument("--node", default="second", choices=[*NODES, "either"])
    parser.add_argument("--steps", type=at_least(1), default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bytes", type=at_least(1), default=300_000, help="of text")
    given = parser.parse_args(arguments)
    work = Path(tempfile.mkdtemp(prefix="polyseme-nodes-"))
    text = work / "text.txt"
    split = write_text(text, given.bytes)
    outs = {name: work / name for name in ("one", "two", "killed")}
    calls = {name: training(text, out, split, given.steps) for name, out in outs.items()}
    one = Node([*torchrun("--standalone", processes=2), *calls["one"]], work / "one.log")
    try:
        one.start()
        assert one.process is not None
        if one.process.wait():
            raise SystemExit(one.log.read_text()[-3000:])
    finally:
        one.kill()
    began = time.monotonic()
    Killer(two_nodes(work, outs["two"], calls["two"]), outs["two"], 0).run((), 0, given.steps)
    undisturbed = time.monotonic() - began
    killer = Killer(two_nodes(work, outs["killed"], calls["killed"]), outs["killed"], given.seed)
    killer.run(NODES if given.node == "either" else (given.node,), given.kills, given.steps)
    result = {
        "kills": killer.kills,
        "starts": {name: node.starts for name, node in killer.nodes.items()},
        "two_nodes_equal_one": equal(outs["one"], outs["two"]),
        "killed_equal_one": equal(outs["one"], outs["killed"]),
        "seconds": [round(undisturbed), round(time.monotonic() - began - undisturbed)],
    }
    print(json.dumps(result), flush=True)
    if not (result["two_nodes_equal_one"] and result["killed_equal_one"]):
        raise SystemExit(f"the runs differ: {work}")
    shutil.rmtree(work)
    return result


if __name__ == "__main__":
    main()
