"""Scores of answers, by hand after the published scripts."""

from __future__ import annotations

import pytest

from polyseme.base.errors import UsageError
from polyseme.metrics.reading import answer_f1, cmrc_tokens, exact_match, normalize_answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat", "cat"),
        ("a.b-c", "abc"),  # punctuation goes before words are told apart
        ("an  apple\t, a day", "apple day"),
        ("theory of anthems", "theory of anthems"),
        ("the-cat", "thecat"),  # and before articles do
        ("“Paris”", "“paris”"),  # ASCII punctuation only
        ("A an THE .", ""),
    ],
)
def test_texts_as_squad_compares_them(text: str, expected: str) -> None:
    assert normalize_answer(text) == expected


@pytest.mark.parametrize(
    ("answer", "gold", "exact", "f1"),
    [
        ("the Denver Broncos.", ["Denver Broncos"], 1, 1),
        ("Denver", ["Denver Broncos", "Broncos"], 0, 2 / 3),  # 1 of 1, 1 of 2
        ("in the city of New York", ["New York City", "York"], 0, 3 / 4),  # in city of new york: 3 of 5, 3 of 3
        ("to to be", ["to be to"], 0, 1),  # a bag
        ("to to", ["to be"], 0, 1 / 2),  # but each word as often as it is there
        ("Paris", ["Rome"], 0, 0),
        ("", ["Rome"], 0, 0),
    ],
)
def test_squad(answer: str, gold: list[str], exact: float, f1: float) -> None:
    for rules in ("squad", "squad2"):
        assert exact_match(answer, gold, rules) == exact
        assert answer_f1(answer, gold, rules) == pytest.approx(f1)


def test_nothing_left() -> None:
    # v1.1: the exact match sees two empty texts, F1 sees no common word; v2 calls both right
    assert (exact_match("a", ["the"], "squad"), answer_f1("a", ["the"], "squad")) == (1, 0)
    assert (exact_match("a", ["the"], "squad2"), answer_f1("a", ["the"], "squad2")) == (1, 1)
    # v2: such an answer does not count beside others
    assert (exact_match("", ["the", "Rome"], "squad2"), answer_f1("", ["the", "Rome"], "squad2")) == (0, 0)
    assert (exact_match("", ["the", "Rome"], "squad"), answer_f1("", ["the", "Rome"], "squad")) == (1, 0)


@pytest.mark.parametrize("rules", ["squad", "squad2", "cmrc"])
def test_no_answer(rules: str) -> None:
    assert (exact_match("", [], rules), answer_f1("", [], rules)) == (1, 1)
    assert (exact_match("Paris", [], rules), answer_f1("Paris", [], rules)) == (0, 0)
    assert (exact_match("", ["Paris"], rules), answer_f1("", ["Paris"], rules)) == (0, 0)


def test_nothing_is_right_where_v1_has_no_answer() -> None:
    for answer in (".", "the"):
        assert (exact_match(answer, [], "squad"), answer_f1(answer, [], "squad")) == (0, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("北京，2008年", ["北", "京", "2008", "年"]),
        ("New York！", ["new", "york"]),
        ("1,000.5元", ["1,000.5", "元"]),
        ("ω-force", ["ωforce"]),
        ("5%、$3", ["5", "%", "$", "3"]),
        ("……好…", ["…", "…", "好", "…"]),  # their list has two dots as one, which matches nothing
        ("a,b 北b", ["a,b", "北", "b"]),
    ],
)
def test_texts_as_cmrc_compares_them(text: str, expected: list[str]) -> None:
    assert cmrc_tokens(text) == expected


@pytest.mark.parametrize(
    ("answer", "gold", "exact", "f1"),
    [
        ("《北京》", ["北京"], 1, 1),
        ("北京市", ["北京"], 0, 4 / 5),  # run of 2: 2 of 3, 2 of 2
        ("京北", ["北京"], 0, 1 / 2),  # a run, not a bag: 1 of 2, 1 of 2
        ("北方的京城", ["北京"], 0, 2 / 7),  # 1 of 5, 1 of 2
        ("中国北京", ["北京", "中国的北京", "上海"], 0, 2 / 3),  # 2 of 4, 2 of 2 against 2 of 4, 2 of 5
        ("iPhone 6", ["iphone 6s"], 0, 1 / 2),
        ("，", ["，"], 1, 0),  # as the script has it
    ],
)
def test_cmrc(answer: str, gold: list[str], exact: float, f1: float) -> None:
    assert exact_match(answer, gold, "cmrc") == exact
    assert answer_f1(answer, gold, "cmrc") == pytest.approx(f1)


def test_unknown_rules_are_told() -> None:
    for function in (exact_match, answer_f1):
        with pytest.raises(UsageError, match=r"unknown scoring rules 'squad3' \(did you mean 'squad"):
            function("a", ["a"], "squad3")  # type: ignore[arg-type]
