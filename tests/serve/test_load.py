"""A full service refuses and says when to try again; who has gone is not computed for."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import torch

from polyseme.serve.app import create_app
from polyseme.serve.config import ServeConfig
from polyseme.serve.models import ServedModels
from polyseme.serve.service import Service
from tests.serve.small_service import tiny_models


class Blocked:
    """A service whose model waits until it may compute, and keeps what it has computed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.models: ServedModels = tiny_models()
        encoder = self.models.model(None).encoder
        self.texts: list[list[str]] = []
        self.free, self.began = threading.Event(), threading.Event()
        embed = encoder.embed

        def waiting(texts: Any, **settings: Any) -> Any:
            if texts != [["."]] and settings.get("layers") != 0:  # the warm-up, and the static vectors
                self.began.set()
                assert self.free.wait(10)
                self.texts += texts
            return embed(texts, **settings)

        monkeypatch.setattr(encoder, "embed", waiting)

    @asynccontextmanager
    async def running(self, **settings: Any) -> AsyncIterator[tuple[Any, Service]]:
        app = create_app(ServeConfig(**settings), lambda: self.models)
        async with app.router.lifespan_context(app):
            service: Service = app.state.service
            await until(lambda: service.ready)
            yield app, service


class Call:
    """One request to an ASGI application, whose client can go away."""

    def __init__(self, app: Any, text: str) -> None:
        self.status: int | None = None
        self.headers: dict[bytes, bytes] = {}
        self._messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._messages.put_nowait({"type": "http.request", "body": json.dumps({"input": text}).encode()})
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/v1/words", "headers": headers, "query_string": b"", "state": {}}
        self.task = asyncio.create_task(app(scope, self._messages.get, self._send))

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])

    def leave(self) -> None:
        self._messages.put_nowait({"type": "http.disconnect"})


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(test(), 20)

    asyncio.run(limited())


def test_a_full_queue_answers_429_and_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = Blocked(monkeypatch)

    async def test() -> None:
        async with blocked.running(max_queue_words=3) as (app, service):
            first = Call(app, "a")
            await until(blocked.began.is_set)
            second = Call(app, "a cat sat")
            await until(lambda: service.batcher.queue_words == 3)
            refused = Call(app, "dog")
            await refused.task
            assert refused.status == 429 and int(refused.headers[b"retry-after"]) >= 1
            blocked.free.set()
            await asyncio.gather(first.task, second.task)
            last = Call(app, "dog")
            await last.task
            assert (first.status, second.status, last.status) == (200, 200, 200)

    run(test)


def test_too_many_requests_answer_429(monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = Blocked(monkeypatch)

    async def test() -> None:
        async with blocked.running(max_requests=1) as (app, _):
            first = Call(app, "a")
            await until(blocked.began.is_set)
            refused = Call(app, "dog")
            await refused.task
            assert refused.status == 429 and refused.headers[b"retry-after"] == b"1"
            blocked.free.set()
            await first.task
            assert first.status == 200

    run(test)


def test_bodies_that_are_too_large_together_answer_429(monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = Blocked(monkeypatch)

    async def test() -> None:
        async with blocked.running(max_body_bytes=100) as (app, _):
            calls = [Call(app, "dog " * 15) for _ in range(30)]  # of 75 bytes each, and 1,600 are allowed together
            await until(lambda: sum(call.task.done() for call in calls) == 9)
            blocked.free.set()
            await asyncio.gather(*(call.task for call in calls))
            assert sorted(str(call.status) for call in calls) == ["200"] * 21 + ["429"] * 9
            last = Call(app, "dog " * 15)
            await last.task
            assert last.status == 200

    run(test)


def test_a_client_that_has_gone_is_not_computed_for(monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = Blocked(monkeypatch)

    async def test() -> None:
        async with blocked.running() as (app, service):
            first = Call(app, "a")
            await until(blocked.began.is_set)
            gone = Call(app, "cat sat")
            await until(lambda: service.batcher.queue_words == 2)
            gone.leave()
            await gone.task
            assert service.batcher.queue_words == 0
            blocked.free.set()
            await first.task
        assert blocked.texts == [["a"]]

    run(test)


def test_a_slow_body_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = Blocked(monkeypatch)

    async def test() -> None:
        async with blocked.running(read_timeout=0.01) as (app, _):
            slow = Call(app, "a")
            slow._messages.get_nowait()
            await slow.task
            assert slow.status == 408

    run(test)


def test_static_vectors_are_computed_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    models = tiny_models()
    encoder, threads = models.model("tiny").encoder, list[int]()
    embed = encoder.embed

    def counting(texts: Any, **settings: Any) -> Any:
        if settings.get("layers") == 0:
            threads.append(torch.get_num_threads())
        return embed(texts, **settings)

    monkeypatch.setattr(encoder, "embed", counting)

    async def test() -> None:
        app = create_app(ServeConfig(), lambda: models, threads=2)
        async with app.router.lifespan_context(app):
            service: Service = app.state.service
            await until(lambda: "tiny" in service._spaces and service._spaces["tiny"].done())

    run(test)
    assert threads and set(threads) == {1}


def test_similar_words_are_prepared_before_anyone_asks() -> None:
    async def test() -> None:
        models = tiny_models()
        app = create_app(ServeConfig(max_queue_words=1), lambda: models)
        async with app.router.lifespan_context(app):
            service: Service = app.state.service
            await until(lambda: "tiny" in service._spaces and service._spaces["tiny"].done())
            space = await service.word_space(models.model("tiny"))
            assert "bank" in space.words and "other" not in service._spaces  # which has no vocabulary
            assert "polyseme_words_total 1.0" in service.metrics.text().decode()  # the warm-up alone

    run(test)
