"""Connections that send their headers slowly, without end or not at all are closed; others are answered meanwhile."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn

from polyseme.serve.connections import MAX_HEADER_BYTES, guarded_protocol
from polyseme.serve.server import listen

GOOD = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
Connect = Callable[[], socket.socket]


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers later than headers may take, as a long computation does."""
    await asyncio.sleep(0.6)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture(scope="module", params=[0.3])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Connect to a server whose clients have so many seconds for their headers."""
    listener, protocol = listen("127.0.0.1", 0), guarded_protocol(request.param)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", http=protocol))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield lambda: socket.create_connection(listener.getsockname(), timeout=20)
    server.should_exit = True
    thread.join(10)


def until_closed(connection: socket.socket) -> bytes:
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received


def test_an_answer_may_take_longer_than_the_headers(connect: Connect) -> None:
    with connect() as connection:
        for _ in range(2):  # on one connection
            connection.sendall(GOOD)
            answer = b""
            while not answer.endswith(b"ok"):
                answer += connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")


def test_headers_must_arrive_in_time(connect: Connect) -> None:
    with connect() as silent, connect() as slow, connect() as later:
        slow.sendall(GOOD[:20])
        later.sendall(GOOD)
        assert later.recv(65536).startswith(b"HTTP/1.1 200")
        later.sendall(GOOD[:20])  # the second request of a connection
        assert until_closed(slow).startswith(b"HTTP/1.1 408")
        assert until_closed(silent) == b""
        assert b"HTTP/1.1 408" in until_closed(later)


@pytest.mark.parametrize("connect", [60.0], indirect=True)  # so that the size alone ends a connection
def test_headers_must_end(connect: Connect) -> None:
    begin = GOOD[:-2] + b"X: "
    with connect() as longest:
        longest.sendall(begin.ljust(MAX_HEADER_BYTES - 4, b"a") + b"\r\n\r\n")
        assert longest.recv(65536).startswith(b"HTTP/1.1 200")
    with connect() as longer:
        longer.sendall(begin.ljust(MAX_HEADER_BYTES + 1, b"a"))
        assert until_closed(longer).startswith(b"HTTP/1.1 431")
    with connect() as endless:
        endless.sendall(begin)
        sent, answer = 0, b""
        try:
            while sent < 256 * MAX_HEADER_BYTES:
                sent += endless.send(b"a" * 65536)
            answer = until_closed(endless)
        except OSError:  # it was closed while we sent
            pass
        assert sent < 256 * MAX_HEADER_BYTES or b"431" in answer
