"""Words per second of two processes compared with one: `python -m benchmarks.processes [--size small] [--steps 8] ...`.

Real runs of `pretrain` on the CPU, alone and under torchrun, with one thread for each process and the same batch for each
(`--batch-words`), so that two processes do twice the work in a step. The rate is that of the log, training alone; its first
line, of the first steps, is left out. Twice the cores at best give a ratio of 2.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.memory import SOURCE, write_text

WARM_UP = 3  # steps per line of the log


def rate(out: Path) -> float:
    """Return the words per second of all but the first line of the log."""
    lines = [json.loads(line) for line in (out / "run" / "log.jsonl").read_text().splitlines()]
    rates = [line["words_per_second"] for line in lines if line["kind"] == "train"][1:]
    return len(rates) / sum(1 / each for each in rates)


def work(text: str, out: str, options: argparse.Namespace) -> None:
    """Run one process of a run."""
    from polyseme.base.run import Run
    from polyseme.pretraining.elmo_config import ElmoPretraining
    from polyseme.text.corpus import Corpus
    from polyseme.training.config import TrainConfig

    ways = {} if SOURCE.is_file() else {"splitter": "whitespace", "sentences": "lines"}
    config = ElmoPretraining(
        size=options.size,
        vocabulary_size=options.vocabulary,
        output="sampled",
        negatives=options.negatives,
        batch_words=options.batch_words,
        train=TrainConfig(steps=WARM_UP * (1 + options.steps // WARM_UP), log_every=WARM_UP),
    )
    config.fit(Corpus(text, workers=0, **ways), Run.from_environment(device="cpu"), out)  # type: ignore[arg-type]


def train(processes: int, text: Path, out: Path) -> float:
    """Start one run and return its rate."""
    start = [sys.executable, "-m"]
    if processes > 1:
        start += ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m"]
    call = [*start, "benchmarks.processes", *sys.argv[1:], "--work", str(text), str(out)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "THP_MEM_ALLOC_ENABLE": "1"}
    done = subprocess.run(call, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return rate(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--size", default="small")
    parser.add_argument("--vocabulary", type=int, default=50_000)
    parser.add_argument("--negatives", type=int, default=8192)
    parser.add_argument("--batch-words", type=int, default=2560, help="of each process: rows of 20 words")
    parser.add_argument("--steps", type=int, default=9, help="that count")
    parser.add_argument("--bytes", type=int, default=3_000_000, help="of text")
    parser.add_argument("--rounds", type=int, default=2, help="of both, in turn; the best of each counts")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(*options.work, options)
    rates: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        write_text(text, options.bytes)
        for number in range(options.rounds):
            for processes, found in rates.items():
                found.append(train(processes, text, Path(folder, f"model-{processes}-{number}")))
    result = vars(options) | {"text": SOURCE.name if SOURCE.is_file() else "drawn", "cores": len(os.sched_getaffinity(0))}
    result |= {f"words_per_second_{processes}": [round(each) for each in found] for processes, found in rates.items()}
    print(json.dumps(result | {"ratio": round(max(rates[2]) / max(rates[1]), 3)}, indent=2))


if __name__ == "__main__":
    main()
