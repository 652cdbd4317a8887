"""Words per second of ONNX Runtime beside `model.embed`, on the same sentences and cores, in turns.

python -m benchmarks.onnx_runtime en --threads 1
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable

import torch

import polyseme
from benchmarks import workload
from polyseme.integrations.onnx import OnnxElmo


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="en")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sentences", type=int, default=300)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    model = polyseme.load(given.model)
    sentences = workload.sentences(given.sentences)
    words = sum(map(len, sentences))
    expected = model.embed(sentences)

    def ours() -> None:
        model.cache.clear()  # ONNX Runtime has no memory of words either
        model.embed(sentences)

    with tempfile.TemporaryDirectory() as folder:
        runs: dict[str, Callable[[], object]] = {"polyseme": ours}
        for precision in ("fp32", "int8"):
            polyseme.convert(model, f"{folder}/{precision}", to="onnx", precision=precision)
            written = OnnxElmo(f"{folder}/{precision}", threads=given.threads)
            found = written.embed(sentences)
            apart, near = workload.difference(found, expected), workload.cosine(found, expected)
            print(f"{precision}: largest difference {apart:.2g}, lowest cosine {near:.4f}")
            runs[f"ONNX Runtime, {precision}"] = lambda written=written: written.embed(sentences)
        seconds = workload.turns(runs, 5)
    for name, each in seconds.items():
        print(f"{name}: {words / each:,.0f} words/s, {seconds['polyseme'] / each:.2f} times polyseme")


if __name__ == "__main__":
    main()
