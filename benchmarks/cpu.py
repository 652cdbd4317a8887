"""Speed-up over the plain loop on this CPU: `python -m benchmarks.cpu [--size small] [--size original]`.

Random weights of the published sizes; sentences of CoNLL-2003 testa in their order if `POLYSEME_DATA` has them, else random
ones of similar length. Cold: all words are new; seen: all words are in the cache. Each number is a median over runs, with fast
and plain runs in turn, so that a busy machine slows both. FLOPs for the share of the matmul limit: the matmuls that the method
needs (recurrent, projection and upper input matmuls for each word and boundary token, layer 0's input matmul for each distinct
word), against a 2048 x 2048 x 2048 matmul in the same run; once for these sentences, once for enough to fill batches. The
share of its own matmuls is the time of the same matmuls with nothing between them.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
import torch

from benchmarks import reference
from benchmarks.workload import cosine, difference, flops, limit, sentences, turns
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES
from polyseme.encoders.embed_config import BATCH_CPU

COUNT = {"small": 192, "medium": 192, "original": 64}
MANY = {"small": 1024, "medium": 1024, "original": 512}  # for the share of the limit, which needs full batches
PRECISIONS = ("fp16", "bf16", "int8")


def measure(size: str, times: int) -> dict[str, float]:
    """Measure all ratios of one size."""
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
        "share_of_limit": flops(model, texts, BATCH_CPU) / found["seen"] / limit(),
    }
    many = sentences(MANY[size])
    model.embed(many)
    rate = flops(model, many, BATCH_CPU) / turns({"seen": lambda: model.embed(many)}, times)["seen"]
    result["share_of_limit_full_batches"] = rate / limit()
    result["share_of_own_matmuls"] = matmul_share(model, texts, times)
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


def matmul_share(model: Elmo, texts: list[list[str]], times: int) -> float:
    """Return the time of the LSTMs' matmuls alone, in their shapes and order, divided by that of `embed`."""
    key, fast = model.lstm._prepared
    calls: list[tuple] = []

    def recording(*call: object) -> object:
        calls.append(call)
        return fast(*call)

    model.lstm._prepared = (key, recording)
    model.embed(texts)
    model.lstm._prepared = (key, fast)

    def matmuls() -> None:
        kept = [stack._cell for stack in fast._stacks]
        for stack in fast._stacks:
            stack._cell = lambda *_: None
        for call in calls:
            fast(*call)
        for stack, cell in zip(fast._stacks, kept, strict=True):
            stack._cell = cell

    found = turns({"matmuls": matmuls, "embed": lambda: model.embed(texts)}, times)
    return found["matmuls"] / found["embed"]


def lower(model: Elmo, texts: list[list[str]], exact: list[np.ndarray], times: int) -> dict[str, float]:
    """Measure the lower precisions."""
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
            shown = f"{value:.6f}" if "cosine" in name else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
            print(f"  {name.replace('_', ' '):28} {shown}")


if __name__ == "__main__":
    main()
