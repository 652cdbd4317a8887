"""Input from and output to a bucket, served by moto's S3 server on this machine; and a signed address of the web."""

from __future__ import annotations

import gzip
import http.server
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import polyseme
from polyseme.base.errors import PolysemeError
from tests.scale.conftest import LINES
from tests.scale.contents import contents, rows

SECRET = "nobody-may-see-this"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pytest.importorskip("s3fs", reason="s3fs is not installed (extra s3)")
    server = pytest.importorskip("moto.server", reason="moto's server is not installed").ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    variables = {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": SECRET}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    system.mkdir("bucket")
    yield system
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def objects(bucket: Any) -> dict[str, bytes]:
    bucket.invalidate_cache()
    return {path.rpartition("/")[2]: bucket.cat_file(path) for path in bucket.find("bucket/vectors")}


def test_a_bucket(bucket: Any, model: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = "\n".join(LINES).encode()
    bucket.pipe_file("bucket/texts/a.txt", data)
    bucket.pipe_file("bucket/texts/b.txt.gz", gzip.compress(data))
    bucket.pipe_file("bucket/texts/_SUCCESS", b"")
    options = {"model": model, "shard_size": 700, "layers": "top"}
    with caplog.at_level(logging.DEBUG, "polyseme"):
        polyseme.embed_dataset("s3://bucket/texts", tmp_path / "here", workers=0, **options)
        polyseme.embed_dataset("s3://bucket/texts/*", tmp_path / "two", workers=2, **options)
        there = polyseme.embed_dataset("s3://bucket/texts", "s3://bucket/vectors", workers=0, **options)
    assert contents(tmp_path / "here") == contents(tmp_path / "two")
    found = rows(tmp_path / "here")
    assert [row["words"] for row in found] == [polyseme.load(model).words(line) for line in LINES * 2]
    assert [row["file"] for row in found] == [f"s3://bucket/texts/{name}" for name in ("a.txt", "b.txt.gz") for _ in LINES]
    stored = objects(bucket)
    assert stored == contents(tmp_path / "here")
    assert SECRET not in caplog.text and not any(SECRET.encode() in data for data in stored.values())
    bucket.rm("bucket/vectors/part-000001.parquet")
    again = polyseme.embed_dataset("s3://bucket/texts", "s3://bucket/vectors", workers=0, **options)
    assert again.resumed == there.parts - 1
    assert objects(bucket) == stored
    with pytest.raises(PolysemeError, match="s3://bucket/none"):
        polyseme.embed_dataset("s3://bucket/none", tmp_path / "none", workers=0, **options)


def test_secrets_of_an_address(model: str, tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="aiohttp is not installed (extra https)")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(tmp_path))  # type: ignore[arg-type]

        def log_message(self, *arguments: object) -> None:
            pass

    (tmp_path / "a.txt").write_text("the bank\n\nof", encoding="utf-8")
    with http.server.ThreadingHTTPServer(("localhost", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://localhost:{server.server_port}/a.txt?signature={SECRET}"
        polyseme.embed_dataset(address, tmp_path / "out", model=model, workers=0)
        with pytest.raises(PolysemeError) as caught:
            polyseme.embed_dataset(address.replace("a.txt", "b.txt"), tmp_path / "none", model=model, workers=0)
        server.shutdown()
    assert SECRET not in str(caught.value) and "b.txt" in str(caught.value)
    assert [row["words"] for row in rows(tmp_path / "out")] == [["the", "bank"], [], ["of"]]
    assert rows(tmp_path / "out")[0]["file"] == f"http://localhost:{server.server_port}/a.txt"
    assert not any(SECRET.encode() in data for data in contents(tmp_path / "out").values())
