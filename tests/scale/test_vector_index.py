"""The approximate index over a dataset, against the exact answer."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.base.errors import UsageError
from tests.scale.contents import rows

pytest.importorskip("faiss", reason="faiss is not installed (extra faiss)")

from polyseme.scale.vector_index import DatasetIndex, Source


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    draw = random.Random(0)
    words = ["the", "bank", "of", "river", "money", "a", "The", "to", ".", "cat", "dog", "house", "tree", "lake", "city"]
    lines = [" ".join(draw.choices(words, k=draw.randint(0, 12))) for _ in range(1500)]
    (folder / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    polyseme.embed_dataset(folder / "a.txt", folder / "out", model=model, layers="top", shard_size=8000, workers=0)
    return folder / "out"


def test_recall_against_the_exact_answer(dataset: Path) -> None:
    index = DatasetIndex.build(Source.of(dataset))
    found = rows(dataset)
    vectors = np.concatenate([np.array(row["vectors"], np.float32).reshape(-1, 16) for row in found])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    words = [(row["words"], position) for row in found for position in range(len(row["words"]))]
    hits = 0
    asked = np.random.default_rng(0).choice(len(vectors), 50, replace=False)
    for query in vectors[asked]:
        exact = np.sort(vectors @ query)[-10]
        result = index.search(query, 10)
        assert len(result.rows) == 10 and np.all(np.diff(result.cosines) <= 0)
        hits += int((result.cosines >= exact - 1e-3).sum())
    assert hits >= 0.95 * 500
    for id, cosine in index.search(vectors[asked[0]], 3).pairs():
        sentence, position = index.occurrence(id)
        places = [n for n, each in enumerate(words) if each == (sentence, position)]
        assert np.abs(vectors[places] @ vectors[asked[0]] - cosine).min() < 1e-3


def test_it_is_made_once_and_resumes(dataset: Path) -> None:
    DatasetIndex.build(Source.of(dataset))
    folder = dataset / "_index" / "vectors"
    before = (folder / "index.ivfdata").stat().st_mtime_ns
    DatasetIndex.build(Source.of(dataset))
    assert (folder / "index.ivfdata").stat().st_mtime_ns == before
    assert not list(folder.glob("part-*"))
    (folder / "index.json").write_text(json.dumps({"text": "another"}))
    DatasetIndex.build(Source.of(dataset))
    assert (folder / "index.ivfdata").stat().st_mtime_ns != before


def test_neighbours_in_a_dataset(dataset: Path, model: str) -> None:
    found = polyseme.neighbours("the cat of the river", word="cat", model=model, index=dataset, count=4)
    assert len(found.in_context) == 4 and found.static == []
    assert [each.cosine for each in found.in_context] == sorted((each.cosine for each in found.in_context), reverse=True)
    assert all(each.sentence[each.position] == each.word for each in found.in_context)
    same = polyseme.neighbours("the cat of the river", word="cat", model=model, index=dataset, count=3, same_word=True)
    assert {each.word for each in same.in_context} == {"cat"}
    own = next(row["words"] for row in rows(dataset) if len(row["words"]) > 4)
    found = polyseme.neighbours(own, position=0, model=model, index=dataset, count=4)
    assert len(found.in_context) == 4 and own not in [each.sentence for each in found.in_context]
    with pytest.raises(UsageError, match="has its own text"):
        polyseme.neighbours("the cat", word="cat", model=model, index=dataset, corpus="a.txt")
