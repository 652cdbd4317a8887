"""A service with tiny models for tests, in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.testclient import TestClient

from polyseme.analysis.index import Index
from polyseme.analysis.sense_map import LayerStack
from polyseme.serve.app import create_app
from polyseme.serve.config import ServeConfig
from polyseme.serve.models import ServedModel, ServedModels
from polyseme.text.words import get_splitter
from tests.encoders.small import elmo


def tiny_models() -> ServedModels:
    first, second = elmo(output=True), elmo(seed=1)
    first.splitter = second.splitter = get_splitter("english")
    models = {"tiny": ServedModel("tiny", first), "other": ServedModel("other", second)}
    return ServedModels(models)


@contextmanager
def client(models: ServedModels | None = None, **settings: Any) -> Iterator[TestClient]:
    """A client of a service that is ready."""
    loaded = models or tiny_models()
    app = create_app(ServeConfig(**settings), lambda: loaded)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as made:
        while made.get("/readyz").status_code != 200:
            time.sleep(0.01)
        yield made


def searchable(models: ServedModels) -> ServedModels:
    """Give the first model a small text to search."""
    first = models.model(None)
    layers = LayerStack(1 << 20)
    sentences = ["They sat on the bank .", "Money in the bank .", "A river , a cat and a mat ."]
    first.index, first.source = Index.build(first.encoder, sentences, keep_stack=layers.add), "corpus"
    first.stack = layers.stack
    return models
