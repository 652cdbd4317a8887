"""Words a second of two processes against one: `python -m benchmarks.processes [--size small] [--steps 150] ...`.

Real runs of `polyseme pretrain elmo` on the CPU, alone and under torchrun, with one thread for each process and the same
batch for each (`--batch-words`), so that two processes do twice the work in a step. The rate is that of the log, training
alone; its first line, of the first 100 steps, is left out. Twice the cores at best give a ratio of 2.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.memory import SOURCE, write_text


def rate(out: Path) -> float:
    """Words a second of all but the first line of the log, each by its steps."""
    lines = [json.loads(line) for line in (out / "run" / "log.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["kind"] == "train"]
    if len(lines) < 2:
        raise SystemExit(f"the log of {out} has {len(lines)} lines; a rate needs 2: give more --steps (100 make a line)")
    steps = [line["step"] - before["step"] for before, line in itertools.pairwise(lines)]
    return sum(steps) / sum(count / line["words_per_second"] for count, line in zip(steps, lines[1:], strict=True))


def train(processes: int, text: Path, out: Path, options: argparse.Namespace, split: list[str]) -> float:
    """One run, and its rate."""
    start = [sys.executable, "-m"]
    if processes > 1:
        start += ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m"]
    call = [*start, "polyseme", "pretrain", "elmo", "--corpus", str(text), "--out", str(out), "--device", "cpu", *split]
    call += ["--size", options.size, "--vocabulary", str(options.vocabulary), "--batch-words", str(options.batch_words)]
    call += ["--negatives", str(options.negatives), "--words", str(processes * options.steps * options.batch_words)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(call, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return rate(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--size", default="small")
    parser.add_argument("--vocabulary", type=int, default=50_000)
    parser.add_argument("--negatives", type=int, default=8192)
    parser.add_argument("--batch-words", type=int, default=2560, help="of each process: lanes of 20 words")
    parser.add_argument("--steps", type=int, default=200, help="about so many; the first 100 do not count")
    parser.add_argument("--bytes", type=int, default=15_000_000, help="of text")
    parser.add_argument("--rounds", type=int, default=1, help="of both, in turn; the best of each counts")
    options = parser.parse_args()
    rates: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        split = write_text(text, options.bytes)
        for number in range(options.rounds):
            for processes, found in rates.items():
                found.append(train(processes, text, Path(folder, f"model-{processes}-{number}"), options, split))
    result = vars(options) | {"text": SOURCE.name if SOURCE.is_file() else "drawn", "cores": len(os.sched_getaffinity(0))}
    result |= {f"words_per_second_{processes}": [round(each) for each in found] for processes, found in rates.items()}
    print(json.dumps(result | {"ratio": round(max(rates[2]) / max(rates[1]), 3)}, indent=2))


if __name__ == "__main__":
    main()
