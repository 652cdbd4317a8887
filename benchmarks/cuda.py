"""Speed-up over the plain loop on this GPU: `python -m benchmarks.cuda [--size original]`.

As `benchmarks.cpu`, on 3,250 sentences (CoNLL-2003 testa, or random ones); the plain loop runs on the first 640 of them. Both
copy their vectors to the host, as `embed` does; `device` leaves them on the GPU. FLOPs as there, against an 8192-wide fp32
matmul.
"""

from __future__ import annotations

import argparse
import json
import sys

import torch

from benchmarks import reference
from benchmarks.workload import cosine, difference, flops, limit, sentences, turns
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES
from polyseme.encoders.embed_config import BATCH_CUDA
from polyseme.text.batching.batches import batch_by_words


def on_device(model: Elmo, texts: list[list[str]]) -> None:
    """Compute all layers of all texts and leave them on the GPU."""
    with torch.inference_mode():
        for rows in batch_by_words([len(text) for text in texts], words=BATCH_CUDA[0], batch_size=BATCH_CUDA[1]):
            model.read([texts[row] for row in rows], start=None, chunk=BATCH_CUDA[0])
    torch.cuda.synchronize()


def measure(size: str, times: int) -> dict[str, float]:
    """Measure all ratios of one size."""
    torch.manual_seed(0)
    torch.backends.cudnn.allow_tf32 = False  # otherwise the plain loop's convolutions are off by 1e-4
    model = Elmo(SIZES[size]).eval().cuda()
    texts = sentences(3250)
    few = texts[:640]
    words, few_words = sum(map(len, texts)), sum(map(len, few))

    def cold() -> None:
        model.cache.clear()
        model.embed(texts)

    result: dict[str, float] = {"words": words}
    exact = model.embed(texts)
    result["max_difference"] = difference(reference.embed(model, few), exact[: len(few)])
    runs = {
        "plain": lambda: reference.embed(model, few),
        "cold": cold,
        "seen": lambda: model.embed(texts),
        "device": lambda: on_device(model, texts),
    }
    found = turns(runs, times)
    rate = {name: (few_words if name == "plain" else words) / seconds for name, seconds in found.items()}
    result |= {f"{name}_words_per_second": value for name, value in rate.items()}
    result |= {f"{name}_ratio": rate[name] / rate["plain"] for name in ("cold", "seen", "device")}
    result["share_of_limit_device"] = flops(model, texts, BATCH_CUDA) / found["device"] / limit("cuda", 8192)

    def new_on_device() -> None:
        model.cache.clear()
        on_device(model, texts)

    for precision in ("fp32", "fp16", "bf16"):
        model.precision = precision
        result[f"{precision}_cosine"] = cosine(exact, model.embed(texts))
        found = turns({"seen": runs["seen"], "device": runs["device"], "new": new_on_device}, times)
        result[f"{precision}_ratio"] = words / found["seen"] / rate["plain"]
        result[f"{precision}_device_words_per_second"] = words / found["device"]
        result[f"{precision}_device_new_words_per_second"] = words / found["new"]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", action="append", choices=sorted(SIZES), help="small and original when left out")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a CUDA device")
    for size in arguments.size or ["small", "original"]:
        print(json.dumps({"size": size, "device": torch.cuda.get_device_name(), **measure(size, arguments.runs)}), flush=True)


if __name__ == "__main__":
    main()
