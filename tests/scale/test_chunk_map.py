"""A corpus on an engine: the same report, vocabulary and shards as without."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path

import pytest

from polyseme.api.corpora import check_corpus, write_vocabulary
from polyseme.base.errors import PolysemeError
from polyseme.scale.chunk_map import EngineChunkMap
from polyseme.scale.engines.local import LocalEngine
from polyseme.text.corpus import Corpus


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    lines = [f"The bank number {number % 50} isn't far. It's by the river." if number % 9 else "" for number in range(3000)]
    data = "\n".join(lines).encode()
    (folder / "a.txt").write_bytes(b"\xef\xbb\xbf" + data)
    (folder / "b.txt.gz").write_bytes(gzip.compress(data[:1000]))
    (folder / "c.txt").write_bytes(b"fine\n\xff\xfe bad\nfine\n" + data[:5000])
    (folder / "d.txt").write_bytes(b"")
    return folder


@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_the_same_report_and_sentences(texts: Path, size: int) -> None:
    chunks = EngineChunkMap(LocalEngine(0), size)
    alone = Corpus(texts, workers=0, errors="skip")
    spread = Corpus(texts, errors="skip", chunk_map=chunks)
    assert list(spread) == list(alone)
    reports = [dataclasses.replace(each.check(), shard_bytes=0) for each in (spread, alone)]  # which is an estimate from chunks
    assert reports[0] == reports[1]


def test_verbs(texts: Path, tmp_path: Path) -> None:
    plain = check_corpus([str(texts)], skip_bad_lines=True, workers=0).report
    assert check_corpus([str(texts)], skip_bad_lines=True, engine="local", workers=0).report == plain
    write_vocabulary([str(texts)], out=tmp_path / "a", skip_bad_lines=True, workers=0)
    write_vocabulary([str(texts)], out=tmp_path / "b", skip_bad_lines=True, engine="local", workers=0)
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    with pytest.raises(PolysemeError, match=r"c\.txt:2"):
        write_vocabulary([str(texts)], out=tmp_path / "c", engine="local", workers=0)
