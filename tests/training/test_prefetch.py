"""Batches made ready ahead: the same ones in the same order, with honest positions, and no thread left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from polyseme.training.prefetch import PrefetchedBatches


class Numbers:
    """0, 1, 2, ... to `end`; `broken` raises in its place."""

    words_per_epoch = 10

    def __init__(self, end: int | None = None, broken: int | None = None) -> None:
        self.next, self.end, self.broken = 0, end, broken

    def __iter__(self) -> Iterator[int]:
        while self.next != self.end:
            if self.next == self.broken:
                raise OSError("the file is gone")
            self.next += 1
            yield self.next - 1

    def position(self) -> dict[str, Any]:
        return {"next": self.next}

    def seek(self, position: dict[str, Any]) -> None:
        self.next = position["next"]


def threads() -> int:
    return sum(thread.name == "batches" for thread in threading.enumerate())


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_order_and_positions(ahead: int) -> None:
    batches = PrefetchedBatches(Numbers(), lambda batch: 10 * batch, prefetch=ahead)
    stream = iter(batches)
    assert batches.position() == {"next": 0} and batches.words_per_epoch == 10
    assert list(islice(stream, 5)) == [0, 10, 20, 30, 40]
    assert batches.position() == {"next": 5}  # whatever was made ahead
    batches.seek({"next": 2})
    assert list(islice(iter(batches), 3)) == [20, 30, 40]
    batches.close()
    assert batches.position() == {"next": 5} and threads() == 0
    assert list(islice(iter(batches), 2)) == [50, 60]
    batches.close()


@pytest.mark.parametrize("ahead", [0, 2])
def test_the_end_and_a_failure_reach_the_one_who_waits(ahead: int) -> None:
    batches = PrefetchedBatches(Numbers(end=4), lambda batch: batch, prefetch=ahead)
    assert list(batches) == [0, 1, 2, 3]
    batches.close()
    stream = iter(PrefetchedBatches(Numbers(broken=2), lambda batch: batch, prefetch=ahead))
    assert list(islice(stream, 2)) == [0, 1]
    with pytest.raises(OSError, match="the file is gone"):
        next(stream)
