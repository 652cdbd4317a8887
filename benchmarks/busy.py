"""Throughput of `embed` beside busy processes, as a share of the quiet throughput: `python -m benchmarks.busy [--model en]`.

Starts one endless loop for each core, measures, stops them, and measures without them, in turn. With two loops on two cores
half of the machine is left. The bar: at least 40 % of the quiet throughput for each of

- sentences: of usual length, with new (cold) and with cached words (seen)
- documents: a few texts of 300 words, so that each LSTM step has few rows
- single: one sentence at a time
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import torch

import polyseme
from benchmarks.workload import clock, sentences
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES

BAR = 0.4
LOOP = "while True: pass"


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """Run so many endless loops beside the block."""
    processes = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def workloads(model: Elmo, words: int) -> dict[str, Callable[[], object]]:
    """Return what is measured."""
    texts = sentences(words // 14)
    flat = [word for text in texts for word in text]
    documents = [flat[begin : begin + 300] for begin in range(0, len(flat), 300)][:8]

    def cold() -> None:
        model.cache.clear()
        model.embed(texts)

    return {
        "sentences_cold": cold,
        "sentences_seen": lambda: model.embed(texts),
        "documents": lambda: model.embed(documents),
        "single": lambda: [model.embed([text]) for text in texts[:40]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a model; default: random weights of the size small")
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--loops", type=int, default=len(os.sched_getaffinity(0)), help="busy processes; default: one a core")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.manual_seed(0)
    model = polyseme.load(options.model) if options.model else Elmo(SIZES["small"]).eval()
    runs = workloads(model, options.words)
    seconds: dict[str, dict[str, list[float]]] = {name: {"quiet": [], "busy": []} for name in runs}
    for run in runs.values():
        run()  # to warm up
    for _ in range(options.rounds):
        for state, loops in (("quiet", 0), ("busy", options.loops)):
            with busy(loops):
                for name, run in runs.items():
                    seconds[name][state].append(clock(run))
    ratios = {name: round(min(found["quiet"]) / min(found["busy"]), 3) for name, found in seconds.items()}
    times = {f"{name}_{state}_s": round(min(each), 3) for name, found in seconds.items() for state, each in found.items()}
    result = vars(options) | {"threads": torch.get_num_threads(), **times, "ratio": ratios}
    print(json.dumps(result | {"within_bar": all(each >= BAR for each in ratios.values())}, indent=2))


if __name__ == "__main__":
    main()
