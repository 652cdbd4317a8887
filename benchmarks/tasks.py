"""Speed of tasks on a CPU: tagging in batches and one sentence at a time, and training on cached frozen layers.

    python -m benchmarks.tasks                      # both, on sentences of CoNLL-2003 under $POLYSEME_DATA
    python -m benchmarks.tasks --size small --train 400

The tagger has random weights. Ratios are of times measured in turn in one run.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import torch

import polyseme
from benchmarks.workload import turns
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES
from polyseme.tasks.data import ExampleBatches
from polyseme.tasks.tagging import Tagging
from polyseme.tasks.tagging_config import TaggingConfig
from polyseme.training.optim import build_optimizer
from polyseme.training.optim_config import OptimConfig

CONLL = "ner_conll2003_en"


def tagging(data: Path, count: int, rounds: int) -> None:
    """Tag raw text with the shipped English model, in batches and one by one."""
    config = TaggingConfig()
    tagger = Tagging.build(config, Tagging.read(data / "eng.train", config)[:2000], [polyseme.load()]).eval()
    raw = [" ".join(each.words) for each in Tagging.read(data / "eng.testb", config)[:count]]
    words = sum(len(tagger.words(text)) for text in raw)

    def one_by_one() -> None:
        for text in raw:
            tagger.predict([text])

    tagger.predict(raw)  # fills the word cache for both
    found = turns({"together": lambda: tagger.predict(raw), "alone": one_by_one}, rounds)
    print(f"tagging {len(raw)} sentences ({words} words) of raw text")
    print(f"  one by one                   {words / found['alone']:10,.0f} words/s")
    print(
        f"  together                     {words / found['together']:10,.0f} words/s {found['alone'] / found['together']:6.1f} x"
    )


def epochs(data: Path, size: str, count: int, rounds: int) -> None:
    """Train one epoch on cached frozen layers, and one with computed layers."""
    torch.manual_seed(0)
    encoder = Elmo(SIZES[size]).eval()
    config = TaggingConfig()
    examples = Tagging.read(data / "eng.train", config)[:count]
    tagger = Tagging.build(config, examples, [encoder])
    fresh, cached = tagger.data(examples), tagger.data(examples)
    optimizer = build_optimizer(OptimConfig(), tagger)
    reading = 0.0

    def epoch(cache: bool) -> None:
        nonlocal reading
        batches = ExampleBatches(cached if cache else fresh, size=32)
        stream = iter(batches)
        for _ in range(batches.batches_per_epoch):
            begun = time.perf_counter()
            batch = next(stream)
            reading += (time.perf_counter() - begun) if cache else 0.0
            loss = tagger.loss(tagger.prepare(batch))
            loss.total.backward()
            optimizer.step()
            optimizer.zero_grad()

    with tempfile.TemporaryDirectory() as folder:
        cached.cache(tagger.features, Path(folder))
        epoch(True)
        reading = 0.0
        found = turns({"cached": lambda: epoch(True), "anew": lambda: epoch(False)}, rounds)
    words, share = cached.words, reading / rounds / found["cached"]
    print(f"\nan epoch of {len(examples)} sentences ({words} words), encoder of size {size}")
    print(f"  layers computed                {words / found['anew']:10,.0f} words/s")
    print(f"  layers from the cache          {words / found['cached']:10,.0f} words/s {found['anew'] / found['cached']:6.1f} x")
    print(f"  reading the cache              {share:10.1%} of the epoch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="original", choices=sorted(SIZES))
    parser.add_argument("--sentences", type=int, default=500, help="sentences to tag")
    parser.add_argument("--train", type=int, default=300, help="sentences to train on")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    data = Path(os.environ["POLYSEME_DATA"], "tasks", CONLL)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads")
    tagging(data, chosen.sentences, chosen.rounds)
    epochs(data, chosen.size, chosen.train, chosen.rounds)


if __name__ == "__main__":
    main()
