"""Work in other processes: the order of the stream, and a job that travels once."""

from __future__ import annotations

from typing import Any

import pytest

from polyseme.text.files.parallel_map import parallel_map
from polyseme.text.splitting.unigram import UnigramSegmenter

TEXTS = [f"他的包袱{number}" for number in range(12)]


def test_a_job_is_sent_once_to_each_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may bring a list of a hundred thousand words: with every item that would be most of the work."""
    sent = []
    usual = UnigramSegmenter.__reduce__

    def counted(self: UnigramSegmenter) -> tuple[Any, ...]:
        sent.append(1)
        return usual(self)

    monkeypatch.setattr(UnigramSegmenter, "__reduce__", counted)
    job = UnigramSegmenter(["的", "包袱"])
    found = list(parallel_map(job, TEXTS, str, 1))
    assert found == list(parallel_map(job, TEXTS, str, 0))
    assert [item for item, _ in found] == TEXTS and found[3][1] == ["他", "的", "包袱", "3"]
    assert len(sent) == 1
