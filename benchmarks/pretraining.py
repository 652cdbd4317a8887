"""Words per second of pre-training, end to end: `python -m benchmarks.pretraining [--size small] [--device cuda] ...`.

Everything that a step of `polyseme pretrain` does: packed rows from the shards, distinct words, token encoder, both LSTMs,
output layer, gradients, clipping, optimizer. Words are those of the text, each counted once although both directions train on
it. The text is the English training text of POLYSEME_DATA where that is set, else words drawn by Zipf's law. `--plain` adds
the plain loop (characters of every token, one time step at a time) on the same batches, with its loss beside ours, in turns.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch

from benchmarks.plain_pretraining import PlainObjective
from benchmarks.workload import drawn, limit
from polyseme.base.run import Run
from polyseme.pretraining.elmo_config import ElmoPretraining
from polyseme.pretraining.elmo_job import build
from polyseme.pretraining.elmo_packed import PackedElmoObjective, PackedTensors
from polyseme.text.batching.packed import PackedBatches
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.training.optim import build_optimizer, clip_gradients
from polyseme.training.optim_config import OptimConfig
from polyseme.training.prefetch import PrefetchedBatches
from polyseme.training.trainer import PREFETCHED


def text(folder: Path, size: int) -> Corpus:
    """Return a corpus of so many bytes."""
    file = folder / "text.txt"
    source = Path(os.environ.get("POLYSEME_DATA", "")) / "corpora/en/en-mix.txt.xz"
    if source.is_file():
        with lzma.open(source, "rb") as packed:
            file.write_bytes(packed.read(size))
        return Corpus(file, splitter="english", sentences="english")
    file.write_text("\n".join(" ".join(words) for words in drawn(size // 80)), encoding="utf-8")
    return Corpus(file, splitter="whitespace", sentences="lines")


class Training:
    """A model in training, step by step."""

    def __init__(self, objective: PackedElmoObjective, run: Run) -> None:
        self.objective, self.run = objective.to(run.device).train(), run
        self.config = OptimConfig()
        self.optimizer = build_optimizer(self.config, objective)

    def step(self, batch: PackedTensors) -> torch.Tensor:
        """Run one step, as the training loop does."""
        with torch.autocast(self.run.device.type, dtype=torch.bfloat16, enabled=self.run.precision == "bf16"):
            loss = self.objective.loss(batch).total
        loss.backward()
        clip_gradients(self.config, self.optimizer)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def time(self, batches: Iterator[PackedTensors], steps: int) -> tuple[float, list[float]]:
        """Return words per second and the losses."""
        torch.manual_seed(steps)  # the same dropout and the same negatives for whoever is measured
        losses, words = [], 0
        begun = time.perf_counter()
        for batch in islice(batches, steps):
            losses.append(self.step(batch))
            words += batch.words
        if self.run.device.type == "cuda":
            torch.cuda.synchronize()
        return words / (time.perf_counter() - begun), [loss.item() for loss in losses]


def flops(objective: PackedElmoObjective, batch: PackedTensors, negatives: int | None) -> float:
    """Return the FLOPs of the matmuls of one step, forward and backward (distinct words once)."""
    model = objective.model
    places, distinct = batch.index.numel(), int(batch.index.max()) + 1
    lstm = sum(p.numel() for p in model.lstm.parameters() if p.dim() == 2) / 2  # each direction reads half the places
    highways = sum(p.numel() for n, p in model.tokens.named_parameters() if p.dim() == 2 and "embedding" not in n)
    output = min(negatives or model.output.size, model.output.size) * model.output.dim  # type: ignore[union-attr]
    return 6.0 * (places * (lstm + output) + distinct * highways)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--size", default="small")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default=None)
    parser.add_argument("--rows", type=int, default=128)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--vocabulary", type=int, default=50_000)
    parser.add_argument("--negatives", type=int, default=None)
    parser.add_argument("--batches", type=int, default=30, help="measured batches; a third of it goes before, to warm up")
    parser.add_argument("--bytes", type=int, default=30_000_000, help="of text")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    run = Run.from_environment(device=options.device, precision=options.precision)
    with tempfile.TemporaryDirectory() as folder:
        corpus = text(Path(folder), options.bytes)
        shards = Shards.build(corpus, Path(folder) / "shards")
        settings = {"output": "sampled", "negatives": options.negatives} if options.negatives else {}
        config = ElmoPretraining(size=options.size, vocabulary_size=options.vocabulary, **settings)  # type: ignore[arg-type]

        def training(kind: type[PackedElmoObjective]) -> tuple[Training, Iterator[PackedTensors]]:
            run.seed_all()
            model = build(shards, config, corpus)
            batches = PackedBatches(shards, range(len(shards)), batch_size=options.rows, bptt=options.steps)
            objective = kind(model, shards, negatives=config.samples)
            made = Training(objective, run)
            return made, iter(
                PrefetchedBatches(batches, objective.prepare, prefetch=PREFETCHED if run.device.type == "cuda" else 0)
            )

        result: dict[str, object] = {
            **vars(options),
            "precision": run.precision,
            "vocabulary": len(shards.most_frequent(options.vocabulary)),
        }
        fast, batches = training(PackedElmoObjective)
        fast.time(batches, max(3, options.batches // 3))
        rounds = 3 if options.plain else 1
        if options.plain:
            plain, same = training(PlainObjective)
            plain.time(same, max(3, options.batches // 3))
        rates: dict[str, list[float]] = {"fast": [], "plain": []}
        worst = 0.0
        for _ in range(rounds):
            rate, losses = fast.time(batches, options.batches // rounds)
            rates["fast"].append(rate)
            if options.plain:
                rate, others = plain.time(same, options.batches // rounds)
                rates["plain"].append(rate)
                worst = max(worst, *(abs(a - b) / b for a, b in zip(losses, others, strict=True)))
        result["words_per_second"] = max(rates["fast"])
        if options.plain:
            result["plain_words_per_second"] = max(rates["plain"])
            result["ratio"] = max(rates["fast"]) / max(rates["plain"])
            result["largest_relative_difference_of_losses"] = worst
        batch = next(batches)
        work = flops(fast.objective, batch, config.samples)
        result["tflops"] = work / batch.words * max(rates["fast"]) / 1e12
        if run.device.type == "cuda":
            kind = torch.bfloat16 if run.precision == "bf16" else torch.float32
            result["share_of_measured_peak"] = work / batch.words * max(rates["fast"]) / limit("cuda", 8192, kind)
            result["memory_gib"] = torch.cuda.max_memory_allocated() / 2**30
        if options.profile:
            from torch.profiler import ProfilerActivity, profile

            kinds = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (run.device.type == "cuda")
            with profile(activities=kinds) as seen:
                fast.time(batches, 5)
            order = "cuda_time_total" if run.device.type == "cuda" else "cpu_time_total"
            print(seen.key_averages().table(sort_by="self_" + order, row_limit=40, max_name_column_width=60))
        print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
