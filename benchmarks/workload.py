"""Shared by the benchmarks: sentences, timing, FLOP counts, comparisons."""

from __future__ import annotations

import itertools
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from polyseme.encoders.elmo import Elmo
from polyseme.text.batching.batches import batch_by_words


def sentences(count: int) -> list[list[str]]:
    """Return the first sentences of CoNLL testa, or random ones of similar length."""
    path = Path(os.environ.get("POLYSEME_DATA", "")) / "tasks/ner_conll2003_en/eng.testa"
    if not path.is_file():
        return drawn(count)
    found: list[list[str]] = [[]]
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-DOCSTART-"):
            continue
        if line.strip():
            found[-1].append(line.split()[0])
        elif found[-1]:
            found.append([])
    return found[:count]


def drawn(count: int) -> list[list[str]]:
    """Return random words by Zipf's law in sentences of 1 to 60 words, 15 on average. Fewer are the first of more."""
    source = random.Random(0)
    words = ["".join(source.choices("etaoinshrdlu", k=source.randint(1, 12))) for _ in range(20000)]
    cumulative = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(words))))

    def sentence() -> list[str]:
        return source.choices(words, cum_weights=cumulative, k=min(60, max(1, int(source.expovariate(1 / 15)))))

    return [sentence() for _ in range(count)]


def clock(run: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def turns(runs: dict[str, Callable[[], object]], times: int) -> dict[str, float]:
    """Return the median seconds of each, run in turn."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(times):
        for name, run in runs.items():
            found[name].append(clock(run))
    return {name: statistics.median(values) for name, values in found.items()}


def limit(device: str = "cpu", size: int = 2048, kind: torch.dtype = torch.float32) -> float:
    """Return the FLOP/s of a large matmul, on all threads or on the GPU."""
    a, b = (torch.randn(size, size, device=device).to(kind) for _ in range(2))

    def run() -> None:
        a @ b
        if device != "cpu":
            torch.cuda.synchronize()

    run()
    return 2 * size**3 / statistics.median(clock(run) for _ in range(7))


def flops(model: Elmo, texts: list[list[str]], batch: tuple[int, int]) -> float:
    """Return the FLOPs of the LSTMs' matmuls for texts whose words are all cached."""
    lstm = model.config.lstm
    marked = sum(len(text) + 2 for text in texts)
    distinct = 0
    for rows in batch_by_words([len(text) for text in texts], words=batch[0], batch_size=batch[1]):
        distinct += len({word for row in rows for word in texts[row]}) + 2
    wide = 4 * lstm.cell_size
    each = (lstm.layers * (wide + lstm.cell_size) + (lstm.layers - 1) * wide) * lstm.output_size
    return 2 * 2 * (marked * each + distinct * wide * model.config.dim)


def difference(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """Return the largest absolute difference."""
    return max(float(np.abs(x - y).max(initial=0)) for x, y in zip(a, b, strict=True))


def cosine(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """Return the smallest cosine over words and layers."""
    least = 1.0
    for x, y in zip(a, b, strict=True):
        cosines = (x * y).sum(-1) / (np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1))
        least = min(least, float(cosines.min(initial=1.0)))
    return least
