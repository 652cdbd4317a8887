"""What the benchmarks compare is the same."""

from __future__ import annotations

import pytest

from benchmarks import workload


def test_fewer_sentences_are_the_first_of_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLYSEME_DATA", raising=False)
    assert workload.sentences(64) == workload.sentences(300)[:64]
    lengths = [len(text) for text in workload.sentences(300)]
    assert min(lengths) >= 1 and max(lengths) <= 60 and 10 < sum(lengths) / 300 < 20
