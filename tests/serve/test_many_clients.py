"""The shipped model under many clients: the vectors of `embed`, and a large request as a stream."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import polyseme
from polyseme.serve.models import ServedModel, ServedModels
from tests.serve.small_service import client

RAW = {"accept": "application/octet-stream"}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (Path(polyseme.__file__).parent / "models" / "en" / "config.json").is_file(), reason="needs the shipped models"
    ),
]


@pytest.fixture(scope="module")
def encoder() -> Any:
    return polyseme.load("en")


@pytest.fixture(scope="module")
def service(encoder: Any) -> Iterator[TestClient]:
    with client(ServedModels({"en": ServedModel("en", encoder)})) as made:
        yield made


def texts(count: int, longest: int, encoder: Any) -> list[list[str]]:
    source, words = random.Random(0), list(encoder.vocabulary)[3:5000]
    return [source.choices(words, k=source.randint(1, longest)) for _ in range(count)]


def test_a_thousand_sentences_from_32_clients(service: TestClient, encoder: Any) -> None:
    given = texts(1000, 200, encoder)

    def ask(number: int) -> list[np.ndarray]:
        found = []
        for text in given[number::32]:
            answer = service.post("/v1/words", json={"input": [text]}, headers=RAW)
            assert answer.status_code == 200, answer.text
            found.append(np.frombuffer(answer.content, "<f4").reshape(len(text), -1))
        return found

    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(ask, range(32)))
    expected = encoder.embed(given, layers="top")
    for number, found in enumerate(answers):
        for array, other in zip(found, expected[number::32], strict=True):
            assert np.abs(array - other).max() <= 1e-5


def test_five_thousand_sentences_in_one_request(service: TestClient, encoder: Any) -> None:
    given = texts(5000, 20, encoder)
    total = sum(map(len, given))
    with service.stream("POST", "/v1/words", json={"input": given}, headers=RAW) as answer:
        assert answer.status_code == 200 and int(answer.headers["content-length"]) == total * encoder.dim * 4
        content = b"".join(answer.iter_bytes())
    found = np.frombuffer(content, "<f4").reshape(total, encoder.dim)
    expected = np.concatenate(encoder.embed(given, layers="top"))
    assert np.abs(found - expected).max() <= 1e-5
