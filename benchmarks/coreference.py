"""Memory and time of coreference resolution on a book: `python -m benchmarks.coreference [--words 100000] [--encoder en]`.

Joins and repeats the test books of LitBank under $POLYSEME_DATA to one document, and runs a network of the default size with
random weights on it. Measures the anonymous memory (RssAnon) of the process beyond what it has once the encoder is loaded and
the network built. The bar for 100,000 words: 4 GB. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from pathlib import Path

import torch

import polyseme
from benchmarks.memory import anonymous
from polyseme.tasks.coreference import Coreference
from polyseme.tasks.registry import configure_task
from polyseme.text.labelled.coreference import CoreferenceDocument, read_coreference

LITBANK = "coref_litbank_en/litbank.test.jsonlines.gz"
BAR = 4e9


def joined(documents: list[CoreferenceDocument], words: int) -> CoreferenceDocument:
    """Return one document that repeats all sentences up to so many words."""
    sentences: list[list[str]] = []
    count = 0
    while count < words:
        for document in documents:
            for sentence in document.sentences:
                if count < words:
                    sentences.append(sentence[: words - count])
                    count += len(sentences[-1])
    return CoreferenceDocument(sentences, [])


class Peak:
    """Peak anonymous memory of this process within a block, beyond what it was before."""

    def __enter__(self) -> Peak:
        self._before = self._highest = anonymous(os.getpid())
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            self._highest = max(self._highest, anonymous(os.getpid()))

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def bytes(self) -> int:
        return self._highest - self._before


def built(options: argparse.Namespace, examples: list[CoreferenceDocument]) -> Coreference:
    """Build a network with random weights; warm up the encoder, if any."""
    config, _ = configure_task("coreference", {"positions": options.positions.split(",")})
    encoders = [] if options.encoder == "none" else [polyseme.load(options.encoder)]
    torch.manual_seed(0)
    task = Coreference.build(config, examples, encoders).eval()
    task.to(options.device)
    task.predict([sentence for document in examples[:1] for sentence in document.sentences[:50]])
    return task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--encoder", default="none", help="none, or a model")
    parser.add_argument("--positions", default="input")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    books = read_coreference(Path(os.environ.get("POLYSEME_DATA", ""), "tasks", LITBANK))
    task, document = built(options, books), joined(books, options.words)
    begin, cpu = time.perf_counter(), time.process_time()
    with Peak() as peak:
        (clusters,) = task.predict_data(task.data([document]))
    result = vars(options) | {
        "sentences": len(document.sentences),
        "spans": sum(map(len, clusters)),
        "clusters": len(clusters),
        "peak_gb": round(peak.bytes / 1e9, 2),
        "within_bar": peak.bytes <= BAR,
        "seconds": round(time.perf_counter() - begin, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }
    if options.device != "cpu":
        result["peak_device_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
