"""The service over HTTP, in this process: vectors equal `embed`, limits and errors are named, nothing leaks."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from polyseme.serve import limits, requests
from polyseme.serve.access import AccessLog
from polyseme.serve.app import create_app
from polyseme.serve.config import ServeConfig
from polyseme.serve.logs import JsonLines, TextLines
from polyseme.serve.metrics import Metrics
from polyseme.serve.models import ServedModels, names_of
from tests.encoders.small import sentences
from tests.serve.small_service import client, tiny_models

JSON = {"content-type": "application/json"}
RAW = {"accept": "application/octet-stream"}


@pytest.fixture(scope="module")
def models() -> ServedModels:
    return tiny_models()


@pytest.fixture(scope="module")
def service(models: ServedModels) -> Iterator[TestClient]:
    with client(models, max_text_words=300, max_texts=1000, max_body_bytes=100_000, batch_words=200) as made:
        yield made


def vectors(answer: Any) -> list[np.ndarray]:
    assert answer.status_code == 200, answer.text
    return [np.array(each["vectors"], dtype=np.float32).reshape(each["shape"]) for each in answer.json()["data"]]


def message(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    return str(answer.json()["error"]["message"])


# ---- vectors


def test_words_of_texts_and_lists(service: TestClient, models: ServedModels) -> None:
    texts = ["The bank,  the river.", ["a", "cat"], ""]
    answer = service.post("/v1/words", json={"input": texts, "layers": "all"})
    data = answer.json()["data"]
    assert data[0]["words"] == ["The", "bank", ",", "the", "river", "."]
    assert [texts[0][begin:end] for begin, end in data[0]["offsets"]] == data[0]["words"]
    assert data[1]["offsets"] is None
    expected = models.model("tiny").encoder.embed(texts)
    for found, array in zip(vectors(answer), expected, strict=True):
        np.testing.assert_allclose(found, array, atol=1e-6)


@pytest.mark.parametrize("layers", ["top", "mean", 1, [0, 2], "all"])
def test_layers_and_formats(service: TestClient, models: ServedModels, layers: Any) -> None:
    texts = sentences(12, longest=30)
    body = {"model": "other", "input": texts, "layers": layers}
    expected = models.model("other").encoder.embed(texts, layers=layers)
    for found, array in zip(vectors(service.post("/v1/words", json=body)), expected, strict=True):
        np.testing.assert_allclose(found, array, atol=1e-6)
    coded = service.post("/v1/words", json={**body, "encoding_format": "base64"}).json()["data"]
    for item, array in zip(coded, expected, strict=True):
        numbers = np.frombuffer(base64.b64decode(item["vectors"]), "<f4")
        np.testing.assert_allclose(numbers.reshape(item["shape"]), array, atol=1e-6)
    for accept, dtype, tolerance in (("", "<f4", 1e-6), (";dtype=float16", "<f2", 1e-3)):
        raw = service.post("/v1/words", json=body, headers={"accept": RAW["accept"] + accept})
        assert raw.headers["x-word-counts"] == ",".join(str(len(text)) for text in texts)
        numbers = np.frombuffer(raw.content, dtype)
        np.testing.assert_allclose(numbers, np.concatenate([each.ravel() for each in expected]), atol=tolerance)


def test_concurrent_clients_get_the_vectors_of_embed(service: TestClient, models: ServedModels) -> None:
    texts = [text for text in sentences(64, longest=40, seed=3) if text]

    def ask(number: int) -> list[np.ndarray]:
        return vectors(service.post("/v1/words", json={"input": texts[number::8]}))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    for number, found in enumerate(answers):
        expected = models.model("tiny").encoder.embed(texts[number::8], layers="top")
        for array, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(array, other, atol=1e-5)


def test_embeddings_are_those_of_encode_and_openai_reads_them(service: TestClient, models: ServedModels) -> None:
    texts = ["The bank of the river.", "", "a cat"]
    expected = models.model("tiny").encoder.encode(texts, show_progress_bar=False)
    answer = service.post("/v1/embeddings", json={"model": "tiny", "input": texts}).json()
    np.testing.assert_allclose([each["embedding"] for each in answer["data"]], expected, atol=1e-6)
    assert answer["usage"] == {"prompt_tokens": 8, "total_tokens": 8}

    openai = pytest.importorskip("openai")
    theirs = openai.OpenAI(base_url="http://localhost/v1", api_key="none", http_client=service)
    found = theirs.embeddings.create(model="tiny", input=texts)  # asks for base64
    np.testing.assert_allclose([each.embedding for each in found.data], expected, atol=1e-6)
    assert [each.id for each in theirs.models.list()] == ["tiny", "other"]
    with pytest.raises(openai.NotFoundError, match="loaded: tiny, other"):
        theirs.embeddings.create(model="text-embedding-3-small", input="a")


def test_tokenize(service: TestClient) -> None:
    answer = service.post("/v1/tokenize", json={"input": "It's so."}).json()
    assert answer["data"] == [{"index": 0, "words": ["It", "'s", "so", "."], "offsets": [[0, 2], [2, 4], [5, 7], [7, 8]]}]


def test_a_text_that_cannot_be_computed_fails_alone(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    models = tiny_models()
    encoder = models.model(None).encoder
    embed = encoder.embed

    def poisoned(texts: Any, **settings: Any) -> Any:
        if any("poison" in text for text in texts):
            raise RuntimeError(f"secret {texts}") from KeyError("secret")
        return embed(texts, **settings)

    monkeypatch.setattr(encoder, "embed", poisoned)
    with client(models) as service:
        data = service.post("/v1/words", json={"input": ["a cat", "poison", "a dog"]}).json()["data"]
        assert [each["vectors"] is None for each in data] == [False, True, False]
        assert data[1]["error"]["code"] == "internal" and "secret" not in str(data)
        raw = service.post("/v1/words", json={"input": ["a cat", "poison", "a dog"]}, headers=RAW)
        assert np.isnan(np.frombuffer(raw.content, "<f4").reshape(5, -1)).any(1).tolist() == [False, False, True, False, False]
        assert service.post("/v1/words", json={"input": "poison"}).status_code == 500
        assert re.search(
            r"internal error on a text of .*RuntimeError at .*test_app\.py:\d+ in poisoned, caused by KeyError", caplog.text
        )
        assert "secret" not in caplog.text and "poison'" not in caplog.text
        assert service.post("/v1/words", json={"input": "a cat"}).status_code == 200


def test_an_internal_error_is_logged_with_its_frames_and_without_texts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("polyseme.serve.vectors.tokenize", broken)
    app = create_app(ServeConfig(), tiny_models)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as service:
        answer = service.post("/v1/tokenize", json={"input": "secret"})
    assert answer.status_code == 500 and "secret" not in answer.text
    assert re.search(
        r"internal error, .*: RuntimeError at .*app\.py:\d+ in tokenize, .*test_app\.py:\d+ in broken", caplog.text
    )
    assert "secret" not in caplog.text


@pytest.mark.parametrize("form", [TextLines(), JsonLines()])
def test_a_record_with_an_exception_has_its_frames(form: logging.Formatter) -> None:
    """As uvicorn logs errors of the application."""
    try:
        raise ValueError("secret")
    except ValueError as error:
        record = logging.LogRecord(
            "uvicorn.error", logging.ERROR, "", 0, "Exception\n", (), (ValueError, error, error.__traceback__)
        )
    line = form.format(record)
    assert "test_app.py" in line and "in test_a_record_with_an_exception_has_its_frames" in line
    assert "secret" not in line and "\n" not in line


# ---- what cannot be read


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({}, 422, "input: it is missing"),
        ({"input": []}, 422, "input: it is empty"),
        ({"input": ["a", 3]}, 422, "item 1 is a number"),
        ({"input": [["a", None]]}, 422, "word 1 of item 0 is null"),
        ({"input": "a", "layers": 9}, 422, "a number from 0 to 2"),
        ({"input": "a", "layers": True}, 422, "layers: allowed: all, top, mean, the number of a layer, or a list of numbers"),
        ({"input": "a", "layers": "last"}, 422, "layers: allowed: all, top, mean"),
        ({"input": "a", "inputs": "b"}, 422, "inputs: no field has this name"),
        ({"input": ["a", "a " * 301]}, 422, "item 1 has 301 words or more; the limit is 300 (--max-text-words)"),
        ({"input": ["a", "a" * 20_000]}, 422, "item 1 has 400 words or more; the limit is 300 (--max-text-words)"),
        ({"input": ["a"] * 1001}, 422, "1,001 texts; the limit is 1,000 (--max-texts)"),
        ({"input": "a", "model": "../../etc/passwd"}, 404, "loaded: tiny, other"),
        ([], 422, ""),
    ],
)
def test_wrong_bodies_are_refused_with_the_reason(service: TestClient, body: Any, status: int, says: str) -> None:
    assert says in message(service.post("/v1/words", json=body), status)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"input": "\xff"}', "not UTF-8: byte 11"),
        (b'{"input": NaN}', "NaN"),
        (b'{"input": ' + b"9" * 5000 + b"}", "number"),
        (b"[" * 50_000, "nested too deeply"),
        (b'{"input": ' + b"[" * 9 + b"]" * 9 + b"}", "nested too deeply"),
        (b'{"a\\\\": "\\"", "b": ' + b"[" * 9 + b"]" * 9 + b"}", "nested too deeply"),
    ],
)
def test_broken_json_is_refused(service: TestClient, content: bytes, says: str) -> None:
    assert says in message(service.post("/v1/words", content=content, headers=JSON), 422)


MANY = {
    "empty lists": (b"[]", "5,002 lists and numbers; allowed: 2,024"),
    "lists in lists": (b"[[[]]]", "15,002 lists and numbers"),
    "words in lists": (b'["a"]', "5,002 lists and numbers"),
    "objects": (b"{}", "5,002 lists and numbers"),
    "numbers": (b"1", "4,998 lists and numbers"),
    "fields": (b'{"a":1}', "5,001 fields; allowed: 64"),
    "texts": (b'""', "a list has 5,000 items; the limit is 1,000 (the larger of --max-texts and --max-text-words)"),
}


@pytest.mark.parametrize("name", MANY)
def test_what_the_parser_would_take_long_for_is_refused(
    service: TestClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    item, says = MANY[name]
    content = b'{"input":[' + b",".join([item] * 5000) + b"]}"
    if name != "texts":  # these are cheap to parse, and refused before each is looked at
        monkeypatch.setattr(limits, "json", None)
    monkeypatch.setattr(requests, "checked_text", lambda *_: pytest.fail("each of them was looked at"))
    assert says in message(service.post("/v1/words", content=content, headers=JSON), 422)


def test_many_words_and_signs_within_texts_are_no_lists(service: TestClient) -> None:
    assert service.post("/v1/tokenize", json={"input": ["[{,:" * 20] * 1000}).status_code == 200
    assert service.post("/v1/tokenize", json={"input": [["a"] * 10] * 1000}).status_code == 200


def test_large_bodies_are_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []

    def watched(body: bytes, **settings: Any) -> Any:
        threads.append(asyncio._get_running_loop() is None)
        return parsed(body, **settings)

    parsed = limits.parsed
    monkeypatch.setattr(limits, "parsed", watched)
    with client() as service:
        assert service.post("/v1/tokenize", json={"input": "a"}).status_code == 200
        assert service.post("/v1/tokenize", json={"input": ["a " * 1000] * 100}).status_code == 200
        zipped = gzip.compress(json.dumps({"input": "a"}).encode())
        headers = {**JSON, "content-encoding": "gzip"}
        assert service.post("/v1/tokenize", content=zipped, headers=headers).status_code == 200
    assert threads == [False, True, True]


def test_other_types_are_refused(service: TestClient) -> None:
    body = json.dumps({"input": "a"}).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", ""):
        assert "application/json" in message(service.post("/v1/words", content=body, headers={"content-type": kind}), 415)
    assert "gzip" in message(service.post("/v1/words", content=body, headers={**JSON, "content-encoding": "br"}), 415)
    assert "Accept" in message(service.post("/v1/words", json={"input": "a"}, headers={"accept": "image/png"}), 406)


def test_large_bodies_are_refused_also_when_compressed(service: TestClient) -> None:
    def body(words: int) -> bytes:
        return json.dumps({"input": ["a"] * words}).encode()

    assert "100,000 bytes (--max-body-bytes)" in message(service.post("/v1/words", content=body(30_000), headers=JSON), 413)
    zipped = {**JSON, "content-encoding": "gzip"}
    assert service.post("/v1/words", content=gzip.compress(body(10)), headers=zipped).status_code == 200
    bomb = gzip.compress(b" " * 10_000_000)
    assert "decompressed" in message(service.post("/v1/words", content=bomb, headers=zipped), 413)
    assert "gzip" in message(service.post("/v1/words", content=gzip.compress(body(10))[:-5], headers=zipped), 422)
    assert "gzip" in message(service.post("/v1/words", content=b"{}", headers=zipped), 422)


def test_unknown_addresses_and_methods(service: TestClient) -> None:
    assert "/openapi.json" in message(service.get("/v2/words"), 404)
    assert "/openapi.json" in message(service.post("/v1/words/", json={"input": "a"}), 404)  # no redirect: it would lose https
    assert "allowed: POST" in message(service.get("/v1/words"), 405)
    for path in ("/", "/livez", "/readyz"):
        assert service.head(path).status_code == 200
    assert "none is loaded" in message(service.post("/v1/predict/tagger", json={"input": "a"}), 404)


# ---- who may ask


def test_only_our_host_names_are_answered(service: TestClient) -> None:
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1", "[::1]:80", "10.0.0.7:8000"):
        assert service.get("/v1/models", headers={"host": host}).status_code == 200
    for host in ("evil.example", "localhost.evil.example", "", "a@localhost"):
        assert "--allow-host" in message(service.get("/v1/models", headers={"host": host}), 421)
    assert service.get("/livez", headers={"host": "evil.example"}).status_code == 200


def test_a_key_is_asked_for_everywhere_but_in_health_checks(models: ServedModels) -> None:
    app = create_app(ServeConfig(api_key="sesame", allow_host=("api.example",)), lambda: models)
    with TestClient(app, base_url="http://api.example") as service:
        assert service.get("/livez").status_code == 200
        for path in ("/v1/models", "/metrics", "/openapi.json", "/nothing"):
            assert "Authorization: Bearer" in message(service.get(path), 401)
            for key in ("Bearer wrong", "Bearer sesam", "Bearer sesame2", "sesame", "Basic sesame", "Bearer Sésame"):
                assert service.get(path, headers={"authorization": key.encode()}).status_code == 401
        assert service.get("/metrics", headers={"authorization": "Bearer sesame"}).status_code == 200


def test_cors_is_off_unless_an_origin_is_allowed(service: TestClient, models: ServedModels) -> None:
    ask = {"origin": "https://page.example", "access-control-request-method": "POST"}
    assert "access-control-allow-origin" not in service.options("/v1/words", headers=ask).headers
    app = create_app(ServeConfig(allow_origin=("https://page.example",)), lambda: models)
    with TestClient(app, base_url="http://localhost") as open_service:
        answer = open_service.options("/v1/words", headers=ask)
        assert answer.headers["access-control-allow-origin"] == "https://page.example"
        other = open_service.options("/v1/words", headers={**ask, "origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers


# ---- health, metrics, logs


def test_not_ready_until_loaded(caplog: pytest.LogCaptureFixture) -> None:
    import threading

    may_load = threading.Event()

    def load() -> ServedModels:
        assert may_load.wait(10)
        return tiny_models()

    app, access = create_app(ServeConfig(), load), "polyseme.serve.access"
    with TestClient(app, base_url="http://localhost") as service, caplog.at_level(logging.INFO, access):
        assert service.get("/livez").status_code == 200
        assert "loading" in message(service.get("/readyz"), 503)
        assert [each for each in caplog.records if each.name == access] == []  # asked many times, each a line otherwise
        answer = service.post("/v1/words", json={"input": "a"})
        assert "loading" in message(answer, 503) and answer.headers["retry-after"] == "1"
        may_load.set()
        while service.get("/readyz").status_code != 200:
            pass
        assert service.post("/v1/words", json={"input": "a"}).status_code == 200


def test_a_failure_to_load_is_reported() -> None:
    def load() -> ServedModels:
        raise OSError("no such file")

    failures: list[Exception] = []
    with TestClient(create_app(ServeConfig(), load, failures.append), base_url="http://localhost") as service:
        while not failures:
            service.get("/livez")
        assert service.get("/readyz").status_code == 503
    assert "no such file" in str(failures[0])


def test_metrics_count_requests_words_and_failures(models: ServedModels) -> None:
    with client(models) as service:
        service.post("/v1/words", json={"input": ["a cat", "a dog sat"]})
        service.post("/v1/words", json={})
        lines = service.get("/metrics").text.splitlines()
    assert 'polyseme_requests_total{endpoint="/v1/words",status="200"} 1.0' in lines
    assert 'polyseme_failures_total{endpoint="/v1/words",status="422"} 1.0' in lines
    assert "polyseme_words_total 6.0" in lines  # and one of the warm-up
    for name in ("queue_words", "batch_words_count", "queue_seconds_count", "compute_seconds_count", "request_seconds_count"):
        assert any(line.startswith(f"polyseme_{name}") for line in lines)


def test_a_log_line_has_numbers_and_no_texts(service: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "polyseme.serve"):
        service.post("/v1/words", json={"input": "secret bank"}, headers={"x-request-id": "mine-1"})
        service.post("/v1/words", json={"input": "secret bank", "layers": 7})
        service.get("/v2/wörds%0A127.0.0.1%20GET?text=secret")
        service.get("/" + "x" * 500)
        service.post("/v1/words", content=b"secret", headers={"content-type": "text/plain"})
    fields = [record.fields for record in caplog.records if record.name == "polyseme.serve.access"]
    said = [("/v1/words", 200), ("/v1/words", 422), ("other", 404), ("other", 404), ("/v1/words", 415)]
    assert [(each["endpoint"], each["status"]) for each in fields] == said
    assert fields[0]["words"] == 2 and fields[0]["request_id"] == "mine-1"
    assert "secret" not in str(fields) + caplog.text
    wrong = [each["path"] for each in fields if "path" in each]  # an address that there is not, as one short word
    assert wrong[0] == "/v2/w%C3%B6rds%0A127.0.0.1%20GET"
    assert wrong[1] == "/" + "x" * 79 + "..." and len(wrong) == 2
    records = [record for record in caplog.records if record.name == "polyseme.serve.access"]
    lines = [TextLines().format(record) for record in records]
    assert "POST /v1/words 200 1 text 2 words" in lines[0] and f"GET {wrong[0]} 404 " in lines[2]
    assert all(len(line.splitlines()) == 1 for line in lines)


def test_a_layer_that_there_is_not_is_named(service: TestClient) -> None:
    error = service.post("/v1/words", json={"input": "a bank", "layers": 9}).json()["error"]
    assert error["param"] == "layers" and "9" in error["message"]


def test_words_name_texts_without_a_word(service: TestClient) -> None:
    told = "1 text without a word (item 1), whose list of vectors is empty"
    body = {"input": ["a bank", " "]}
    assert service.post("/v1/words", json=body).json()["warning"] == told
    assert service.post("/v1/words", json=body, headers=RAW).headers["x-warning"] == told


def test_a_request_that_is_cut_off_counts_as_failed() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise asyncio.CancelledError  # the service stops

    async def ask() -> None:
        scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        with contextlib.suppress(asyncio.CancelledError):
            await AccessLog(app, metrics)(scope, None, send)  # type: ignore[arg-type]

    async def send(_: Any) -> None: ...

    metrics = Metrics()
    asyncio.run(ask())
    assert b'polyseme_failures_total{endpoint="other",status="503"} 1.0' in metrics.text()


def test_markup_comes_back_as_json_only(service: TestClient) -> None:
    answer = service.post("/v1/tokenize", json={"input": "<script>alert(1)</script>"})
    assert answer.headers["content-type"] == "application/json" and answer.headers["x-content-type-options"] == "nosniff"
    assert "".join(answer.json()["data"][0]["words"]) == "<script>alert(1)</script>"


def test_names_of_models() -> None:
    from polyseme.base.errors import UsageError

    with pytest.raises(UsageError, match="two models have the name 'a'"):
        names_of(["x/a", "y/a"], "models")
    with pytest.raises(UsageError, match="NAME=PATH"):
        names_of(["a="], "models")
