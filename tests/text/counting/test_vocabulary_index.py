"""Numbers of words: the same order however little memory there is, and vocabularies that come out the same every time."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.text.corpus import Corpus
from polyseme.text.counting import vocabulary_index
from polyseme.text.counting.vocabulary_index import VocabularyIndex, build_vocabulary
from polyseme.text.shards.blocks import as_block
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import SPECIAL_TOKENS, Vocabulary


@pytest.mark.parametrize("limit", [0, 5, 300, 10**6])
def test_order_and_counts(tmp_path: Path, limit: int) -> None:
    chance = random.Random(3)
    letters = "aäb漢\U0001f600z~"
    words = ["".join(chance.choices(letters, k=int(chance.expovariate(0.5)) + 1)) for _ in range(5000)]
    words += ["<UNK>", "</S>", "<UNK>", "\u2028", "\r"] * 20
    chance.shuffle(words)
    types, numbers = VocabularyIndex(tmp_path, limit), []
    for start in range(0, len(words), 100):
        numbers += types.encode(as_block([words[start : start + 100]])).tolist()
    assert any(tmp_path.iterdir()) == (limit < 10**6)
    ordered, true = types.ordered(), Counter(words)
    expected = [
        *SPECIAL_TOKENS,
        *sorted((word for word in true if word not in SPECIAL_TOKENS), key=lambda word: (-true[word], word)),
    ]
    assert b"".join(ordered.lines()).decode() == "".join(f"{word}\n" for word in expected)
    assert ordered.counts.tolist() == [true[word] for word in expected]
    assert [expected[place] for place in ordered.final[numbers]] == words


def test_shards_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.txt").write_text("\n".join(f"w{number % 997} the w{number % 13} <S> {'x' * 1001}" for number in range(3000)))
    corpus = Corpus(tmp_path / "t.txt", splitter="whitespace", sentences="lines", workers=0)
    whole = Shards.build(corpus, tmp_path / "a").folder
    monkeypatch.setattr(vocabulary_index, "LIMIT", 100)
    spilled = Shards.build(corpus, tmp_path / "b").folder
    assert whole is not None and spilled is not None
    assert sorted(path.name for path in whole.iterdir()) == sorted(path.name for path in spilled.iterdir())
    for path in whole.iterdir():
        assert path.read_bytes() == (spilled / path.name).read_bytes(), path.name


def corpus(path: Path, text: str) -> Corpus:
    path.write_text(text)
    return Corpus(path, splitter="whitespace", sentences="lines", workers=0)


@pytest.mark.parametrize("limit", [2, 10**6])
def test_vocabulary_of_a_corpus(tmp_path: Path, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary_index, "LIMIT", limit)
    text = corpus(tmp_path / "a.txt", f"b a b <UNK> c\nb c <S> a d <UNK> <UNK> {'x' * 5000} {'x' * 1000}\n")
    long = "x" * 1000  # words without end are cropped
    vocabulary, words = build_vocabulary(text)
    assert words == 14 and vocabulary.words == [*SPECIAL_TOKENS, "b", "a", "c", long, "d"]
    assert build_vocabulary(text, size=5)[0].words == [*SPECIAL_TOKENS, "b", "a"]
    assert build_vocabulary(text, min_count=2)[0].words == [*SPECIAL_TOKENS, "b", "a", "c", long]
    assert build_vocabulary(text, size=4, min_count=2)[0].words == [*SPECIAL_TOKENS, "b"]
    (tmp_path / "v.txt").write_text(vocabulary.to_text())
    assert Vocabulary.read(tmp_path / "v.txt").ids(["b", "zzz"]).tolist() == [3, 2]


def test_what_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(PolysemeError, match="the text has no words"):
        build_vocabulary(corpus(tmp_path / "a.txt", "\n"))
    text = corpus(tmp_path / "a.txt", "a a\n")
    with pytest.raises(PolysemeError, match="no word occurs 3 times or more"):
        build_vocabulary(text, min_count=3)
    with pytest.raises(UsageError, match="no room for words"):
        build_vocabulary(text, size=3)
    with pytest.raises(UsageError, match="min_count=0 is too small"):
        build_vocabulary(text, min_count=0)
