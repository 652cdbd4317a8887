"""A service in a process of its own, and a client that costs little: HTTP/1.1 over asyncio streams, bodies made before."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self


class ServiceProcess:
    """Start a command that listens on a port of its own, and measure it."""

    def __init__(self, command: Sequence[str], environment: dict[str, str] | None = None) -> None:
        with tempfile.NamedTemporaryFile(prefix="service-", suffix=".log", delete=False) as log:
            self.log = Path(log.name)
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **(environment or {})})
        self.port = self._port()

    def __enter__(self) -> Self:
        while not self._ready():
            time.sleep(0.1)
        return self

    def __exit__(self, *error: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)
        self.log.unlink()

    def _port(self) -> int:
        while (found := re.search(r"http://[\d.]+:(\d+)", self.log.read_text())) is None:
            assert self._process.poll() is None, self.log.read_text()
            time.sleep(0.05)
        return int(found[1])

    def _ready(self) -> bool:
        assert self._process.poll() is None, self.log.read_text()
        try:
            return bool(urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz").status == 200)
        except OSError:
            return False

    def cpu_seconds(self) -> float:
        """Processor time of all its threads so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_anon(self) -> int:
        """Its private memory in MB."""
        found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{self._process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) // 1024


def polyseme_serve(model: str, *options: str) -> ServiceProcess:
    return ServiceProcess([sys.executable, "-m", "polyseme", "serve", model, "--port", "0", *options])


@dataclass(frozen=True)
class Request:
    """A request as bytes."""

    content: bytes
    words: int

    @classmethod
    def post(cls, path: str, body: object, words: int, accept: str = "application/octet-stream") -> Request:
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: {accept}\r\n"
        return cls(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content, words)


@dataclass
class Outcome:
    """What came of many requests."""

    seconds: list[float] = field(default_factory=list)
    """Of those that were answered with 200."""
    statuses: dict[int, int] = field(default_factory=dict)
    words: int = 0
    wall: float = 0.0
    client_cpu: float = 0.0

    def add(self, status: int, seconds: float, words: int) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if status == 200:
            self.seconds.append(seconds)
            self.words += words

    def to_json(self) -> dict[str, object]:
        ordered = sorted(self.seconds)
        shares = {
            f"p{share}_ms": round(1000 * ordered[min(len(ordered) * share // 100, len(ordered) - 1)], 1)
            for share in (50, 95, 99)
        }
        rates = {"requests_per_s": len(ordered) / self.wall, "words_per_s": self.words / self.wall}
        return {
            "statuses": self.statuses,
            **{name: round(value, 1) for name, value in rates.items()},
            **(shares if ordered else {}),
        }


class Connection:
    """A connection that is kept open."""

    def __init__(self, port: int) -> None:
        self._port, self._streams = port, None

    async def ask(self, request: Request) -> int:
        """Send a request, read the answer to its end, and return the status; 0: the connection broke.

        A connection that was closed while nobody used it is opened again, as HTTP clients do.
        """
        kept = self._streams is not None
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 20)
            reader, writer = self._streams
            writer.write(request.content)
            head = await reader.readuntil(b"\r\n\r\n")
            status, length = int(head[9:12]), re.search(rb"content-length: (\d+)", head, re.I)
            if length is not None:
                await reader.readexactly(int(length[1]))
            else:
                while size := int(await reader.readline(), 16):
                    await reader.readexactly(size + 2)
                await reader.readline()
            if b"connection: close" in head.lower():
                self.close()
            return status
        except (OSError, asyncio.IncompleteReadError) as error:
            self.close()
            unread = isinstance(error, ConnectionError) or not getattr(error, "partial", b"x")
            return await self.ask(request) if kept and unread else 0

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def closed_loop(port: int, requests: Sequence[Request], clients: int, seconds: float) -> Outcome:
    """So many clients, each with one request after another."""
    outcome, numbers = Outcome(), iter(range(10**9))
    begin, cpu = time.perf_counter(), _cpu()

    async def client() -> None:
        connection = Connection(port)
        while time.perf_counter() - begin < seconds:
            request = requests[next(numbers) % len(requests)]
            sent = time.perf_counter()
            outcome.add(await connection.ask(request), time.perf_counter() - sent, request.words)
        connection.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    outcome.wall, outcome.client_cpu = time.perf_counter() - begin, _cpu() - cpu
    return outcome


async def constant_rate(port: int, requests: Sequence[Request], per_second: float, seconds: float) -> Outcome:
    """Requests at fixed times, whether or not the ones before are answered; a latency counts from the planned time."""
    outcome, free = Outcome(), list[Connection]()
    begin = time.perf_counter()

    async def one(number: int, planned: float) -> None:
        connection = free.pop() if free else Connection(port)
        status = await connection.ask(requests[number % len(requests)])
        outcome.add(status, time.perf_counter() - planned, requests[number % len(requests)].words)
        free.append(connection)

    tasks = []
    for number in range(int(per_second * seconds)):
        planned = begin + number / per_second
        if (delay := planned - time.perf_counter()) > 0:
            await asyncio.sleep(delay)
        tasks.append(asyncio.create_task(one(number, planned)))
    sent = time.perf_counter() - begin
    await asyncio.gather(*tasks)
    outcome.wall = max(time.perf_counter() - begin, sent)
    for connection in free:
        connection.close()
    return outcome
