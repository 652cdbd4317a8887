"""A corpus on an engine: the same report, vocabulary and shards as without."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.api.corpora import check_corpus, write_vocabulary
from polyseme.base.errors import PolysemeError
from polyseme.pretraining import ngram_parts
from polyseme.pretraining.ngram_counts import count_ngrams, to_stream
from polyseme.pretraining.vocabulary_index import index_vocabulary
from polyseme.scale import chunk_map
from polyseme.scale.chunk_map import EngineChunkMap
from polyseme.scale.engines.local import LocalEngine
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards


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
    spread = Corpus(texts, errors="skip", engine=chunks)
    assert list(spread) == list(alone)
    reports = [dataclasses.replace(each.check(), encoded_bytes=0) for each in (spread, alone)]  # an estimate from chunks
    assert reports[0] == reports[1]


def test_verbs(texts: Path, tmp_path: Path) -> None:
    plain = check_corpus([str(texts)], skip_bad_lines=True, workers=0).report
    assert check_corpus([str(texts)], skip_bad_lines=True, engine="local", workers=0).report == plain
    write_vocabulary([str(texts)], out=tmp_path / "a", skip_bad_lines=True, workers=0)
    write_vocabulary([str(texts)], out=tmp_path / "b", skip_bad_lines=True, engine="local", workers=0)
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    with pytest.raises(PolysemeError, match=r"c\.txt:2"):
        write_vocabulary([str(texts)], out=tmp_path / "c", engine="local", workers=0)


@pytest.mark.parametrize("group", [1, 7, 1 << 10])
def test_large_files_that_cannot_be_cut(texts: Path, group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read by the driver and sent in chunks; groups bound what waits for an earlier result."""
    monkeypatch.setattr(chunk_map, "_CHUNKS", 1)
    (texts / "e.txt.gz").write_bytes(gzip.compress((texts / "a.txt").read_bytes() * 4))
    sent = []
    monkeypatch.setattr(LocalEngine, "map", watched(LocalEngine.map, sent))
    spread = Corpus(texts, errors="skip", engine=EngineChunkMap(LocalEngine(0), 1000, group))
    assert list(spread) == list(Corpus(texts, workers=0, errors="skip"))
    assert sum(isinstance(task, list) for tasks in sent for task in tasks) > 1
    assert all(sum(chunk_map._SENT if isinstance(task, list) else 1 for task in tasks[:-1]) < group for tasks in sent if tasks)


def watched(plain, sent):
    def watch(self, work, tasks):
        sent.append([])
        return plain(self, work, (sent[-1].append(task) or task for task in tasks))

    return watch


def many_words(folder: Path) -> Path:
    draw = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(60)] + [""])
    lines = [" ".join(words[np.minimum(draw.zipf(1.4, size), 60)]) for size in draw.integers(0, 9, 500)]
    path = folder / "many.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(("order", "slice_words", "range_rows"), [(1, 100, 50), (2, 300, 200), (4, 333, 400), (5, 10**6, 9**6)])
def test_ngram_counts_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order, slice_words, range_rows) -> None:
    monkeypatch.setattr(ngram_parts, "SLICE_WORDS", slice_words)
    monkeypatch.setattr(ngram_parts, "RANGE_ROWS", range_rows)
    corpus = Corpus(many_words(tmp_path), splitter="whitespace", sentences="lines", workers=0)
    shards = Shards.build(corpus, tmp_path)
    words, ids = index_vocabulary(shards, vocabulary_size=50, min_count=1)
    whole = list(count_ngrams(to_stream(shards, ids), len(words), order))
    engine = EngineChunkMap(LocalEngine(0))
    with ngram_parts.ngram_parts(shards, ids, len(words), order, tmp_path / "work", engine) as parts:
        found = list(parts)
        files = [path.name for path in (tmp_path / "work").rglob("range-*")]
        assert len(found) == order
        for one, two in zip(whole, found, strict=True):
            for field in dataclasses.fields(one):
                left, right = getattr(one, field.name), getattr(two, field.name)
                assert left.dtype == right.dtype or field.name == "count", field.name
                np.testing.assert_array_equal(left, right, err_msg=f"{field.name}")
    assert slice_words > 1000 or order == 1 or len(files) > 2 * 2 * (order - 1)  # several ranges
    assert not list((tmp_path / "work").iterdir())


def test_ngrams_with_local_processes(tmp_path: Path) -> None:
    text = many_words(tmp_path)
    settings = {"corpus": text, "order": 3, "splitter": "whitespace", "sentences": "lines"}
    polyseme.pretrain("ngram", out=tmp_path / "a", **settings)
    polyseme.pretrain("ngram", out=tmp_path / "b", engine="local", workers=1, **settings)
    assert (tmp_path / "a" / "model.safetensors").read_bytes() == (tmp_path / "b" / "model.safetensors").read_bytes()
    assert not list((tmp_path / "b" / "run").glob("ngrams-*"))
