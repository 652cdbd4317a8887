"""Hugging Face datasets: columns of vectors and of predictions (extra `datasets`).

    from polyseme.integrations.datasets import add_predictions, add_vectors
    add_vectors(dataset, "text", model="en")               # a column `vector`: one vector for each text
    add_predictions(dataset, "text", task="my-classifier")

The way in needs no import: `polyseme.train("ner", dataset, ...)`, `evaluate` and `pretrain` take a `Dataset`, a data frame, or
the folder that `save_to_disk` wrote.

Both functions use `Dataset.map`, so results are cached on disk and `num_proc` works. What is hashed for that cache is the name
and the hash of a model, not its weights. Forked processes compute with one thread each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.api.tasks import load_task
from polyseme.base.errors import MissingExtraError, UsageError, nearest
from polyseme.encoders.embed_config import TextPooling
from polyseme.encoders.layer_choice import LayerChoice
from polyseme.integrations.model_reference import AnyModel, ModelReference, one_thread_after_fork
from polyseme.tasks.base import Task
from polyseme.tasks.predictions import main_value
from polyseme.text.empty_texts import VECTOR, caller_names_empty_texts, warn_of_empty, without_missing

try:
    from datasets import Dataset
except ImportError as error:
    raise MissingExtraError("polyseme.integrations.datasets needs datasets", "datasets") from error

_tasks: dict[str, Task] = {}


@dataclass(frozen=True)
class _Vectors:
    """Maps a batch of rows to rows with vectors."""

    model: ModelReference
    column: str
    out: str
    layers: LayerChoice | None
    pooling: TextPooling | None
    words: bool

    def __call__(self, batch: dict[str, list[Any]], rows: list[int]) -> dict[str, Any]:
        one_thread_after_fork()
        encoder, texts = self.model.load(), without_missing(batch[self.column])
        if self.words:
            chosen = "mean" if self.layers is None else self.layers
            return {self.out: [array.tolist() for array in encoder.embed(texts, layers=chosen)]}
        vectors = encoder.encode(texts, layers=self.layers, pooling=self.pooling, show_progress_bar=False)
        warn_of_empty(texts, rows, "row", VECTOR)
        return {self.out: np.asarray(vectors)}


@dataclass(frozen=True)
class _Predictions:
    """Maps a batch of rows to rows with predictions."""

    task: str
    column: str
    out: str

    def __call__(self, batch: dict[str, list[Any]], rows: list[int]) -> dict[str, Any]:
        one_thread_after_fork()
        task = _tasks.setdefault(self.task, load_task(self.task)) if self.task not in _tasks else _tasks[self.task]
        texts = without_missing(batch[self.column])
        with caller_names_empty_texts():
            predictions = [each.to_json() for each in task.predict(texts)]
        if not task.multi_line:
            warn_of_empty(texts, rows, "row")
        key = main_value(predictions[0]) or "label"
        return {self.out: [each[key] for each in predictions]}


def add_vectors(
    dataset: Dataset,
    column: str = "text",
    *,
    model: AnyModel = "en",
    out: str = "vector",
    layers: LayerChoice | None = None,
    pooling: TextPooling | None = None,
    words: bool = False,
    **kwargs: Any,
) -> Dataset:
    """Return the dataset with a column of vectors, one for each text as `encode` gives them, or one for each word.

    `column`: texts, or lists of words; None is an empty text. `kwargs`: those of `Dataset.map`, such as `num_proc` and
    `batch_size`.
    """
    _check(dataset, column)
    function = _Vectors(ModelReference.of(model), column, out, layers, pooling, words)
    return dataset.map(function, batched=True, with_indices=True, **{"batch_size": 256, "desc": "embedding", **kwargs})


def add_predictions(
    dataset: Dataset, column: str = "text", *, task: str | Path, out: str = "prediction", **kwargs: Any
) -> Dataset:
    """Return the dataset with a column of predictions of a trained task: labels, or lists of tags.

    None is an empty text, whose prediction means nothing.
    """
    _check(dataset, column)
    if not isinstance(task, str | Path):
        raise UsageError(f"task is {task!r}; expected the folder of a trained task, which other processes can open too")
    function = _Predictions(str(Path(task).expanduser().resolve()), column, out)
    return dataset.map(function, batched=True, with_indices=True, **{"batch_size": 256, "desc": "predicting", **kwargs})


def _check(dataset: Any, column: str) -> None:
    if not isinstance(dataset, Dataset):
        raise UsageError(f"expected a Dataset, got {type(dataset).__name__}; of several splits give one, data['train']")
    if column not in dataset.column_names:
        raise UsageError(f"the dataset has no column {column!r}{nearest(column, dataset.column_names)}")
