"""Malformed requests: the service never fails, and answers the next good one.

Schemathesis makes requests that break the OpenAPI document; the others are broken below it: bytes, encodings, sizes, headers.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from starlette.testclient import TestClient

from tests.serve.small_service import client, searchable, tiny_models

GOOD = {"input": ["The bank of the river."]}
PATHS = [f"/v1/{name}" for name in ("words", "tokenize", "embeddings", "neighbours", "substitutes", "score", "fill", "similar")]
BODIES: list[Any] = [
    {"input": "The bank of the river.", "layers": "all", "model": "tiny"},
    {"input": [["a", "cat"], "漢字 \ud800 \x00 <b>"], "layers": [0, 1]},
    {"text": "The bank of the river.", "word": "bank", "count": 3},
    {"word": "bank"},
]
WRONG: list[Any] = [
    None,
    True,
    -1,
    10**30,
    1e308,
    "",
    "\x00",
    [],
    [[]],
    {},
    {"a": {}},
    "x" * 5000,
    ["\udfff"] * 50,
    [0.5],
    "top ",
]
HEADERS = [
    {},
    {"content-encoding": "gzip"},
    {"content-type": "text/html"},
    {"accept": "image/*;q=nonsense"},
    {"accept": "application/octet-stream;dtype=int9"},
    {"authorization": "Bearer \xff"},
    {"host": "evil.example"},
    {"content-length": "nonsense"},
    {"x-request-id": "a b"},
]


@pytest.fixture(scope="module")
def service() -> Iterator[TestClient]:
    with client(searchable(tiny_models()), max_body_bytes=20_000, max_text_words=500) as made:
        yield made


def check(service: TestClient, answer: Any) -> None:
    assert answer.status_code < 500, (answer.request.url, answer.request.content[:500], answer.text)
    if answer.status_code >= 400:
        assert answer.json()["error"]["message"]


def mutated(source: random.Random) -> bytes:
    """A body with a wrong value, field or byte, or cut off, or compressed."""
    body = dict(source.choice(BODIES))
    for _ in range(source.randint(0, 2)):
        body[source.choice([*body, "model", "layers", "count", "position", "input", "encoding_format", "new"])] = source.choice(
            WRONG
        )
    if source.random() < 0.1:
        del body[source.choice(list(body))]
    content = json.dumps(body, ensure_ascii=source.random() < 0.5).encode("utf-8", "surrogatepass")
    kind = source.randrange(8)
    if kind == 0:
        return content[: source.randint(0, len(content))]
    if kind == 1:
        position = source.randrange(len(content))
        return content[:position] + bytes([source.randrange(256)]) + content[position + 1 :]
    if kind == 2:
        return gzip.compress(content)
    if kind == 3:
        return content.decode("utf-8", "replace").encode("utf-16")
    if kind == 4:
        return source.randbytes(source.randint(0, 200))
    if kind == 5:
        return source.choice([b"[", b'{"a":', b"\x00", b'"']) * source.randint(1, 15_000)
    return content


def send(service: TestClient, count: int, number: int) -> None:
    source = random.Random(number)
    for each in range(count):
        headers = {"content-type": "application/json", **(source.choice(HEADERS) if source.random() < 0.3 else {})}
        raw = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
        check(service, service.request("POST", source.choice(PATHS), content=mutated(source), headers=raw))
        if each % 100 == 0:
            assert service.post("/v1/words", json=GOOD).status_code == 200
    assert service.post("/v1/words", json=GOOD).status_code == 200


def test_malformed_requests(service: TestClient) -> None:
    send(service, 300, 1)


@pytest.mark.slow
def test_nine_thousand_malformed_requests(service: TestClient) -> None:
    send(service, 9000, 2)


@pytest.mark.slow
def test_requests_that_break_the_document(service: TestClient) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    document = schemathesis.openapi.from_dict(service.get("/openapi.json").json())
    count = 0
    for result in document.get_all_operations():
        operation = result.ok()
        for mode in (schemathesis.GenerationMode.NEGATIVE, schemathesis.GenerationMode.POSITIVE):

            @seed(3)
            @settings(
                max_examples=200,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case: Any) -> None:
                nonlocal count
                count += 1
                sent = case.as_transport_kwargs(base_url="http://localhost")
                body = {"json": sent["json"]} if "json" in sent else {"content": sent.get("data") or b""}
                url = sent["url"].encode("utf-8", "replace").decode("utf-8")
                headers = {str(name): str(value).encode("latin-1", "replace") for name, value in dict(sent["headers"]).items()}
                check(service, service.request(sent["method"], url, headers=headers, **body))

            try:
                ask()
            except Exception as error:  # an operation that cannot be broken: it takes nothing
                if "Unsatisfiable" not in type(error).__name__:
                    raise
    assert service.post("/v1/words", json=GOOD).status_code == 200
    assert count > 4000
