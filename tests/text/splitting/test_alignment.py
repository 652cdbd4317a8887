"""The same text cut in two ways."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from polyseme.base.errors import PolysemeError
from polyseme.text.splitting.alignment import join, overlaps


@pytest.mark.parametrize(
    ("tokens", "words", "expected"),
    [
        (["a", "b"], ["a", "b"], [(0, 1), (1, 2)]),
        (["北", "京", "人"], ["北京", "人"], [(0, 1), (0, 1), (1, 2)]),
        (["don't"], ["do", "n't"], [(0, 2)]),
        (["ab", "cd", "ef"], ["a", "bcde", "f"], [(0, 2), (1, 2), (1, 3)]),
        (["New York", "is"], ["New", "York", "is"], [(0, 2), (2, 3)]),
        (["a", "\u3000", "b"], ["a", "b"], [(0, 1), (0, 0), (1, 2)]),
        (["ab"], ["a", " ", "b"], [(0, 3)]),
        (["\u200fab", "\u200f", "c\u200bd"], ["ab", "c", "d"], [(0, 1), (0, 0), (1, 3)]),  # invisible marks are no text
        ([], [], []),
    ],
)
def test_overlaps(tokens, words, expected):
    assert [(place.start, place.stop) for place in overlaps(tokens, words)] == expected


@pytest.mark.parametrize(("tokens", "words"), [(["ab"], ["ac"]), (["ab"], ["a"]), ([], ["a"]), (["a", "bc"], ["abcd"])])
def test_other_texts_are_refused(tokens, words):
    with pytest.raises(PolysemeError, match="do not spell the same text"):
        overlaps(tokens, words)


@given(some.text("ab文 ", max_size=12), some.sets(some.integers(1, 11)), some.sets(some.integers(1, 11)))
def test_overlaps_by_brute_force(text, first, second):
    """Every pair of pieces that shares a character other than white space, found by looking at all pairs."""

    def cut(places):
        ends = [0, *sorted(place for place in places if place < len(text)), len(text)]
        return list(pairwise(ends))

    def shared(one, other):
        return any(max(one[0], other[0]) <= at < min(one[1], other[1]) and not text[at].isspace() for at in range(len(text)))

    tokens, words = cut(first), cut(second)
    found = overlaps([text[slice(*each)] for each in tokens], [text[slice(*each)] for each in words])
    for token, place in zip(tokens, found, strict=True):
        touched = [number for number, word in enumerate(words) if shared(token, word)]
        assert list(place)[:1] == touched[:1] and list(place)[-1:] == touched[-1:]


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["The", "bank", "."], "The bank ."),
        (["我", "爱", "you", "very", "much", "，", "吗"], "我爱you very much，吗"),
        (["1", "9", "9", "8", "年"], "1998年"),
        (["1", "9"], "1 9"),
        (["hi", "😀"], "hi 😀"),
        ([], ""),
    ],
)
def test_join(tokens, text):
    assert join(tokens) == text
