"""The index against plain NumPy, and what happens to its folder."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from polyseme.analysis import index_builder, search
from polyseme.analysis.index import Index, layer_slice
from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.text.corpus import Corpus
from tests.analysis.known import Known

TEXT = [
    ["the", "bank", "of", "the", "river", "."],
    [],
    ["money", "in", "the", "bank", "."],
    ["the", "bank", "of", "the", "river", "."],
    ["line\nend", "\ud800", "河", ""],
]
DISTINCT = [TEXT[0], TEXT[2], TEXT[4]]


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.sqrt((vectors.astype(np.float64) ** 2).sum(-1, keepdims=True))


def same(one: Index, other: Index) -> bool:
    names = ("vectors", "words", "offsets", "static", "counts")
    equal = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)
    return equal and one.types == other.types and one.manifest == other.manifest


@pytest.mark.parametrize("chunk", [1, 7, 8192])
@pytest.mark.parametrize(("layer", "chosen"), [("top", [2]), ("mean", [1, 2]), (0, [0]), (1, [1])])
def test_what_an_index_holds(monkeypatch, layer, chosen, chunk):
    monkeypatch.setattr(index_builder, "EMBEDDED", chunk)
    encoder = Known()
    index = Index.build(encoder, TEXT, layer=layer)
    expected = np.concatenate([unit(encoder.stack(words)[chosen].mean(0)) for words in DISTINCT])
    np.testing.assert_allclose(index.vectors, expected, atol=5e-4)
    assert index.vectors.dtype == index.static.dtype == np.float16
    assert [index.sentence(number) for number in range(3)] == DISTINCT
    spans = [(number, position) for number, words in enumerate(DISTINCT) for position in range(len(words))]
    assert [index.position(row) for row in range(len(index))] == spans
    assert index.types == ["the", "bank", "of", "river", ".", "money", "in", *TEXT[4]]
    np.testing.assert_allclose(index.static, unit(np.stack([encoder.own(word) for word in index.types])), atol=5e-4)
    assert dict(zip(index.types, index.counts.tolist(), strict=True)) == {
        **{"the": 5, "bank": 3, "of": 2, "river": 2, ".": 3, "money": 1, "in": 1},
        **dict.fromkeys(TEXT[4], 1),
    }


def test_strings_are_split_as_the_model_splits():
    index = Index.build(Known(), (text for text in ["It isn't.", "It isn't."]))
    assert index.sentence(0) == ["It", "is", "n't", "."] and len(index) == 4


@pytest.mark.parametrize("rows", [3, 100, 4096])
@pytest.mark.parametrize("count", [1, 7, 500])
@pytest.mark.parametrize("masked", [False, True])
def test_search_is_exact(monkeypatch, rows, count, masked):
    monkeypatch.setattr(search, "_BLOCK", rows)
    random = np.random.default_rng(0)
    table = unit(random.normal(size=(300, 16))).astype(np.float16)
    table[200:210] = table[5]  # equally near: the first ones win
    vector = (3 * table[5] + 0.1 * random.normal(size=16)).astype(np.float32)
    among = random.random(300) < 0.3 if masked else None
    cosines = table.astype(np.float64) @ unit(vector)
    allowed = np.flatnonzero(among) if masked else np.arange(300)
    expected = sorted(allowed, key=lambda row: (-round(cosines[row], 6), row))[:count]
    found = search.nearest_rows(table, vector, count, among)
    assert found.rows.tolist() == expected
    np.testing.assert_allclose(found.cosines, cosines[expected], atol=1e-3)


def test_cosines_are_none_above_one():
    table = unit(np.random.default_rng(0).normal(size=(100, 16))).astype(np.float16)
    assert np.linalg.norm(table.astype(np.float64), axis=1).max() > 1  # by 16-bit numbers
    cosines = [search.nearest_rows(table, row.astype(np.float32), 1).cosines[0] for row in table]
    assert max(cosines) == 1 and min(cosines) > 0.999


def test_search_called_wrongly():
    index = Index.build(Known(), TEXT)
    with pytest.raises(UsageError, match="count is 0"):
        index.search(np.ones(6, dtype=np.float32), 0)
    with pytest.raises(UsageError, match="vectors of 6 numbers"):
        index.search_static(np.ones(5, dtype=np.float32), 1)
    assert len(index.search(np.ones(6, dtype=np.float32), 3, np.zeros(len(index), dtype=bool)).rows) == 0


@pytest.mark.parametrize("layer", ["all", 3, -1, True, None])
def test_layers_that_are_none(layer):
    with pytest.raises(UsageError, match="allowed: top, mean, or a number from 0 to 2"):
        layer_slice(layer, 3)


def test_mean_of_a_single_layer():
    assert layer_slice("mean", 1) == slice(0, 1)


@pytest.mark.parametrize("text", [[], [[]], ["", "  "]])
def test_text_without_words(tmp_path, text):
    for folder in (None, tmp_path / "kept"):
        with pytest.raises(PolysemeError, match="no words"):
            Index.build(Known(), text, folder)
    assert not (tmp_path / "kept").exists()


def test_one_string_is_no_list():
    with pytest.raises(UsageError, match="put it into a list"):
        Index.build(Known(), "the bank")


def test_kept_and_found_again(tmp_path):
    encoder = Known()
    in_memory, told = Index.build(encoder, TEXT), []
    kept = Index.build(encoder, TEXT, tmp_path, told.append)
    assert same(kept, in_memory) and kept.folder is not None and sum(told) == len(TEXT)
    assert same(Index.open(tmp_path), kept) and same(Index.open(kept.folder), kept)
    assert isinstance(kept.vectors, np.memmap)
    read = encoder.sentences
    again = Index.build(encoder, iter(TEXT), tmp_path)
    assert encoder.sentences == read and same(again, kept) and list(tmp_path.iterdir()) == [kept.folder]
    assert {path.suffix for path in kept.folder.iterdir()} == {".npy", ".json"}


def test_other_content_is_noticed(tmp_path):
    first = Index.build(Known(), TEXT, tmp_path)
    changes = [
        Index.build(Known(), [*TEXT, ["more"]], tmp_path),
        Index.build(Known(weight=1.5), TEXT, tmp_path),
        Index.build(Known(split="whitespace"), TEXT, tmp_path),
        Index.build(Known(), TEXT, tmp_path, layer=1),
    ]
    assert len({index.folder for index in [first, *changes]}) == 5
    assert changes[0].types[-1] == "more" and not np.array_equal(changes[3].vectors, first.vectors)
    assert Index.build(Known(), TEXT, tmp_path, layer=2).folder == first.folder  # which is the top
    with pytest.raises(UsageError, match="has 5 indexes"):
        Index.open(tmp_path)


def test_a_corpus(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("The bank. A river.\n")
    index = Index.build(Known(), Corpus(path), tmp_path / "kept")
    assert [index.sentence(0), index.sentence(1)] == [["The", "bank", "."], ["A", "river", "."]]
    assert Index.build(Known(), Corpus(path), tmp_path / "kept").folder == index.folder
    path.write_text("The bank. A rover.\n")
    assert Index.build(Known(), Corpus(path), tmp_path / "kept").folder != index.folder


def test_text_that_changes_while_it_is_read(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("The bank.\n")

    class Writing(Known):
        def forward(self, batch):
            path.write_text("The bunk.\n")
            return super().forward(batch)

    with pytest.raises(PolysemeError, match="changed while it was read"):
        Index.build(Writing(), Corpus(path), tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_another_model_is_refused():
    encoder = Known()
    index = Index.build(encoder, TEXT)
    index.check(encoder)
    index.check(Known())
    with pytest.raises(UsageError, match="another model"):
        index.check(Known(weight=2.0))
    with torch.no_grad():
        encoder.weight.mul_(2)
    with pytest.raises(UsageError, match="another model"):
        index.check(encoder)


def spoil_manifest(folder: Path) -> None:
    (folder / "index.json").unlink()


def spoil_vectors(folder: Path) -> None:
    content = (folder / "vectors.npy").read_bytes()
    (folder / "vectors.npy").write_bytes(content[:-8])


def spoil_words(folder: Path) -> None:
    np.save(folder / "words.npy", np.array([{}], dtype=object))


def spoil_offsets(folder: Path) -> None:
    offsets = np.load(folder / "offsets.npy")
    np.save(folder / "offsets.npy", offsets + 1)


def spoil_types(folder: Path) -> None:
    (folder / "types.json").write_text('{"types": ["the"]}')


@pytest.mark.parametrize("spoil", [spoil_manifest, spoil_vectors, spoil_words, spoil_offsets, spoil_types])
def test_a_spoilt_folder_is_told_and_built_again(tmp_path, spoil):
    good = Index.build(Known(), TEXT)
    folder = Index.build(Known(), TEXT, tmp_path).folder
    assert folder is not None
    spoil(folder)
    with pytest.raises(FormatError, match=folder.name):
        Index.open(folder)
    assert same(Index.build(Known(), TEXT, tmp_path), good)
    assert same(Index.open(folder), good)


def test_a_failure_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(index_builder, "EMBEDDED", 4)

    class Failing(Known):
        def forward(self, batch):
            if self.sentences:
                raise RuntimeError("broken")
            return super().forward(batch)

    with pytest.raises(RuntimeError, match="broken"):
        Index.build(Failing(), TEXT, tmp_path)
    assert list(tmp_path.iterdir()) == []


class Killed(Known):
    """Ends its process in the middle."""

    def forward(self, batch):
        if self.sentences:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(batch)


def test_a_kill_leaves_no_half_index(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(index_builder, "EMBEDDED", 4)
        child = os.fork()
        if not child:
            Index.build(Killed(), TEXT, tmp_path)
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    left = [path.name for path in tmp_path.iterdir() if path.is_dir()]
    assert len(left) == 1 and left[0].endswith(".part")  # it was in the middle
    with pytest.raises(FormatError, match="no complete index"):
        Index.open(tmp_path)
    index = Index.build(Known(), TEXT, tmp_path)
    assert same(Index.open(tmp_path), index) and [path.name for path in tmp_path.iterdir()] == [index.folder.name]
