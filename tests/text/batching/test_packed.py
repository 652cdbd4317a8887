"""Lanes: every sentence once an epoch, whole and in order in both directions; a position can be taken up."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from polyseme.base.errors import PolysemeError
from polyseme.text.batching.packed import PackedBatch, PackedBatches
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards

LINES = [" ".join(f"w{(7 * i + j) % 40}" for j in range(1 + (5 * i) % 11)) for i in range(37)]


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    folder = tmp_path_factory.mktemp("lanes")
    (folder / "text.txt").write_text("\n".join(LINES), encoding="utf-8")
    return Shards.build(Corpus(folder / "text.txt", splitter="whitespace", sentences="lines", workers=0), folder / "shards")


def read_back(batches: list[PackedBatch], types: list[str]) -> list[tuple[list[str], list[str], list[str], list[str]]]:
    """The whole sentences of lanes, in the order in which they end: inputs and targets, forward and backward."""
    inputs, targets = (np.concatenate([getattr(b, name) for b in batches], axis=1) for name in ("inputs", "targets"))
    begins = np.concatenate([b.begins for b in batches])
    found = []
    for lane in range(inputs.shape[2]):
        edges = np.flatnonzero(begins[:, lane])
        for begin, end in pairwise(edges):
            rows = [each[d, begin:end, lane] for d in (0, 1) for each in (inputs, targets)]
            found.append(tuple([types[i] for i in row] for row in rows))
    return found  # type: ignore[return-value]


def test_sentences_come_whole_in_both_directions(shards: Shards) -> None:
    stream = iter(PackedBatches(shards, range(len(shards)), batch_size=3, bptt=4))
    found = read_back([next(stream) for _ in range(40)], shards.types)
    assert len(found) > 30
    for forward_in, forward_out, backward_in, backward_out in found:
        words = forward_in[1:]
        assert " ".join(words) in LINES
        assert forward_in == ["<S>", *words] and forward_out == [*words, "</S>"]
        assert backward_in == ["</S>", *words[::-1]] and backward_out == [*words[::-1], "<S>"]


def test_an_epoch_has_every_sentence_once_and_words_are_counted_once(shards: Shards) -> None:
    batches = PackedBatches(shards, range(len(shards)), batch_size=1, bptt=1)
    places = batches.words_per_epoch + len(shards)
    stream = iter(batches)
    epoch = [next(stream) for _ in range(places)]
    assert sum(batch.words for batch in epoch) == batches.words_per_epoch == sum(len(line.split()) for line in LINES)
    found = read_back([*epoch, next(stream)], shards.types)
    assert sorted(" ".join(each[0][1:]) for each in found) == sorted(LINES)
    second = [next(stream) for _ in range(places)]
    assert [b.inputs.item(0) for b in epoch] != [b.inputs.item(0) for b in second]


def test_a_position_is_taken_up(shards: Shards) -> None:
    batches = PackedBatches(shards, range(2, 30), batch_size=4, bptt=5, seed=3)
    stream = iter(batches)
    for _ in range(25):
        next(stream)
    position = batches.position()
    expected = [next(stream) for _ in range(20)]
    again = PackedBatches(shards, range(2, 30), batch_size=4, bptt=5, seed=3)
    again.seek(position)
    for one, other in zip(expected, again, strict=False):
        np.testing.assert_array_equal(one.inputs, other.inputs)
        np.testing.assert_array_equal(one.targets, other.targets)
        np.testing.assert_array_equal(one.begins, other.begins)


def test_processes_share_an_epoch(shards: Shards) -> None:
    seen: list[str] = []
    for rank in (0, 1):
        stream = iter(PackedBatches(shards, range(len(shards)), batch_size=1, bptt=1, rank=rank, world_size=2))
        share = len(range(rank, len(LINES), 2))
        found = read_back([next(stream) for _ in range(400)], shards.types)
        seen += [" ".join(each[0][1:]) for each in found[:share]]
    assert sorted(seen) == sorted(LINES)


def test_too_little_text(shards: Shards) -> None:
    with pytest.raises(PolysemeError, match="0 training sentences are too few for 1 processes: add text"):
        PackedBatches(shards, range(0), batch_size=2)


def test_positions_of_format_1(shards: Shards) -> None:
    batches, again = (PackedBatches(shards, range(len(shards)), batch_size=3, bptt=5, seed=3) for _ in range(2))
    next(iter(batches))
    new = batches.position()
    rows = new["rows"]
    lanes = {"offset": rows["offset"], "length": rows["length"], "place": rows["position"]}
    again.seek({"epoch": new["epoch"], "next": new["next"], "lanes": lanes})
    np.testing.assert_array_equal(next(iter(again)).inputs, next(iter(batches)).inputs)


# ---- documents

DOCUMENTS = [["a b c", "d e"], ["f g h i"], ["j", "k l", "m n o", "p"]]


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    """Documents that blank lines separate, of sentences that are lines."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "text.txt").write_text("\n\n".join("\n".join(each) for each in DOCUMENTS) + "\n", encoding="utf-8")
    return Shards.build(Corpus(folder / "text.txt", splitter="whitespace", sentences="lines", workers=0), folder / "shards")


def passages(shards: Shards, fraction: float, **options: int) -> list[str]:
    """What an epoch reads, each passage as the words of its forward direction."""
    batches = PackedBatches(shards, range(len(shards)), batch_size=1, bptt=1, document_fraction=fraction, **options)
    stream, taken, words = iter(batches), [], 0
    while words < batches.words_per_epoch or batches.position()["epoch"] == 0:
        taken.append(next(stream))
        words += taken[-1].words
    assert words == batches.words_per_epoch
    found = read_back([*taken, next(stream), next(stream)], shards.types)
    for forward_in, forward_out, backward_in, backward_out in found:
        text = forward_in[1:]
        assert forward_out == [*text, "</S>"] and backward_in == ["</S>", *text[::-1]] and backward_out == [*text[::-1], "<S>"]
    return [" ".join(each[0][1:]) for each in found]


def test_documents_are_read_as_running_text(documents: Shards) -> None:
    assert sorted(passages(documents, 1.0)) == sorted(" </S> <S> ".join(each) for each in DOCUMENTS)
    assert sorted(passages(documents, 1e-9)) == sorted(sentence for each in DOCUMENTS for sentence in each)


def test_a_fraction_of_the_documents_is_read_as_such(documents: Shards) -> None:
    seen = [passages(documents, 0.5, seed=seed) for seed in range(12)]
    whole = {text for texts in seen for text in texts if "</S>" in text}
    assert whole == {" </S> <S> ".join(each) for each in DOCUMENTS if len(each) > 1}
    for texts in seen:
        assert sorted(" </S> <S> ".join(texts).split(" </S> <S> ")) == sorted(s for each in DOCUMENTS for s in each)


def test_long_documents_are_read_in_parts(documents: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.text.batching.passages.MAX_PASSAGE_WORDS", 3)
    assert sorted(passages(documents, 1.0)) == sorted(
        ["a b c", "d e", "f g h i", "j </S> <S> k l", "m n o", "p"]  # a part takes the sentences that begin in its words
    )


def test_shards_of_earlier_versions_do_not_know_documents(documents: Shards) -> None:
    old = Shards(documents.words, documents.offsets, documents.counts, fingerprint="", types=documents.types)
    with pytest.raises(PolysemeError, match=r"earlier version.*document_fraction"):
        PackedBatches(old, range(len(old)), batch_size=1, document_fraction=0.5)
    in_memory = Shards(*(old.words, old.offsets, old.counts), fingerprint="", types=old.types, documents=documents.documents)
    assert passages(in_memory, 0.5, seed=3) == passages(documents, 0.5, seed=3)
