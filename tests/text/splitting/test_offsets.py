"""Where words stand in their text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.base.errors import PolysemeError
from polyseme.text.splitting.joiners import detokenize, tokenize_with_joiners
from polyseme.text.splitting.offsets import word_offsets, words_within
from polyseme.text.words import get_splitter, normalise_quotes

TEXTS = ["Mr. O’Hara can’t pay “$1,000.50” (yet).\n\nNo.", "《战国无双3》 是2009年的 game，naïve café", "", " \t\u3000 ", "a"]


@pytest.mark.parametrize("way", ["english", "whitespace", "characters", "chinese"])
@pytest.mark.parametrize("text", TEXTS)
def test_words_are_cut_from_their_places(text: str, way: str) -> None:
    words = get_splitter(way)(text)
    assert [text[begin:end] for begin, end in word_offsets(words, text)] == words
    straight = get_splitter(way)(normalise_quotes(text))
    assert [normalise_quotes(text[begin:end]) for begin, end in word_offsets(straight, text)] == straight


@given(st.text(alphabet=" \n\u3000ab.,'’“\"-1é国京\u200d", max_size=40))
def test_any_text(text: str) -> None:
    for way in ("english", "characters"):
        words = get_splitter(way)(text)
        assert [text[begin:end] for begin, end in word_offsets(words, text)] == words


@settings(deadline=None)
@given(st.text(alphabet=" \n\tab.'\"-1(", max_size=30))
def test_ascii_text_is_no_special_case(text: str) -> None:
    """Words that stand in the text as they are take a shorter way, which a letter that is not ASCII closes."""
    for words in (get_splitter("english")(text), text.split("\n"), [text], ["", *text.split(), ""]):
        assert word_offsets(words, text) == word_offsets([*words, "é"], f"{text} é")[:-1]
    words, single = text.split(), " ".join(text.split())
    assert word_offsets(words, single) == word_offsets([*words, "é"], f"{single} é")[:-1]


def test_invisible_marks_are_passed_over() -> None:
    text = "\u200fספר\u200f. a\u200eb\u200bc \ufeff"
    words = get_splitter("english")(text)
    assert words == ["ספר", ".", "ab", "c"]
    assert word_offsets(words, text) == [(1, 4), (5, 6), (7, 10), (11, 12)]
    assert word_offsets(text.split(), text) == [(1, 4 + 2), (7, 12), (12, 12)]
    assert tokenize_with_joiners(text, get_splitter("english")) == ["ספר", "￭.", "ab", "￭c"]
    assert detokenize(tokenize_with_joiners(text, get_splitter("english"))) == "ספר. abc"


def test_other_spellings() -> None:
    assert word_offsets(["``", "so", "''", "-LRB-"], '"so" (') == [(0, 1), (1, 3), (3, 4), (5, 6)]
    assert word_offsets(["New York", "", "is"], "New  York is") == [(0, 9), (9, 9), (10, 12)]
    with pytest.raises(PolysemeError, match=r"2 words do not spell the text 'so it'"):
        word_offsets(["so", "is"], "so it")


def test_words_of_characters() -> None:
    places = [(0, 2), (2, 4), (6, 7)]
    found = [words_within(places, *span) for span in ((0, 2), (1, 3), (3, 7), (0, 99), (4, 6), (5, 5), (7, 9))]
    assert [list(words) for words in found] == [[0], [0, 1], [1, 2], [0, 1, 2], [], [], []]
    assert list(words_within([], 0, 3)) == []
