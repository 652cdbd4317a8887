"""The sample of text on which statistics for sentence vectors are measured."""

from pathlib import Path

import pytest

from polyseme.pretraining import sentence_statistics
from polyseme.pretraining.sentence_statistics import sample_text
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards


def test_a_sample_comes_from_all_parts_of_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_statistics, "SAMPLE_SENTENCES", 5)
    lines = [f"line {number} of 漢字 ." for number in range(101)]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    corpus = Corpus(tmp_path / "text.txt", splitter="whitespace", sentences="lines")
    found = sample_text(corpus, Shards.build(corpus, tmp_path))
    assert found == [lines[number].split() for number in (0, 25, 50, 75, 100)]
    assert sample_text(corpus, None) == [lines[number].split() for number in (0, 20, 40, 60, 80)]
