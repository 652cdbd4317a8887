"""Estimate how long the training of an ELMo will take and what it needs, by some real steps on synthetic sentences.

The model, its objective, its batches and the optimizer are real; only the text is synthetic, with the mean sentence length of
the corpus and words sampled by Zipf's law. Evaluations (some hundredths of an epoch) and reading files are not counted.
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
from polyseme.pretraining.defaults import DIVISORS, TRAINED, batch_divisor, fitted_vocabulary
from polyseme.pretraining.elmo_config import ElmoPretraining
from polyseme.pretraining.elmo_job import build, training_data
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import SPECIAL_TOKENS
from polyseme.training.config import TrainConfig
from polyseme.training.distributed import SingleProcess
from polyseme.training.interval_metrics import IntervalMetrics
from polyseme.training.optim import build_optimizer
from polyseme.training.prefetch import PrefetchedBatches
from polyseme.training.state import TrainingState
from polyseme.training.step_runner import StepRunner

SECONDS = 20.0
"""Time limit; one step may take longer."""
_STEPS = 30  # at most
_DIVISORS = (16, 4, 1)  # of the batch size: the first steps are smaller, to find out early that a machine is slow
_TYPES = 100_000  # distinct words of the synthetic text, if the vocabulary does not need more
_FLOAT = 4
_TYPE_BYTES = 16  # of a distinct word in the shards: its count and its characters
_CHARACTER_ID_BYTES = 102  # of a distinct word beside the shards


@dataclass(frozen=True)
class Forecast:
    """What a training needs."""

    parameters: int
    """Trained parameters, the output layer included."""
    memory_bytes: int
    """On a GPU, the peak of a step. On a CPU, weights, gradients, optimizer state and the tensors that a step saves for its
    gradients, without temporary tensors and the program itself."""
    words_per_second: float
    """Training speed; rather too low where there was time for a part of a batch only."""
    seconds: float
    """Training time, to the end of the budget."""
    disk_bytes: int
    """The encoded text, two checkpoints and a third while it is written, and the model, twice while it is written."""
    on_gpu: bool = False
    """Whether the memory is that of a GPU."""


def forecast(
    config: ElmoPretraining, words: int, vocabulary: int, sentences: int, run: Run, *, limit: float = SECONDS
) -> Forecast:
    """Estimate the training on a corpus of so many words, distinct words (`vocabulary`) and sentences."""
    run.seed_all()
    is_open = config.batch_words is None
    config = config.resolve_defaults(words, run, fitted_vocabulary(words, vocabulary))
    assert config.batch_words is not None
    shards = synthetic_shards(config, words, vocabulary, sentences)
    model = build(shards, config).to(run.device)
    began = time.monotonic()
    for divisor in _DIVISORS:
        left = limit - (time.monotonic() - began)
        smaller = config.replace(batch_words=max(8, config.batch_words // divisor))
        measured = _measure(shards, model, smaller, run, left, steps=_STEPS if divisor == 1 else 1)
        if 4 * measured.step > limit - (time.monotonic() - began):
            break
    if is_open and config.train.minutes is not None and run.device.type == "cpu" and divisor == 1:
        measured = _measure_fitted(shards, model, config, run, measured, limit - (time.monotonic() - began))
    parameters = sum(weight.numel() for weight in model.parameters())
    memory = measured.state + _FLOAT * parameters + divisor * measured.saved
    type_bytes = _TYPE_BYTES + (_CHARACTER_ID_BYTES if model.speller is not None else 0)
    return Forecast(
        parameters=parameters,
        memory_bytes=memory if measured.peak is None else measured.peak,
        words_per_second=measured.rate,
        seconds=_seconds(config.train, words, measured, divisor),
        disk_bytes=4 * words + 8 * sentences + type_bytes * vocabulary + 3 * measured.state + 2 * _FLOAT * parameters,
        on_gpu=measured.peak is not None,
    )


def _measure_fitted(
    shards: Shards, model: Elmo, config: ElmoPretraining, run: Run, whole: _Measured, limit: float
) -> _Measured:
    """Measure with the batch that a training by minutes takes (`defaults.batch_divisor`)."""
    assert config.train.minutes is not None
    smallest = _measure(shards, model, config.with_smaller_batch(DIVISORS[-1]), run, limit / 4, steps=_STEPS // 4)
    chosen = batch_divisor(60 * TRAINED * config.train.minutes, smallest.step, whole.step)
    if chosen == 1:
        return whole
    return _measure(shards, model, config.with_smaller_batch(chosen), run, limit / 2, steps=_STEPS)


def synthetic_shards(config: ElmoPretraining, words: int, vocabulary: int, sentences: int) -> Shards:
    """Return synthetic text for `_STEPS` steps as shards in memory."""
    random = np.random.default_rng(0)
    mean = min(max(words / max(sentences, 1), 1.0), 400.0)
    count = max(2, int(1.5 * _STEPS * (config.batch_words or 0) * config.train.gradient_accumulation_steps / mean))
    lengths = np.maximum(1, random.gamma(2.0, mean / 2.0, size=count).round()).astype(np.int64)
    types = max(1, min(vocabulary, max(config.vocabulary_size or 0, _TYPES)))
    ranks = np.exp(random.random(int(lengths.sum())) * np.log(types + 1)).astype(np.int64) - 1  # P(r) ~ 1 / (r + 1)
    endings = random.poisson(4, size=types)
    sampled = (ranks.clip(0, types - 1) + len(SPECIAL_TOKENS)).astype(np.uint32)
    return Shards(
        sampled,
        np.concatenate([[0], lengths.cumsum()]),
        np.bincount(sampled, minlength=types + len(SPECIAL_TOKENS)),
        fingerprint="synthetic",
        types=[*SPECIAL_TOKENS, *(f"{rank}{'x' * ending}" for rank, ending in enumerate(endings.tolist()))],
    )


@dataclass(frozen=True)
class _Measured:
    """What some steps took."""

    step: float
    """Seconds per step."""
    rate: float
    """Words per second."""
    state: int
    """Bytes of weights and optimizer state: a checkpoint."""
    saved: int
    """Bytes of the tensors that a step saves for its gradients."""
    peak: int | None
    """Largest number of bytes that a GPU held."""


def _measure(shards: Shards, model: Elmo, config: ElmoPretraining, run: Run, limit: float, *, steps: int) -> _Measured:
    """Make a step that counts the saved tensors, then time so many more, or fewer within the time limit."""
    objective, batches = training_data(config, model, shards, range(len(shards)), run)
    objective.to(run.device)
    prefetched = PrefetchedBatches(batches, objective.prepare)
    optimizer = build_optimizer(config.train.optim, objective)
    training = TrainingState(objective, optimizer, prefetched, IntervalMetrics(run.device), run)
    step_runner = StepRunner(config.train, training, SingleProcess())
    if run.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(run.device)
    with _count_saved_bytes(model) as saved:
        first = _timed(step_runner, run)  # allocates and compiles: counts only if there is no time for others
    timed: list[tuple[int, float]] = []
    spent = first[1]
    while len(timed) < steps and spent + (timed or [first])[-1][1] < limit:
        timed.append(_timed(step_runner, run))
        spent += timed[-1][1]
    timed = timed or [first]
    seconds = sum(took for _, took in timed)
    state = sum(value.numel() * value.element_size() for value in training.shared().values())
    peak = torch.cuda.max_memory_allocated(run.device) if run.device.type == "cuda" else None
    return _Measured(seconds / len(timed), sum(words for words, _ in timed) / seconds, state, saved[0], peak)


def _timed(step_runner: StepRunner, run: Run) -> tuple[int, float]:
    """Make a step that changes nothing, and return its words and seconds."""
    began = time.monotonic()
    words = step_runner.step(0.0)
    if run.device.type == "cuda":
        torch.cuda.synchronize(run.device)
    return words, max(time.monotonic() - began, 1e-9)


@contextlib.contextmanager
def _count_saved_bytes(model: Elmo) -> Iterator[list[int]]:
    """Count the bytes that are saved for gradients during the block, without those of the weights."""
    seen = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    total = [0]

    def save(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in seen:
            seen.add(storage.data_ptr())
            total[0] += storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        yield total


def _seconds(train: TrainConfig, words: int, measured: _Measured, divisor: int) -> float:
    if train.minutes is not None:
        return 60 * train.minutes
    if train.steps is not None:
        return train.steps * measured.step * divisor
    return (train.words or (train.epochs or 0.0) * words) / measured.rate
