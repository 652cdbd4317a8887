"""The fast English splitter gives the words of the plain one, whatever the text and however small its memory."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.text.splitting.english import split_english
from polyseme.text.splitting.english_fast import FastEnglish
from tests.text.splitting.test_english import EXAMPLES

PIECES = "a|B|I|n't|'s|'|’|.|...|-|@|http://|(|)|,|1|&|$|U.S.|Mr.|No.|5|etc.|J.|\u0301|\u200d|\n|\u2028|\t| | |  |   "
PIECES += "|\u200b|\u200f|\ufeff"
TEXT = st.text(st.characters()) | st.lists(st.sampled_from(PIECES.split("|")), max_size=30).map("".join)
FAST = FastEnglish()
FORGETFUL = FastEnglish(limit=3)


@pytest.mark.parametrize("text", [text for text, _ in EXAMPLES])
def test_examples(text: str) -> None:
    assert FAST(text) == FAST(text) == FORGETFUL(text) == split_english(text)


@settings(deadline=None, max_examples=150)
@given(text=TEXT)
def test_equal_to_the_plain_splitter(text: str) -> None:
    assert FAST(text) == FORGETFUL(text) == split_english(text)


def test_a_period_is_judged_by_what_follows_it() -> None:
    for text in ("No. 5", "No. Five", "No.", "J. Smith", "J. smith", "J.", "No. 5", "J. Smith"):
        assert FAST(text) == split_english(text)
