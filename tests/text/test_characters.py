"""Character ids against hand-written rows and against plain loops that spell out the published rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.base.errors import PolysemeError
from polyseme.text.characters import Characters, CodePointCharacters, Utf8Characters

SYMBOLS = ["<oov>", "<bos>", "<eos>", "<pad>", "<bow>", "<eow>", "a", "b", "é", "漢", "\U0001f600", "\u3000"]
ANY_TEXT = st.text(st.characters(), max_size=12)  # all code points, lone surrogates among them
WORDS = st.lists(ANY_TEXT | st.sampled_from(["<S>", "</S>", "<bos>", "<eos>", "<UNK>", "\ud800" * 60 + "abc"]), max_size=8)


def utf8_loop(word: str, max_length: int) -> list[int]:
    """One character after the other, as the format's text says it."""
    if word == "<S>":
        body = [256]
    elif word == "</S>":
        body = [257]
    else:
        body = []
        for letter in word:
            if not 0xD800 <= ord(letter) <= 0xDFFF:
                body.extend(letter.encode("utf-8"))
    row = [258, *body[: max_length - 2], 259]
    return [value + 1 for value in row + [260] * (max_length - len(row))]


def code_point_loop(word: str, max_length: int) -> list[int]:
    place = {symbol: number for number, symbol in enumerate(SYMBOLS)}
    row = [place["<eow>"]]
    if word in ("<bos>", "<eos>"):
        row.append(place[word])
    else:
        for letter in word[: max_length - 2]:
            row.append(place[letter] if letter in place else place["<oov>"])
    row.append(place["<bow>"])
    return row + [place["<pad>"]] * (max_length - len(row))


def test_sentence_marks_are_the_published_rows() -> None:
    ids, lengths = Utf8Characters().encode(["<S>", "</S>"])
    assert ids.tolist() == [[259, 257, 260] + [261] * 47, [259, 258, 260] + [261] * 47]
    assert lengths.tolist() == [3, 3]


@pytest.mark.parametrize(
    ("word", "row"),
    [
        ("", [259, 260, 261, 261, 261, 261]),
        ("a", [259, 98, 260, 261, 261, 261]),
        ("\0", [259, 1, 260, 261, 261, 261]),
        ("Ā", [259, 197, 129, 260, 261, 261]),  # U+0100 is C4 80
        ("abcd", [259, 98, 99, 100, 101, 260]),
        ("abcdefgh", [259, 98, 99, 100, 101, 260]),
        ("aé漢", [259, 98, 196, 170, 231, 260]),  # E6 is the first of three bytes: the character is split
        ("\ud800a\udfff", [259, 98, 260, 261, 261, 261]),
        ("\ud800" * 100 + "abcdef", [259, 98, 99, 100, 101, 260]),
        ("<s>", [259, 61, 116, 63, 260, 261]),
    ],
)
def test_utf8_by_hand(word: str, row: list[int]) -> None:
    ids, _ = Utf8Characters(max_length=6).encode([word])
    assert ids.tolist() == [row]


def test_unknown_word_is_spelled() -> None:
    ids, lengths = Utf8Characters().encode(["<UNK>"])
    assert ids[0, :8].tolist() == [259, 61, 86, 79, 76, 63, 260, 261]
    assert lengths.tolist() == [7]


@settings(deadline=None)
@given(WORDS, st.integers(3, 55))
def test_utf8_is_the_loop(words: list[str], max_length: int) -> None:
    ids, lengths = Utf8Characters(max_length).encode(words)
    assert ids.dtype == lengths.dtype == np.int64
    assert ids.shape == (len(words), max_length)
    assert ids.tolist() == [utf8_loop(word, max_length) for word in words]
    assert lengths.tolist() == [utf8_loop(word, max_length).index(260) + 1 for word in words]
    assert not words or 1 <= ids.min() <= ids.max() <= 261


@settings(deadline=None)
@given(WORDS, st.integers(7, 55))
def test_code_points_are_the_loop(words: list[str], max_length: int) -> None:
    ids, lengths = CodePointCharacters(SYMBOLS, max_length).encode(words)
    assert ids.dtype == lengths.dtype == np.int64
    assert ids.shape == (len(words), max_length)
    assert ids.tolist() == [code_point_loop(word, max_length) for word in words]
    assert lengths.tolist() == [code_point_loop(word, max_length).index(4) + 1 for word in words]


def test_code_points_by_hand() -> None:
    scheme = CodePointCharacters(SYMBOLS, max_length=6)
    ids, lengths = scheme.encode(["ab", "é漢x", "<bos>", "<eos>", "", "aaaaaaa", "\U0001f600\ud800"])
    assert ids.tolist() == [
        [5, 6, 7, 4, 3, 3],
        [5, 8, 9, 0, 4, 3],
        [5, 1, 4, 3, 3, 3],
        [5, 2, 4, 3, 3, 3],
        [5, 4, 3, 3, 3, 3],
        [5, 6, 6, 6, 6, 4],
        [5, 10, 0, 4, 3, 3],
    ]
    assert lengths.tolist() == [4, 5, 3, 3, 2, 6, 4]
    assert (scheme.symbols, scheme.padding) == (12, 3)


def test_last_duplicate_counts() -> None:
    ids, _ = CodePointCharacters([*SYMBOLS, "a"], max_length=4).encode(["a"])
    assert ids[0, 1] == len(SYMBOLS)


def test_a_list_without_its_marks_is_told() -> None:
    with pytest.raises(PolysemeError, match="lacks <eow>, <bos>"):
        CodePointCharacters([symbol for symbol in SYMBOLS if symbol not in ("<eow>", "<bos>")])


@pytest.mark.parametrize("max_length", [2, 0, -1])
def test_a_row_needs_three_places(max_length: int) -> None:
    with pytest.raises(PolysemeError, match=f"max_length is {max_length}"):
        Utf8Characters(max_length)
    with pytest.raises(PolysemeError, match=f"max_length is {max_length}"):
        CodePointCharacters(SYMBOLS, max_length)


@pytest.mark.parametrize("scheme", [Utf8Characters(), CodePointCharacters(SYMBOLS)])
def test_no_words_and_endless_words(scheme: Characters) -> None:
    ids, lengths = scheme.encode([])
    assert ids.shape == (0, 50)
    assert lengths.shape == (0,)
    endless = ["漢" * 1_000_000] * 300 + ["\ud800" * 1_000_000 + "a"]
    ids, lengths = scheme.encode(endless)  # 0.01 s; it would be 30 s if whole words were spelled
    assert lengths[:300].tolist() == [50] * 300
