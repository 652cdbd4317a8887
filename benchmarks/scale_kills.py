"""Datasets under SIGKILL: `python -m benchmarks.scale_kills [--engine ray] [--kills 20] [--lines 60000] [--longest 12]`.

A tiny model embeds a text, once undisturbed with local processes, then again and again while workers, a node of the cluster and
the command itself are killed at random moments. A command that was killed is run again. Every dataset must equal the
undisturbed one, byte for byte. The cluster has two nodes on this machine (`ray.cluster_utils.Cluster`); the engine
`local` has no nodes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.arguments import at_least

WORDS = ["the", "bank", "of", "river", "money", "a", "The", "to", ".", ",", "isn't", "naïve", "河岸", "\u2028"]


def write_model(folder: Path) -> Path:
    """Write a small random ELMo."""
    import torch

    from polyseme.encoders.elmo import Elmo, ElmoConfig
    from polyseme.nn.config import CharactersConfig, LstmConfig
    from polyseme.text.words import get_splitter

    torch.manual_seed(0)
    characters = CharactersConfig(dim=8, filters=((1, 8), (2, 16), (3, 40)))
    config = ElmoConfig(characters=characters, dim=32, lstm=LstmConfig(cell_size=128, projection_size=32))
    return Elmo(config, splitter=get_splitter("english")).eval().save_pretrained(folder)


def write_text(path: Path, lines: int, seed: int = 0) -> Path:
    """Write random lines, some of them blank."""
    draw = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(lines):
            file.write(" ".join(draw.choices(WORDS, k=draw.choice([0, 3, 9, 25]))) + "\n")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a dataset."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Killer:
    """Kills something at random."""

    def __init__(self, cluster: Any, nodes: list[Any], seed: int) -> None:
        self.cluster, self.nodes, self.draw = cluster, nodes, random.Random(seed)
        self.done: Counter[str] = Counter()

    def add_node(self) -> None:
        """Start another node; on a busy machine its start may time out."""
        for _ in range(5):
            with contextlib.suppress(Exception):
                self.nodes.append(self.cluster.add_node(num_cpus=1))
                return
        raise SystemExit("no node could be started")

    def strike(self, driver: subprocess.Popen[str]) -> str:
        """Kill a worker, a node or the command; returns what."""
        kinds = ["worker", "worker", "driver", *(["node", "node"] if self.nodes else [])]
        kind = self.draw.choice(kinds)
        if kind == "worker":
            workers = list(_workers(driver.pid, self.cluster is not None))
            if not workers:
                return "nothing"
            os.kill(self.draw.choice(workers), signal.SIGKILL)
        elif kind == "driver":
            driver.kill()
            driver.wait()
        else:
            self.cluster.remove_node(self.nodes.pop(), allow_graceful=False)
            self.add_node()
        self.done[kind] += 1
        return kind


def _workers(driver: int, ray: bool) -> Iterator[int]:
    """Yield the processes that embed: actors of Ray, or children of the command."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if (ray and name.startswith("ray::") and "MapWorker" in name) or (parent == driver and "spawn_main" in name):
            yield int(entry.name)


def embed(text: Path, model: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    """Start the command."""
    call = [sys.executable, "-m", "polyseme", "embed", "--input", text, "--model", model, "--out", out, "--shard-size", "40KB"]
    pipe = subprocess.PIPE
    return subprocess.Popen([*map(str, call), *options], stdout=pipe, stderr=pipe, text=True)


def disturbed(text: Path, model: Path, out: Path, options: list[str], killer: Killer, kills: int, longest: float) -> int:
    """Make a dataset under up to so many kills; returns how many there were."""
    count = starts = 0
    while True:
        starts += 1
        driver = embed(text, model, out, *options)
        while driver.poll() is None and count < kills:
            try:
                driver.wait(timeout=killer.draw.uniform(0.5, longest))
            except subprocess.TimeoutExpired:
                there = len(list(out.glob("*.parquet")))
                what = killer.strike(driver)
                count += what != "nothing"
                print(f"{there} parts; killed: {what}", flush=True)
        output, errors = driver.communicate()
        if driver.returncode == 0:
            print(f"after {count} kills and {starts} starts: {output.strip()}", flush=True)
            return count
        if driver.returncode != -signal.SIGKILL:
            raise SystemExit(f"the command failed with {driver.returncode}: {errors[-3000:]}")


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", default="ray", choices=["ray", "local"])
    parser.add_argument("--kills", type=at_least(0), default=20)
    parser.add_argument("--lines", type=at_least(1), default=60_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=12, help="seconds between two kills, at most")
    given = parser.parse_args(arguments)
    work = Path(tempfile.mkdtemp(prefix="polyseme-kills-"))
    cluster, nodes, options = None, [], ["--workers", "2"]
    try:
        model, text = write_model(work / "model"), write_text(work / "text.txt", given.lines)
        began = time.monotonic()
        plain = embed(text, model, work / "plain", "--workers", "1")
        print(plain.communicate()[0].strip(), f"in {time.monotonic() - began:.0f} s", flush=True)
        if given.engine == "ray":
            from ray.cluster_utils import Cluster

            cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
            nodes = [cluster.add_node(num_cpus=1)]
            cluster.wait_for_nodes()
            options += ["--engine", "ray", "--address", cluster.address]
        killer = Killer(cluster, nodes, given.seed)
        kills = datasets = 0
        expected = contents(work / "plain")
        while kills < given.kills:
            kills += disturbed(text, model, work / "out", options, killer, given.kills - kills, given.longest)
            datasets += 1
            if contents(work / "out") != expected:
                raise SystemExit(f"the dataset differs from the undisturbed one: {work}")
            shutil.rmtree(work / "out")
        result = {
            "engine": given.engine,
            "kills": dict(killer.done),
            "datasets": datasets,
            "parts": len(expected) - 2,
            "equal": True,
        }
        print(json.dumps(result), flush=True)
        return result
    finally:
        if cluster is not None:
            cluster.shutdown()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
