"""Bulk embedding beside what people do today: `python -m benchmarks.scale_peers [--model en] [--megabytes 1] [--rounds 2]`.

The same text, the same model, two processes with one thread each, one pooled vector per line, by three commands:

polyseme               `polyseme embed --engine local --workers 2`
datasets               Hugging Face `Dataset.map(num_proc=2)` over `encode`, then `to_parquet`
sentence-transformers  `encode` with a pool of two processes, then one array

Each runs undisturbed (`none`; the runs alternate, every other round in reverse order, and the best of each counts), then with
its busiest process killed half-way (`worker`), then with the command and all its processes killed half-way (`command`). A
command that fails, or that hangs for three times as long as it takes undisturbed, is started again until its result is
complete. Reported: words per second from the first start to the complete result, processor time of all processes (which a
busy machine changes less), how each start ended, the seconds that the kill cost, and how many lines were embedded again (for
polyseme at most: those of the parts that were being written). Needs `datasets` and `sentence-transformers`; Linux.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from torch import nn

from benchmarks.arguments import at_least
from benchmarks.node_kills import descendants
from benchmarks.scale import write_lines
from benchmarks.scale_kills import write_model

KINDS = ("polyseme", "datasets", "sentence-transformers")
BATCH = 64
PARTS = 24
PROGRESS = "POLYSEME_BENCHMARK_PROGRESS"
THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


@functools.cache
def loaded(model: str) -> Any:
    """Return the model; each process loads it once."""
    import polyseme

    return polyseme.load(model)


def note(lines: int) -> None:
    """Add embedded lines to the count that the program which kills looks at."""
    with Path(os.environ[PROGRESS]).open("a") as file:
        file.write(f"{lines}\n")


def pooled(batch: dict[str, list[str]], model: str) -> dict[str, Any]:
    """Return the vectors of some lines, for `Dataset.map`."""
    vectors = loaded(model).encode(batch["text"], pooling="mean")
    note(len(vectors))
    return {"vector": vectors}


class Noted(nn.Module):
    """A last module of a `SentenceTransformer`, which counts its lines."""

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        note(len(features["sentence_embedding"]))
        return features


def with_datasets(text: Path, out: Path, model: str) -> None:
    import datasets

    lines = datasets.load_dataset("text", data_files=str(text), split="train", keep_linebreaks=False)
    found = lines.map(pooled, batched=True, batch_size=BATCH, num_proc=2, fn_kwargs={"model": model})
    out.mkdir(exist_ok=True)
    found.to_parquet(out / "part.parquet")


def with_sentence_transformers(text: Path, out: Path, model: str) -> None:
    import numpy as np

    from polyseme.integrations.sentence_transformers import sentence_transformer

    transformer = sentence_transformer(model, device="cpu")
    transformer.append(Noted())
    pool = transformer.start_multi_process_pool(["cpu", "cpu"])
    vectors = transformer.encode(text.read_text(encoding="utf-8").splitlines(), pool=pool, batch_size=BATCH)
    transformer.stop_multi_process_pool(pool)
    out.mkdir(exist_ok=True)
    np.save(out / "vectors.npy", vectors)


def rows(out: Path) -> int:
    """Return the lines that a result has."""
    import numpy as np
    import pyarrow.parquet as pq

    if (out / "vectors.npy").is_file():
        return len(np.load(out / "vectors.npy"))
    return sum(pq.read_metadata(part).num_rows for part in out.glob("*.parquet"))


def embedded(out: Path) -> int:
    """Return the lines that were embedded so far, those that were embedded again included."""
    progress = out.with_suffix(".progress")
    return sum(map(int, progress.read_text().split())) if progress.is_file() else rows(out)


def start(kind: str, text: Path, out: Path, model: str, log: Path) -> subprocess.Popen[bytes]:
    """Start one of the commands."""
    call = ["benchmarks.scale_peers", "--run", kind, text, out, "--model", model]
    if kind == "polyseme":
        size = max(text.stat().st_size // PARTS, 1)
        call = ["polyseme", "embed", "--input", text, "--out", out, "--model", model, "--pooling", "mean", "--engine", "local"]
        call += ["--workers", 2, "--shard-size", size]
    environment = os.environ | THREADS | {"HF_DATASETS_CACHE": str(out.with_name(f"{out.name}-cache"))}
    environment |= {PROGRESS: str(out.with_suffix(".progress"))}
    with log.open("ab") as file:
        return subprocess.Popen([sys.executable, "-m", *map(str, call)], stdout=file, stderr=file, env=environment)


def busiest(process: int) -> int | None:
    """Return the descendant that has used most of a processor."""

    def used(each: int) -> int:
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return -1
        return int(fields[11]) + int(fields[12])

    return max(descendants(process), key=used, default=None)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a command and all that it started."""
    everything = [*descendants(process.pid), process.pid] if process.poll() is None else []
    for each in everything:
        try:
            os.kill(each, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()


def strike(process: subprocess.Popen[bytes], out: Path, lines: int, kill: str) -> None:
    """Wait until half of the lines are embedded, then kill a worker or the command."""
    while embedded(out) < lines / 2 and process.poll() is None:
        time.sleep(0.05)
    if kill == "command":
        end(process)
    elif (worker := busiest(process.pid)) is not None:
        os.kill(worker, signal.SIGKILL)


def processor_seconds() -> float:
    """Return the processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(kind: str, text: Path, out: Path, model: str, lines: int, *, kill: str = "none", usual: float = 0.0) -> dict[str, Any]:
    """Run a command until its result is complete; with `kill`, something is killed half-way. `usual`: its seconds without."""
    log, starts, outcomes = out.with_suffix(".log"), 0, []
    began, used = time.monotonic(), processor_seconds()
    while True:
        starts += 1
        process = start(kind, text, out, model, log)
        try:
            if starts == 1 and kill != "none":
                strike(process, out, lines, kill)
            code: int | None = process.wait(timeout=3 * usual + 60 if usual else None)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end(process)
        outcomes.append("killed" if starts == 1 and kill == "command" else {None: "hung", 0: "complete"}.get(code, "failed"))
        if code == 0:
            break
        if starts > 3:
            raise SystemExit(f"{kind} fails again and again: {log.read_text(errors='replace')[-3000:]}")
    seconds = time.monotonic() - began
    again = {"none": 0, "worker": 1, "command": 2}[kill] * lines // PARTS if kind == "polyseme" else embedded(out) - lines
    found = {"seconds": round(seconds, 1), "processor_seconds": round(processor_seconds() - used, 1), "starts": outcomes}
    return found | {"rows": rows(out), "embedded_again": again}


def lowest(runs: list[dict[str, Any]]) -> dict[str, float]:
    """Return the lowest of each measure of time."""
    return {name: min(found[name] for found in runs) for name in ("seconds", "processor_seconds")}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="en", help="a model; tiny: a small random one")
    parser.add_argument("--megabytes", type=float, default=1)
    parser.add_argument("--rounds", type=at_least(1), default=2)
    parser.add_argument("--run", nargs=3)
    given = parser.parse_args()
    if given.run:
        kind, text, out = given.run
        {"datasets": with_datasets, "sentence-transformers": with_sentence_transformers}[kind](
            Path(text), Path(out), given.model
        )
        return
    work = Path(tempfile.mkdtemp(prefix="polyseme-peers-"))
    try:
        model = str(write_model(work / "model")) if given.model == "tiny" else given.model
        text = write_lines(work / "text.txt", given.megabytes)
        lines = text.read_text(encoding="utf-8").splitlines()
        words = sum(len(line.split()) for line in lines)
        undisturbed: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
        for number in range(given.rounds):
            for kind in KINDS[:: -1 if number % 2 else 1]:
                undisturbed[kind].append(run(kind, text, work / f"{kind}-{number}", model, len(lines)))
        best = {kind: found[0] | lowest(found) for kind, found in undisturbed.items()}
        for kill in ("none", "worker", "command"):
            for kind in KINDS:
                found, usual = best[kind], best[kind]["seconds"]
                if kill != "none":
                    found = run(kind, text, work / f"{kind}-{kill}", model, len(lines), kill=kill, usual=usual)
                lost = round(found["seconds"] - usual, 1)
                result = {"kill": kill, "by": kind, **found, "lost_seconds": lost, "words_per_second": words / found["seconds"]}
                print(json.dumps(result | {"complete": found["rows"] == len(lines)}), flush=True)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
