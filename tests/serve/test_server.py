"""`polyseme serve` as a process: it loads, answers, logs without texts, and stops when asked, after what is in flight."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

import polyseme
from polyseme.__main__ import main
from polyseme.serve import server
from tests.encoders.small import elmo


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return elmo(output=True).save_pretrained(tmp_path_factory.mktemp("models") / "tiny")


class Process:
    """A service in a process of its own."""

    def __init__(self, log: Path, *options: str) -> None:
        self._log = log
        command = [sys.executable, "-m", "polyseme", "serve", *options, "--port", "0"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with log.open("wb") as out:
            self.process = subprocess.Popen(command, stderr=out, stdout=out, env=environment)
        self.client = httpx2.Client(base_url=self._address(), timeout=60)

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def _address(self) -> str:
        while (found := re.search(r"http://[\d.]+:\d+", self.log)) is None:
            assert self.process.poll() is None, self.log
            time.sleep(0.05)
        return found[0]

    def wait_until_ready(self) -> None:
        while self.client.get("/readyz").status_code != 200:
            time.sleep(0.05)


@contextmanager
def running(*arguments: Any) -> Iterator[Process]:
    made = Process(*arguments)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()


@pytest.mark.slow  # a process that imports PyTorch
def test_a_stop_finishes_what_is_in_flight(folder: Path, tmp_path: Path) -> None:
    texts = [["a", "cat", "sat", "on"] * 5] * 300
    body = {"input": texts, "layers": "all"}
    with running(tmp_path / "log", str(folder), "--log-json", "--batch-words", "200") as service:
        service.wait_until_ready()
        with service.client.stream("POST", "/v1/words", json=body, headers={"accept": "application/octet-stream"}) as answer:
            chunks = answer.iter_bytes()
            first = next(chunks)
            service.process.send_signal(signal.SIGTERM)
            content = first + b"".join(chunks)
        assert service.process.wait(30) == 0, service.log
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(str(service.client.base_url))
        lines = [json.loads(line) for line in service.log.splitlines()]
    found = np.frombuffer(content, "<f4").reshape(len(texts), -1)
    np.testing.assert_allclose(found[-1], polyseme.load(folder).embed(texts[:1])[0].ravel(), atol=1e-5)
    entry = next(line for line in lines if line.get("endpoint") == "/v1/words")
    assert (entry["status"], entry["texts"], entry["words"]) == (200, 300, 6_000) and "cat" not in str(lines)
    assert lines[-1]["message"] == "stopped"


@pytest.mark.slow
def test_a_stop_while_it_loads_is_a_stop(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a cat sat on the mat .\n" + "".join(f"the bank of river {number} .\n" for number in range(20_000)))
    with running(tmp_path / "log", "en", "--corpus", str(text)) as service:
        time.sleep(10)  # it indexes
        assert service.client.get("/readyz").status_code == 503
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(30) == 0, service.log


@pytest.mark.slow
def test_workers_share_the_port_and_their_metrics(folder: Path, tmp_path: Path) -> None:
    with running(tmp_path / "log", str(folder), "--workers", "2") as service:
        service.wait_until_ready()
        for _ in range(20):
            with httpx2.Client(base_url=service.client.base_url) as client:
                assert client.post("/v1/words", json={"input": "a cat"}).status_code == 200
        lines = service.client.get("/metrics").text.splitlines()
        assert 'polyseme_requests_total{endpoint="/v1/words",status="200"} 20.0' in lines
        children = Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)  # it is replaced
        time.sleep(2)
        for _ in range(10):
            with httpx2.Client(base_url=service.client.base_url, timeout=30) as client:
                assert client.post("/v1/words", json={"input": "a cat"}).status_code == 200
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(30) == 0, service.log


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(server.importlib.util, "find_spec", lambda name: None)
    assert main(["serve"]) == 1
    assert "polyseme serve needs fastapi, which is not installed: pip install 'polyseme[serve]'" in capsys.readouterr().err


def test_wrong_calls(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["serve", "x/a", "y/a"]) == 2
    assert "two models have the name 'a'" in capsys.readouterr().err
    with server.listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 1
        assert f"cannot listen on 127.0.0.1, port {port}" in capsys.readouterr().err
    assert main(["serve", str(tmp_path / "nothing"), "--port", "0"]) == 1
    said = capsys.readouterr().err
    assert "nothing: no such file or folder" in said and "listening" not in said
    assert main(["serve", "--task", str(tmp_path / "nothing"), "--port", "0"]) == 1
    said = capsys.readouterr().err
    assert "nothing: no such folder" in said and "listening" not in said
    assert main(["serve", "--task", "en", "--port", "0"]) == 1
    said = capsys.readouterr().err
    assert "en: is a model (an encoder), not a trained task" in said and "listening" not in said
