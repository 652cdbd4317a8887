"""The vocabulary and its file, with the corners that real files have."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.text.vocabulary import Vocabulary


def written(folder: Path, data: bytes, name: str = "vocabulary.txt") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_ids_both_ways() -> None:
    vocabulary = Vocabulary(["</S>", "<UNK>", "<S>", "the", "The"])
    ids = vocabulary.ids(["The", "the", "cat", "<S>"])
    assert ids.dtype == np.int64
    assert ids.tolist() == [4, 3, 1, 2]
    assert [vocabulary[place] for place in ids] == ["The", "the", "<UNK>", "<S>"]
    assert len(vocabulary) == 5
    assert "the" in vocabulary
    assert "cat" not in vocabulary
    assert vocabulary.has_unknown
    assert list(vocabulary) == vocabulary.words
    assert vocabulary.ids([]).shape == (0,)


def test_characters_are_looked_for_once() -> None:
    vocabulary = Vocabulary(["</S>", "北京", "京"])
    assert vocabulary.characters == set("</S>北京")
    assert vocabulary.characters is vocabulary.characters


def test_of_duplicates_the_last_id_wins() -> None:
    vocabulary = Vocabulary(["a", "b", "a"])
    assert vocabulary.ids(["a", "b"]).tolist() == [2, 1]
    assert (len(vocabulary), vocabulary[0]) == (3, "a")


@pytest.mark.parametrize(("unknown", "said"), [(None, "has no unknown word"), ("<oov>", "lacks the unknown word '<oov>'")])
def test_without_an_unknown_word_the_missing_one_is_named(unknown: str | None, said: str) -> None:
    vocabulary = Vocabulary(["a", "b"], unknown=unknown)
    assert not vocabulary.has_unknown
    assert vocabulary.ids(["b", "a"]).tolist() == [1, 0]
    with pytest.raises(PolysemeError, match=f"'cat' is not in the vocabulary, which {said}"):
        vocabulary.ids(["a", "cat", "dog"])


@pytest.mark.parametrize("place", [-1, 2])
def test_ids_outside_are_refused(place: int) -> None:
    with pytest.raises(IndexError):
        Vocabulary(["a", "b"])[place]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<S>\n</S>\n<UNK>\n", ["<S>", "</S>", "<UNK>"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\nc\x0bd\n\xe2\x80\xa8\n\xc2\x85\n", ["a\rb", "c\x0bd", "\u2028", "\x85"]),
        (b"a\n!!!MAXTERMID\nb\n", ["a", "b"]),
        (b"a\n\nb\n\n", ["a", "", "b", ""]),
        (b"\xef\xbb\xbf<S>\na\n", ["<S>", "a"]),
        (b" a \n", [" a "]),
        ("é\n漢\n😀\n".encode(), ["é", "漢", "😀"]),
    ],
)
def test_reading(tmp_path: Path, data: bytes, words: list[str]) -> None:
    assert Vocabulary.read(written(tmp_path, data)).words == words
    packed = written(tmp_path, gzip.compress(data), "packed-but-called.txt")
    assert Vocabulary.read(packed).words == words
    assert Vocabulary.read(str(written(tmp_path, data, "plain-but-called.gz"))).words == words


def test_marks_are_passed_on(tmp_path: Path) -> None:
    vocabulary = Vocabulary.read(written(tmp_path, b"<oov>\na\n"), unknown="<oov>", begin="<bos>", end="<eos>")
    assert vocabulary.ids(["b", "a"]).tolist() == [0, 1]
    assert (vocabulary.begin, vocabulary.end) == ("<bos>", "<eos>")


@pytest.mark.parametrize("data", [b"", b"\n", b"!!!MAXTERMID\n", gzip.compress(b"", mtime=0)])
def test_a_file_without_words_is_told(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(FormatError, match=r"vocabulary\.txt: has no words"):
        Vocabulary.read(written(tmp_path, data))


def test_wrong_bytes_are_told_with_their_line(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"vocabulary\.txt:3: is not UTF-8 \(byte 0xe9\)"):
        Vocabulary.read(written(tmp_path, "a\nb\ncafé\n".encode("latin-1")))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(PolysemeError, match=r"nowhere\.txt"):
        Vocabulary.read(tmp_path / "nowhere.txt")


@pytest.mark.parametrize("word", ["a\nb", "a\r", "!!!MAXTERMID", "\udc80"])
def test_words_that_a_line_cannot_hold(word: str) -> None:
    vocabulary = Vocabulary(["a", word])
    assert vocabulary.ids([word]).tolist() == [1]
    with pytest.raises(PolysemeError, match="word 1 of the vocabulary"):
        vocabulary.to_text()


LINE = st.text(st.characters(exclude_characters="\n\r\ufeff", exclude_categories=["Cs"])).filter("!!!MAXTERMID".__ne__)


@settings(deadline=None)
@given(st.lists(LINE, min_size=1).filter(any))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    path = written(tmp_path_factory.getbasetemp(), Vocabulary(words).to_text().encode())
    assert Vocabulary.read(path).words == words
