"""Cosine between lower precisions and fp32 for the shipped models: `python -m benchmarks.precisions en TEXT`.

TEXT is a file of raw text, one sentence or paragraph per line. Compares the vectors of every word in every layer.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np

import polyseme
from polyseme.text.labelled.numbered_lines import numbered_lines

PRECISIONS = ("fp16", "bf16", "int8")


def cosines(exact: list[np.ndarray], other: list[np.ndarray]) -> np.ndarray:
    """Return the cosine of every word in every layer."""
    pairs = [(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1])) for a, b in zip(exact, other, strict=True)]
    return np.concatenate([(a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1) for a, b in pairs])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["en", "zh"])
    parser.add_argument("text", type=Path)
    parser.add_argument("--lines", type=int, default=120)
    given = parser.parse_args()
    lines = (line.strip() for _, line in numbered_lines(given.text))
    texts = list(itertools.islice(filter(None, lines), given.lines))
    model = polyseme.load(given.model)
    exact = model.embed(texts)
    print(f"{given.model}, {len(texts)} lines, {sum(len(each[0]) for each in exact):,} words: cosine to fp32")
    for precision in PRECISIONS:
        model.precision = precision
        found = cosines(exact, model.embed(texts))
        print(
            f"{precision}  smallest {found.min():.5f}  1 in 100 below {np.quantile(found, 0.01):.5f}  mean {found.mean():.6f}"
        )


if __name__ == "__main__":
    main()
