"""Weights by address: downloaded once, taken from AllenNLP's cache, refused offline."""

from __future__ import annotations

import hashlib
import http.server
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.compat.allennlp import ElmoEmbedder
from polyseme.compat.weights import local_file, published
from tests.compat.small_models import SENTENCES, SmallModel, close


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def address(small: SmallModel) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("localhost", 0), partial(Quiet, directory=str(small.folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "ours"))
    monkeypatch.setenv("ALLENNLP_CACHE_ROOT", str(tmp_path / "theirs"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


def test_an_address_is_downloaded_once(small: SmallModel, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = f"{address}/options.json", f"{address}/weights.hdf5"
    expected = small.oracle.embed(SENTENCES[0])[0]
    close(ElmoEmbedder(*files).embed_sentence(SENTENCES[0]), expected)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    close(ElmoEmbedder(*files).embed_sentence(SENTENCES[0]), expected)
    with pytest.raises(PolysemeError, match="HF_HUB_OFFLINE forbids it: download it elsewhere"):
        local_file(f"{address}/vocab.txt")


def test_what_is_missing_leaves_nothing_behind(address: str, tmp_path: Path) -> None:
    with pytest.raises(PolysemeError, match=r"cannot be downloaded .*404"):
        local_file(f"{address}/nothing.hdf5")
    assert not [path for path in (tmp_path / "ours").rglob("*") if path.is_file()]


def test_the_cache_of_allennlp_is_used(small: SmallModel, tmp_path: Path) -> None:
    options, weights = published("small")
    (tmp_path / "theirs" / "cache").mkdir(parents=True)
    for name, file in ((options, "options.json"), (weights, "weights.hdf5")):
        digest = hashlib.sha256(name.encode()).hexdigest()
        shutil.copy(small.folder / file, tmp_path / "theirs" / "cache" / f"{digest}.0123")
        (tmp_path / "theirs" / "cache" / f"{digest}.0123.json").write_text("{}")
    close(ElmoEmbedder(options, weights).embed_sentence(SENTENCES[0]), small.oracle.embed(SENTENCES[0])[0])


def test_names_of_published_models() -> None:
    assert published("large") == published("5.5B")
    assert published("pubmed")[1].endswith("weights_PubMed_only.hdf5")
    with pytest.raises(UsageError, match="unknown model 'huge'; allowed: small, medium"):
        published("huge")
