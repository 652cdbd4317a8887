"""Passages: the text in its order, whole, and taken up anywhere."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from polyseme.base.errors import PolysemeError
from polyseme.text.batching.bptt import BpttBatch, BpttBatches, TokenStream
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards


@pytest.fixture
def shards(tmp_path: Path) -> Shards:
    lines = [" ".join(f"w{(line * 7 + place) % 50}" for place in range(line % 9)) for line in range(80)]
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    return Shards.build(Corpus(tmp_path / "t.txt", splitter="whitespace", sentences="lines", workers=0), tmp_path)


def stream(shards: Shards, sentences: range) -> list[int]:
    """Types of the text with -1 for each end, the plain way."""
    found: list[int] = []
    for sentence in sentences:
        words = shards.sentence(sentence).tolist()
        found += [*words, -1] if words else []
    return found


def marked(batch: BpttBatch) -> np.ndarray:
    return np.where(batch.ends, -1, batch.types)


def test_places(shards: Shards) -> None:
    sentences = range(5, 60)
    expected = stream(shards, sentences)
    passages = TokenStream(shards, sentences)
    types, ends = passages.at(np.arange(2 * len(passages)))
    assert np.where(ends, -1, types).tolist() == expected * 2 and passages.words == sum(n >= 0 for n in expected)


def test_from_the_last_word_to_the_first(shards: Shards) -> None:
    expected = stream(shards, range(3, 40))
    turned = [*expected[-2::-1], -1]  # an end token before the last word of each sentence, which the one before it left
    (batch,) = TokenStream(shards, range(3, 40), backward=True).in_order(1, 10_000)
    assert marked(batch)[0].tolist() == [-1, *turned]
    first = next(iter(BpttBatches(shards, range(3, 40), batch_size=1, bptt=30, backward=True)))
    assert " ".join(map(str, marked(first)[0])) in " ".join(map(str, turned * 2))


@pytest.mark.parametrize(("rows", "steps"), [(1, 7), (4, 10), (100, 10)])
def test_in_order(shards: Shards, rows: int, steps: int) -> None:
    expected = stream(shards, range(3, 40))
    batches = list(TokenStream(shards, range(3, 40)).in_order(rows, steps))
    assert [batch.fresh for batch in batches] == [True] + [False] * (len(batches) - 1)
    read = np.concatenate([marked(batch)[:, :-1] for batch in batches], axis=1)
    predicted = np.concatenate([marked(batch)[:, 1:] for batch in batches], axis=1)
    assert predicted.flatten().tolist() == expected[: predicted.size] and len(expected) - predicted.size < len(predicted)
    assert read[0].tolist() == [-1, *expected][: read.shape[1]]  # the first word is predicted from an end mark


def test_an_epoch_reads_each_row_on_and_misses_nothing(shards: Shards) -> None:
    expected = stream(shards, range(len(shards)))
    batches = BpttBatches(shards, range(len(shards)), batch_size=3, bptt=12, seed=4)
    assert batches.words_per_epoch == sum(n >= 0 for n in expected)
    taken = list(itertools.islice(batches, 60))
    starts = [place for place, batch in enumerate(taken) if batch.fresh]
    assert starts[0] == 0 and len(starts) > 2
    lengths = {batch.types.shape[1] - 1 for batch in taken}
    assert len(lengths) > 3  # drawn anew each time
    for begin, end in itertools.pairwise(starts):
        epoch = taken[begin:end]
        for one, next_one in itertools.pairwise(epoch):
            np.testing.assert_array_equal(marked(one)[:, -1], marked(next_one)[:, 0])
        read = np.concatenate([marked(batch)[:, :-1] for batch in epoch], axis=1).flatten().tolist()
        assert len(read) == len(expected) // 3 * 3
        ring = expected * 2
        assert any(ring[place : place + len(read)] == read for place in range(len(expected)))
    assert marked(taken[0]).tolist() != marked(taken[starts[1]]).tolist()
    assert all(batch.words == int((marked(batch)[:, 1:] >= 0).sum()) for batch in taken)


def test_taken_up_and_shared(shards: Shards) -> None:
    batches = BpttBatches(shards, range(80), batch_size=2, bptt=9, seed=1)
    stream_ = iter(batches)
    for _ in range(25):
        next(stream_)
    place = batches.position()
    expected = [marked(next(stream_)) for _ in range(5)]
    again = BpttBatches(shards, range(80), batch_size=2, bptt=9, seed=1)
    again.seek(place)
    with pytest.raises(PolysemeError, match="the run has 2 rows, not 3: give batch_size=2"):
        BpttBatches(shards, range(80), batch_size=3, bptt=9, seed=1).seek(place)
    for one, other in zip(expected, again, strict=False):
        np.testing.assert_array_equal(one, marked(other))
    whole = next(iter(BpttBatches(shards, range(80), batch_size=4, bptt=9, seed=1)))
    shares = [
        next(iter(BpttBatches(shards, range(80), batch_size=2, bptt=9, seed=1, rank=rank, world_size=2))) for rank in (0, 1)
    ]
    np.testing.assert_array_equal(np.concatenate([marked(share) for share in shares]), marked(whole))


def test_too_little_text(shards: Shards) -> None:
    with pytest.raises(PolysemeError, match="for 9 rows: add text, or lower batch_size"):
        BpttBatches(shards, range(3), batch_size=9)
    with pytest.raises(PolysemeError, match="no sentences to train on"):
        TokenStream(shards, range(0))


def test_positions_of_format_1(shards: Shards) -> None:
    batches, again = (BpttBatches(shards, range(len(shards)), batch_size=2, bptt=9, seed=3) for _ in range(2))
    next(iter(batches))
    new = batches.position()
    old = {"epoch": new["epoch"], "batch": new["batch"], "place": new["position"], "rows": new["batch_size"]}
    again.seek(old)
    np.testing.assert_array_equal(marked(next(iter(again))), marked(next(iter(batches))))
