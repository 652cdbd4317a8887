"""How long a training will take and what it needs, by trying: some real steps on made-up sentences.

The model, its objective, its batches and the optimizer are the real ones; only the text is invented, with the mean length of
the corpus's sentences and words drawn by rank as in every language (Zipf). What depends on the text beyond that, such as
evaluations (some hundredths of an epoch) and the reading of files, is not counted.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from polyseme.base.run import Run
from polyseme.encoders.elmo import Elmo
from polyseme.pretraining.elmo_fit import ElmoPretraining, build
from polyseme.pretraining.elmo_training import prepare
from polyseme.text.counting.counts import SPECIAL_TOKENS
from polyseme.text.shards.shards import Shards
from polyseme.training.config import TrainConfig
from polyseme.training.distributed import SingleProcess
from polyseme.training.interval_metrics import IntervalMetrics
from polyseme.training.optim import build_optimizer
from polyseme.training.prefetch import PrefetchedBatches
from polyseme.training.state import TrainingState
from polyseme.training.step_runner import StepRunner

SECONDS = 20.0
"""The time to try for; one step may take longer."""
_STEPS = 30  # at most
_SHARES = (16, 4, 1)  # the first steps take batches of so much less: a slow machine shows early that it is one
_TYPES = 100_000  # distinct words that are invented, where the vocabulary does not need more
_FLOAT = 4
_TYPE_BYTES = 16  # of a distinct word in the shards: its count, its letters
_SPELLING_BYTES = 102  # of a distinct word beside the shards, spelled


@dataclass(frozen=True)
class Forecast:
    """What a training needs."""

    parameters: int
    """Numbers that are learned, the output layer included."""
    memory_bytes: int
    """On a GPU its highest use in a step. Elsewhere weights, gradients, the optimizer's memory and the tensors that a step
    keeps for its gradients; short-lived tensors and the program itself are not in it."""
    words_per_second: float
    """Words of the text, in training; where there was time for a part of a batch only, rather too few."""
    seconds: float
    """Of training, to the end of the budget."""
    disk_bytes: int
    """The encoded text; two checkpoints, and a third while it is written; the model, twice while it is written."""


def forecast(
    config: ElmoPretraining, words: int, vocabulary: int, sentences: int, run: Run, *, limit: float = SECONDS
) -> Forecast:
    """Try the training of a corpus of so many words, distinct words (`vocabulary`) and sentences for some seconds."""
    run.seed_all()
    config = config.resolve_defaults(words, run)
    assert config.batch_words is not None
    shards = synthetic_shards(config, words, vocabulary, sentences)
    model = build(shards, config).to(run.device)
    begun = time.monotonic()
    for share in _SHARES:
        left = limit - (time.monotonic() - begun)
        smaller = config.replace(batch_words=max(8, config.batch_words // share))
        tried = _try(shards, model, smaller, run, left, steps=_STEPS if share == _SHARES[-1] else 1)
        if 4 * tried.step > limit - (time.monotonic() - begun):
            break
    parameters = sum(weight.numel() for weight in model.parameters())
    memory = tried.state + _FLOAT * parameters + share * tried.kept
    type_bytes = _TYPE_BYTES + (_SPELLING_BYTES if model.speller is not None else 0)
    return Forecast(
        parameters=parameters,
        memory_bytes=memory if tried.peak is None else tried.peak,
        words_per_second=tried.rate,
        seconds=_seconds(config.train, words, tried, share),
        disk_bytes=4 * words + 8 * sentences + type_bytes * vocabulary + 3 * tried.state + 2 * _FLOAT * parameters,
    )


def synthetic_shards(config: ElmoPretraining, words: int, vocabulary: int, sentences: int) -> Shards:
    """Invented text as shards in memory, as much as `_STEPS` steps take: words by Zipf's law, sentences of the mean length."""
    source = np.random.default_rng(0)
    mean = min(max(words / max(sentences, 1), 1.0), 400.0)
    count = max(2, int(1.5 * _STEPS * (config.batch_words or 0) * config.train.gradient_accumulation_steps / mean))
    lengths = np.maximum(1, source.gamma(2.0, mean / 2.0, size=count).round()).astype(np.int64)
    types = max(1, min(vocabulary, max(config.vocabulary_size, _TYPES)))
    ranks = np.exp(source.random(int(lengths.sum())) * np.log(types + 1)).astype(np.int64) - 1  # chance of rank r: 1 / (r + 1)
    endings = source.poisson(4, size=types)
    drawn = (ranks.clip(0, types - 1) + len(SPECIAL_TOKENS)).astype(np.uint32)
    return Shards(
        drawn,
        np.concatenate([[0], lengths.cumsum()]),
        np.bincount(drawn, minlength=types + len(SPECIAL_TOKENS)),
        fingerprint="made up",
        types=[*SPECIAL_TOKENS, *(f"{rank}{'x' * ending}" for rank, ending in enumerate(endings.tolist()))],
    )


@dataclass(frozen=True)
class _Measured:
    """What some steps showed."""

    step: float
    """Seconds of a step."""
    rate: float
    """Words a second."""
    state: int
    """Bytes of weights and the optimizer's memory: a checkpoint."""
    kept: int
    """Bytes of the tensors that a step keeps for its gradients."""
    peak: int | None
    """Bytes that a GPU held at most."""


def _try(shards: Shards, model: Elmo, config: ElmoPretraining, run: Run, limit: float, *, steps: int) -> _Measured:
    """One step that counts what is kept, then so many more, timed; fewer or none where they would take too long."""
    objective, batches = prepare(shards, range(len(shards)), model, config, run)
    objective.to(run.device)
    prepared = PrefetchedBatches(batches, objective.prepare)
    parts = TrainingState(objective, build_optimizer(config.train.optim, objective), prepared, IntervalMetrics(run.device), run)
    step_runner = StepRunner(config.train, parts, SingleProcess())
    if run.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(run.device)
    with _kept_bytes(model) as kept:
        first = _timed(step_runner, run)  # it allocates and compiles: it counts only where there is no time for others
    timed: list[tuple[int, float]] = []
    spent = first[1]
    while len(timed) < steps and spent + (timed or [first])[-1][1] < limit:
        timed.append(_timed(step_runner, run))
        spent += timed[-1][1]
    timed = timed or [first]
    seconds = sum(took for _, took in timed)
    state = sum(value.numel() * value.element_size() for value in parts.shared().values())
    peak = torch.cuda.max_memory_allocated(run.device) if run.device.type == "cuda" else None
    return _Measured(seconds / len(timed), sum(words for words, _ in timed) / seconds, state, kept[0], peak)


def _timed(step_runner: StepRunner, run: Run) -> tuple[int, float]:
    """A step that moves nothing: its words, its seconds."""
    begun = time.monotonic()
    words = step_runner.step(0.0)
    if run.device.type == "cuda":
        torch.cuda.synchronize(run.device)
    return words, max(time.monotonic() - begun, 1e-9)


@contextlib.contextmanager
def _kept_bytes(model: Elmo) -> Iterator[list[int]]:
    """Counts, for the time of the block, the memory that is kept for gradients; the weights themselves are left out."""
    seen = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    total = [0]

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in seen:
            seen.add(storage.data_ptr())
            total[0] += storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield total


def _seconds(train: TrainConfig, words: int, tried: _Measured, share: int) -> float:
    if train.minutes is not None:
        return 60 * train.minutes
    if train.steps is not None:
        return train.steps * tried.step * share
    return (train.words or (train.epochs or 0.0) * words) / tried.rate
