"""How much faster than the plain loop, on this CPU: `python benchmarks/cpu.py [--size small] [--size original]`.

Random weights of the published sizes; sentences of CoNLL-2003 testa in arrival order when `POLYSEME_DATA` has them, else drawn
with like lengths. Cold: no word was seen before; seen: all were. Each number is a median over runs, fast and plain in turn, so
that a busy machine slows both. FLOPs counted for the share of the matrix-product limit: the products that the method needs
(recurrent, projection and upper input products for each word and mark, layer 0's input products for each distinct word), against
a 2048 x 2048 x 2048 product in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks import reference
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES
from polyseme.text.batches import by_words

COUNT = {"small": 192, "medium": 192, "original": 64}
PRECISIONS = ("fp16", "bf16", "int8")


def sentences(count: int) -> list[list[str]]:
    """CoNLL testa in arrival order, or drawn with like lengths."""
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
    """Random words by Zipf's law in sentences of 1 to 60 words, 15 on the mean."""
    source = random.Random(0)
    words = ["".join(source.choices("etaoinshrdlu", k=source.randint(1, 12))) for _ in range(20000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    lengths = [min(60, max(1, int(source.expovariate(1 / 15)))) for _ in range(count)]
    return [source.choices(words, weights, k=length) for length in lengths]


def clock(run: Callable[[], object]) -> float:
    """Seconds of one call."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def turns(runs: dict[str, Callable[[], object]], times: int) -> dict[str, float]:
    """Median seconds of each, run in turn."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(times):
        for name, run in runs.items():
            found[name].append(clock(run))
    return {name: statistics.median(values) for name, values in found.items()}


def limit() -> float:
    """FLOP/s of a large fp32 product on all threads."""
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    a @ b
    return 2 * 2048**3 / statistics.median(clock(lambda: a @ b) for _ in range(7))


def flops(model: Elmo, texts: list[list[str]]) -> float:
    """FLOPs of the products that the LSTMs need for texts whose words were all seen."""
    lstm = model.config.lstm
    marked = sum(len(text) + 2 for text in texts)
    distinct = 0
    for rows in by_words([len(text) for text in texts]):
        distinct += len({word for row in rows for word in texts[row]}) + 2
    wide = 4 * lstm.dim
    each = lstm.layers * (wide * lstm.output + lstm.dim * lstm.output) + (lstm.layers - 1) * wide * lstm.output
    return 2 * 2 * (marked * each + distinct * wide * model.config.dim)


def difference(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """Largest absolute difference."""
    return max(float(np.abs(x - y).max(initial=0)) for x, y in zip(a, b, strict=True))


def cosine(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """Smallest cosine over words and layers."""
    least = 1.0
    for x, y in zip(a, b, strict=True):
        cosines = (x * y).sum(-1) / (np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1))
        least = min(least, float(cosines.min(initial=1.0)))
    return least


def measure(size: str, times: int) -> dict[str, float]:
    """All ratios of one size."""
    torch.manual_seed(0)
    model = Elmo(SIZES[size]).eval()
    texts = sentences(COUNT[size])
    words = sum(map(len, texts))
    result: dict[str, float] = {"words": words}

    def cold() -> None:
        model.cache.clear()
        model.embed(texts)

    plain = reference.embed(model, texts)
    fast = model.embed(texts)
    result["max_difference"] = difference(plain, fast)
    found = turns({"plain": lambda: reference.embed(model, texts), "cold": cold, "seen": lambda: model.embed(texts)}, times)
    result |= {
        "plain_words_per_second": words / found["plain"],
        "cold_words_per_second": words / found["cold"],
        "seen_words_per_second": words / found["seen"],
        "cold_ratio": found["plain"] / found["cold"],
        "seen_ratio": found["plain"] / found["seen"],
        "share_of_limit": flops(model, texts) / found["seen"] / limit(),
    }
    few = texts[:24]
    alone = {
        "plain": lambda: [reference.embed(model, [text]) for text in few],
        "fast": lambda: [model.embed([text]) for text in few],
    }
    found_alone = turns(alone, times)
    result["one_sentence_ratio"] = found_alone["plain"] / found_alone["fast"]
    result["one_sentence_ms"] = 1000 * found_alone["fast"] / len(few)
    if size == "original":
        result |= lower(model, texts, fast, times)
    return result


def lower(model: Elmo, texts: list[list[str]], exact: list[np.ndarray], times: int) -> dict[str, float]:
    """The labelled options of lower precision."""
    result: dict[str, float] = {}
    for precision in PRECISIONS:
        model.precision = precision
        result[f"{precision}_cosine"] = cosine(exact, model.embed(texts))
        found = turns({"plain": lambda: reference.embed(model, texts), "seen": lambda: model.embed(texts)}, times)
        result[f"{precision}_ratio"] = found["plain"] / found["seen"]
    model.precision = "fp32"
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", action="append", choices=sorted(SIZES), help="small and original when left out")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    for size in arguments.size or ["small", "original"]:
        result = measure(size, arguments.runs)
        if arguments.json:
            print(json.dumps({"size": size, **result}))
            continue
        print(f"{size}: {torch.get_num_threads()} threads, PyTorch {torch.__version__}")
        for name, value in result.items():
            print(f"  {name.replace('_', ' '):28} {value:.3g}" if value < 1000 else f"  {name.replace('_', ' '):28} {value:,.0f}")


if __name__ == "__main__":
    main()
