"""Counts are exact however little memory they have, and vocabularies come out the same every time."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.text.corpus import Corpus
from polyseme.text.counting.counts import SPECIAL_TOKENS, WordCounts, build_vocabulary, count_words
from polyseme.text.vocabulary import Vocabulary


@pytest.fixture
def words() -> list[str]:
    chance = random.Random(3)
    letters = "aäb漢\U0001f600z~"
    return ["".join(chance.choices(letters, k=int(chance.expovariate(0.5)) + 1)) for _ in range(5000)]


def spilled(words: list[str], limit: int) -> WordCounts:
    counts = WordCounts(limit)
    for start in range(0, len(words), 100):
        some = Counter(words[start : start + 100])
        counts.add(some.keys(), some.values())
    return counts


@pytest.mark.parametrize("limit", [10, 500, 10**6])
def test_counts_are_exact_in_bounded_memory(words: list[str], limit: int) -> None:
    true = Counter(words)
    counts = spilled(words, limit)
    assert list(counts) == list(counts) == sorted(true.items())
    assert counts.total == len(words)
    assert bool(counts._runs) == (limit < 10**6) and len(counts._counts) <= max(limit, 10)
    ranked = sorted(true.items(), key=lambda pair: (-pair[1], pair[0]))
    assert counts.most_common() == ranked and counts.most_common(7) == ranked[:7]


def test_runs_go_with_the_counts(words: list[str]) -> None:
    counts = spilled(words, 100)
    folder = counts._runs[0].parent
    assert folder.exists()
    del counts
    assert not folder.exists()


def test_vocabulary_of_a_corpus(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("b a b <UNK> c\nb c <S> a d <UNK> <UNK>\n")
    corpus = Corpus(path, splitter="whitespace", sentences="lines")
    counts = count_words(corpus, limit=2)
    assert counts.total == 12
    assert build_vocabulary(counts).words == [*SPECIAL_TOKENS, "b", "a", "c", "d"]
    assert build_vocabulary(counts, size=5).words == [*SPECIAL_TOKENS, "b", "a"]
    assert build_vocabulary(counts, min_count=2).words == [*SPECIAL_TOKENS, "b", "a", "c"]
    assert build_vocabulary(counts, size=4, min_count=2).words == [*SPECIAL_TOKENS, "b"]
    (tmp_path / "v.txt").write_text(build_vocabulary(counts).to_text())
    assert Vocabulary.read(tmp_path / "v.txt").ids(["b", "zzz"]).tolist() == [3, 2]


def test_words_without_end_are_cropped() -> None:
    counts = WordCounts()
    counts.add(["x" * 5000, "x" * 1000], [1, 2])
    assert list(counts) == [("x" * 1000, 3)]


def test_what_cannot_be() -> None:
    counts = WordCounts()
    with pytest.raises(PolysemeError, match="the text has no words"):
        build_vocabulary(counts)
    counts.add(["a"], [2])
    with pytest.raises(PolysemeError, match="no word occurs 3 times or more"):
        build_vocabulary(counts, min_count=3)
    with pytest.raises(UsageError, match="no room for words"):
        build_vocabulary(counts, size=3)
    with pytest.raises(UsageError, match="min_count=0 is too small"):
        build_vocabulary(counts, min_count=0)
