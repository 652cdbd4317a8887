"""What a request leaves in memory: caches are bounded in bytes, and a refused request leaves nothing."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Coroutine
from types import FrameType
from typing import Any

import pytest
from starlette.types import Message

from polyseme.serve import free_memory, sense_maps
from polyseme.serve.app import create_app
from polyseme.serve.config import ServeConfig
from polyseme.serve.errors import ApiError, too_many
from polyseme.serve.limits import MAX_FIELDS
from polyseme.serve.read_sentences import ReadSentences
from polyseme.serve.recently_used import RecentlyUsed, text_bytes
from polyseme.serve.responses import while_connected
from tests.serve.small_service import client, searchable, tiny_models

MARK = "a word that only this request has"
REFUSED: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "an item that is no text": ("/v1/words", {"input": [MARK, 3]}, {}),
    "an empty word": ("/v1/similar", {"word": "", "model": MARK}, {}),
    "a body that is too large": ("/v1/words", {"input": [MARK] * 100}, {"max_body_bytes": 500}),
    "a text that cannot be scored": ("/v1/score", {"model": "other", "input": [[MARK]]}, {}),
    "a position that is not there": ("/v1/neighbours", {"text": [MARK], "position": 7}, {}),
}


async def ask(app: Any, path: str, body: bytes) -> int:
    """Send a request without a client, which would leave garbage of its own."""
    head = {"host": "localhost", "content-type": "application/json", "content-length": str(len(body))}
    headers = [(name.encode(), value.encode()) for name, value in head.items()]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        if not waiting:
            await asyncio.sleep(3600)
        return waiting.pop()

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return int(sent[0]["status"])


def holds(thing: Any) -> bool:
    """Whether an object has the text of the request in it."""
    if isinstance(thing, FrameType):
        thing = thing.f_locals
    values = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list | tuple) else ()
    return any(isinstance(each, str | bytes) and MARK in str(each) for each in values)


async def cycles(work: Coroutine[Any, Any, int]) -> tuple[int, list[type]]:
    """The status of a request, and what only the garbage collector would free of its text."""
    gc.collect()
    gc.disable()
    try:
        status = await work
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        return status, [type(each) for each in gc.garbage if holds(each)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_request_leaves_no_cycle_that_holds_its_text(name: str) -> None:
    path, body, settings = REFUSED[name]
    models = searchable(tiny_models())

    async def run() -> tuple[int, list[type]]:
        app = create_app(ServeConfig(**settings), lambda: models)
        async with app.router.lifespan_context(app):
            while not app.state.service.ready:
                await asyncio.sleep(0.01)
            return await cycles(ask(app, path, json.dumps(body).encode()))

    status, left = asyncio.run(run())
    assert status in (404, 413, 422) and left == []


def test_work_that_fails_leaves_no_cycle_either() -> None:
    async def refuse(text: list[str]) -> None:
        raise too_many("the queue is full", 1)

    async def never() -> Message:
        return await asyncio.Future()

    async def request() -> int:
        try:
            await while_connected(never, refuse([MARK]))
        except ApiError as error:
            return error.status
        return 200

    assert asyncio.run(cycles(request())) == (429, [])


def test_long_words_count_in_what_is_kept() -> None:
    model, sentences = tiny_models().model("tiny"), ReadSentences(max_bytes=1_000_000)
    for number in range(30):
        sentences.read(model, [f"{number}" + "a" * 100_000])
    assert 1 <= len(sentences._kept) < 10 and sentences._kept.size <= 1_000_000
    sentences.read(model, ["a" * 2_000_000])  # more than all that may be kept: the others stay
    assert 1 <= len(sentences._kept) < 10


def test_given_texts_count_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[RecentlyUsed[Any]] = []

    begin = RecentlyUsed.__init__

    def watched(self: RecentlyUsed[Any], max_size: int) -> None:
        begin(self, max_size)
        kept.append(self)

    monkeypatch.setattr(RecentlyUsed, "__init__", watched)
    for name in ("_TEXTS", "_VECTORS", "_MAPS", "_COMMON"):
        monkeypatch.setattr(sense_maps, name, 1_000_000)
    with client() as service:
        del kept[:-4]  # those of the service itself
        for number in range(30):
            text = "\n".join([f"bank {number}" + "a" * 100_000, *["the bank is good"] * 8])
            assert service.post("/v1/map", json={"text": text, "word": "bank"}).status_code == 200
    assert len(kept) == 4
    for each in kept:
        assert 1 <= len(each) < 20 and each.size <= 1_000_000


def test_free_memory_goes_back_while_the_service_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bool] = []
    monkeypatch.setattr(free_memory, "SECONDS", 0.01)
    monkeypatch.setattr(free_memory, "free_memory", lambda: calls.append(True))
    with client() as service:
        while len(calls) < 2:
            assert service.get("/livez").status_code == 200
    count = len(calls)
    time.sleep(0.05)
    assert len(calls) <= count + 1  # one was under way


def test_recently_used_replaces_and_forgets() -> None:
    kept = RecentlyUsed[str](10)
    kept.keep("a", "first", 6)
    kept.keep("a", "second", 4)
    assert kept.get("a") == "second" and kept.size == 4
    kept.keep("a", "too large", 11)
    assert kept.get("a") is None and kept.size == 0
    assert text_bytes(["bank", "é"]) == sys.getsizeof("bank") + sys.getsizeof("é") + 16


def test_many_fields_and_long_names_are_refused_in_one_short_sentence() -> None:
    with client() as service:
        answer = service.post("/v1/words", json={f"field {number}": 1 for number in range(MAX_FIELDS + 1)})
        assert answer.status_code == 422 and f"has {MAX_FIELDS + 1} fields" in answer.json()["error"]["message"]
        answer = service.post("/v1/words", json={"input": "a", "b" * 10_000: 1})
        assert answer.status_code == 422 and len(answer.content) < 1000
        answer = service.post("/v1/words", json={"input": "a", "layers": ["top"] * 10_000})
        assert answer.status_code == 422 and len(answer.content) < 1000
