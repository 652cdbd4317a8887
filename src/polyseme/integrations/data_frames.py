"""pandas and Polars: columns of vectors and of predictions. Neither library is imported: a frame knows its own.

    from polyseme.integrations.data_frames import add_predictions, add_vectors
    frame = add_vectors(frame, "text", model="en")         # a column `vector`: one vector for each text

`model.embed(frame["text"])` and `model.encode(frame["text"])` take a column too, and `polyseme.train` takes a whole frame.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from polyseme.api.tasks import load_task
from polyseme.base.errors import UsageError, nearest
from polyseme.encoders.embed_config import TextPooling
from polyseme.encoders.layer_choice import LayerChoice
from polyseme.integrations.model_reference import AnyModel, shared_model
from polyseme.tasks.base import Task
from polyseme.tasks.predictions import main_value
from polyseme.text.empty_texts import VECTOR, caller_names_empty_texts, warn_of_empty, without_missing

F = TypeVar("F")


def add_vectors(
    frame: F,
    column: str = "text",
    *,
    model: AnyModel = "en",
    out: str = "vector",
    layers: LayerChoice | None = None,
    pooling: TextPooling | None = None,
) -> F:
    """Return the frame with a column of vectors, as `encode` gives them: arrays in pandas, `Array(Float32)` in Polars.

    An empty cell (None, NaN) is an empty text, whose vector is zeros.
    """
    texts = _texts(frame, column)
    vectors = np.asarray(shared_model(model).encode(texts, layers=layers, pooling=pooling, show_progress_bar=False))
    warn_of_empty(texts, noun="row", what=VECTOR)
    return _with_column(frame, out, vectors)


def add_predictions(
    frame: F, column: str = "text", *, task: str | Path | Task, out: str = "prediction", probability: str | None = None
) -> F:
    """Return the frame with a column of predictions of a trained task: labels, or lists of tags.

    `probability`: name of a further column, for the probability of each label.
    An empty cell (None, NaN) is an empty text, whose prediction means nothing.
    """
    texts = _texts(frame, column)
    trained = task if isinstance(task, Task) else load_task(task)
    with caller_names_empty_texts():
        predictions = [each.to_json() for each in trained.predict(texts)] if texts else []
    if not trained.multi_line:
        warn_of_empty(texts, noun="row")
    key = (main_value(predictions[0]) if predictions else None) or "label"
    frame = _with_column(frame, out, [each[key] for each in predictions])
    if probability is None:
        return frame
    if predictions and "probability" not in predictions[0]:
        raise UsageError(f"probability is {probability!r}, but the predictions of {trained.kind} have none: leave it out")
    return _with_column(frame, probability, [each["probability"] for each in predictions])


def _texts(frame: Any, column: str) -> list[Any]:
    if not hasattr(frame, "columns"):
        raise UsageError(f"expected a data frame of pandas or Polars, got {type(frame).__name__}")
    names = [str(name) for name in frame.columns]
    if column not in names:
        raise UsageError(f"the data frame has no column {column!r}{nearest(column, names)}")
    cells = (each if isinstance(each, str) else each.tolist() if hasattr(each, "tolist") else each for each in frame[column])
    texts = without_missing(cells)
    for number, text in enumerate(texts):
        if not isinstance(text, str | list):
            raise UsageError(f"row {number} of {column} is {text!r}; expected a text or words: convert the column to texts")
    return texts


def _with_column(frame: Any, name: str, values: Any) -> Any:
    if hasattr(frame, "with_columns"):  # Polars, which makes a series of its own kind
        series = type(frame)({name: values}).to_series()
        return frame.with_columns(series)
    return frame.assign(**{name: list(values)})
